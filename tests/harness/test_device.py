"""The host as a device: its clock, its memory, and what a kernel may refuse; and how a profile finds its device."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from harness.errors import BenchError, UsageError
from harness.record import DeviceProfile
from harness.worker.device import CpuDevice, Device, open_device
from tests import fakes

MIB = 1 << 20

TOUCH = """
import json
from harness.worker.device import CpuDevice

device = CpuDevice()
device.trim()
reset = device.reset_peak()
baseline = device.memory_bytes()
block = bytearray(64 << 20)
block[::4096] = b"x" * len(block[::4096])
during = device.memory_bytes()
del block
device.trim()
after = device.memory_bytes()
peak = device.peak_bytes()
print(json.dumps([reset, baseline, during, after, peak, device.reset_peak(), device.peak_bytes()]))
"""


def test_peak() -> None:
    """64 MiB that are touched and freed again stand in the peak, until it is reset, and no longer in use."""
    out = subprocess.run([sys.executable, "-c", TOUCH], capture_output=True, text=True, check=True, timeout=60)
    reset, baseline, during, after, peak, reset_again, peak_after = json.loads(out.stdout)

    assert 64 == pytest.approx((during - baseline) / MIB, abs=4)
    assert 0 == pytest.approx((after - baseline) / MIB, abs=4)
    assert reset is reset_again
    if reset:  # some sandboxes refuse
        assert 64 == pytest.approx((peak - baseline) / MIB, abs=4)
        assert 0 == pytest.approx((peak_after - after) / MIB, abs=4)


def test_clock() -> None:
    """The clock never goes back."""
    device = CpuDevice()
    readings = [device.clock() for _ in range(100)]

    assert sorted(readings) == readings


def test_kernel_refuses(tmp_path: Path) -> None:
    """No file to reset the peak by, none that tells the memory: False and None, not an error."""
    device = CpuDevice(proc=tmp_path / "absent")

    assert device.reset_peak() is False
    assert device.memory_bytes() is None
    assert device.peak_bytes() is None


def test_kernel_tells(tmp_path: Path) -> None:
    """Memory is read from the kernel's status file, in its KiB; a field that is not there is None."""
    (tmp_path / "status").write_text("Name:\tpython\nVmPeak:\t  9000 kB\nVmRSS:\t    2048 kB\n")
    device = CpuDevice(proc=tmp_path)

    assert 2 * MIB == device.memory_bytes()
    assert device.peak_bytes() is None


def test_trim_without_glibc(monkeypatch: pytest.MonkeyPatch) -> None:
    """A C library that cannot trim is no error."""
    monkeypatch.setattr("ctypes.CDLL", lambda name: object())

    CpuDevice().trim()


def test_clock_of_processors(tmp_path: Path) -> None:
    """The clock is the median over the processors that are used; the base clock is what is promised, not turbo."""
    for number in os.sched_getaffinity(0):
        folder = tmp_path / f"cpu{number}" / "cpufreq"
        folder.mkdir(parents=True)
        (folder / "scaling_cur_freq").write_text("2400000\n")
        (folder / "base_frequency").write_text("2500000\n")
        (folder / "cpuinfo_max_freq").write_text("3700000\n")
    device = CpuDevice(processors=tmp_path)

    assert (2400.0, 2500.0) == (device.read().clock_mhz, device.highest_clock_mhz())
    for file in tmp_path.glob("*/cpufreq/base_frequency"):
        file.unlink()
    assert 3700.0 == device.highest_clock_mhz()


def test_no_clock_of_processors(tmp_path: Path) -> None:
    """A virtual machine tells no clocks: unknown."""
    device = CpuDevice(processors=tmp_path)

    assert (None, None) == (device.read().clock_mhz, device.highest_clock_mhz())


@pytest.mark.parametrize(("kind", "expected"), [("cpu", CpuDevice), ("tests.fakes:Accelerator", fakes.Accelerator)])
def test_open(kind: str, expected: type[Device]) -> None:
    """A profile's kind opens its device: one of ours, or any class by its name."""
    assert isinstance(open_device(DeviceProfile(name="p", kind=kind)), expected)


@pytest.mark.parametrize("kind", ["no_such_package:Device", "tests.fakes:NoSuchClass"])
def test_no_such_class(kind: str) -> None:
    """A class that cannot be imported is named."""
    with pytest.raises(UsageError, match=f'Device kind "{kind}": .* Install its package'):
        open_device(DeviceProfile(name="p", kind=kind))


def test_wrong_product() -> None:
    """A device that is another product than the profile's is refused; the name counts by whole words."""
    profile = DeviceProfile(name="p", kind="tests.fakes:Accelerator", product="F100")

    assert open_device(profile).product() == "Fakesoft F100"
    with pytest.raises(BenchError, match="Profile p is for F10, and the device here is Fakesoft F100"):
        open_device(profile.model_copy(update={"product": "F10"}))


@pytest.mark.parametrize(("kind", "words"), [("cuda", "finds none. Look at nvidia-smi"), ("mps", "needs a Mac")])
def test_device_is_not_there(kind: str, words: str) -> None:
    """A profile for a GPU where torch finds none is refused with what to look at."""
    if getattr(torch, kind).is_available():
        pytest.skip("there is one here")

    with pytest.raises(BenchError, match=words):
        open_device(DeviceProfile(name="p", kind=kind))
