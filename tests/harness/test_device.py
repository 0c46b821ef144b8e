"""The host as a device: its clock, its memory, and what a kernel may refuse."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from harness.errors import UsageError
from harness.worker.device import CpuDevice, open_device

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


def test_open() -> None:
    """A profile's kind opens its device; an unknown one says which there are."""
    assert isinstance(open_device("cpu"), CpuDevice)
    with pytest.raises(UsageError, match=r'"tpu" is unknown. Known: cpu'):
        open_device("tpu")
