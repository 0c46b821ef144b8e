"""The device under test: its clock, its queue, its memory. A class per kind; a fake one stands in the tests."""

from __future__ import annotations

import ctypes
import gc
import importlib
import os
import time
from abc import abstractmethod
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, Protocol

from harness.errors import BenchError, UsageError
from harness.host import cpu
from harness.host.cgroup import text
from harness.host.detect import is_product
from harness.host.reading import Reading
from harness.record import DeviceProfile
from suites.spec import Precision

if TYPE_CHECKING:
    import torch

MOST_CLOCKS = 4
"""Processors whose clock is read at a time: some kernels take milliseconds for one."""


class Stopwatch(Protocol):
    """Seconds by the device's own events, recorded into its queue. Started and stopped over and over."""

    def start(self) -> None: ...

    def stop(self) -> None: ...

    def seconds(self) -> float:
        """Return what passed on the device between start and stop; it must have done all its work."""


class Device(Protocol):
    """What a measurement needs of a device. `synchronize` returns when all work given to it is done.

    Another accelerator joins with a class that inherits from this one and takes no arguments; a profile names it as its
    kind, `package.module:Class`. What it does not override is unknown, or not there.
    """

    kind: str
    torch_type: str
    """What tensors are moved to, and what autocast is told."""

    @abstractmethod
    def synchronize(self) -> None: ...

    def clock(self) -> float:
        """Return seconds of a clock that never goes back."""
        return time.perf_counter()

    def product(self) -> str | None:
        """Return the name that the device reports."""
        return None

    def refuses(self, dtype: torch.dtype) -> str | None:
        """Return why there are no tensors of this type here; None: there are."""
        return None

    def emulates(self, precision: Precision, amp_dtype: str | None) -> bool:
        """Whether the device has no instructions for this precision: times then say nothing about the compiler."""
        return False

    def limit(self, reserve_bytes: int) -> None:
        """Leave so much of the device's own memory to others."""
        return

    def trim(self) -> None:
        """Give back to the system what the process holds and does not use."""
        gc.collect()

    def reset_peak(self) -> bool:
        """Let the peak begin at what is used now; False where that is refused."""
        return False

    def memory_bytes(self) -> int | None:
        return None

    def peak_bytes(self) -> int | None:
        """Return the most memory in use since the peak was reset."""
        return None

    def stopwatch(self) -> Stopwatch | None:
        """Return a watch by the device's own events; None where it has none."""
        return None

    def highest_clock_mhz(self) -> float | None:
        """Return the highest clock that the device promises to hold."""
        return None

    def read(self) -> Reading:
        """Look at clock, heat and company. Takes milliseconds at most; never called inside a sample."""
        return Reading()


class EventStopwatch:
    """A stopwatch of two of torch's events, e.g. `torch.cuda.Event`."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._first, self._last = make(), make()

    def start(self) -> None:
        self._first.record()

    def stop(self) -> None:
        self._last.record()

    def seconds(self) -> float:
        return float(self._first.elapsed_time(self._last)) / 1000


class CpuDevice(Device):
    """The host. Its work is done when the call returns; its memory is the process's own (resident set)."""

    kind = "cpu"
    torch_type = "cpu"

    def __init__(self, proc: Path = Path("/proc/self"), processors: Path = Path("/sys/devices/system/cpu")) -> None:
        self._proc = proc
        usable = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
        self._clocks = [processors / f"cpu{number}" / "cpufreq" for number in usable[:MOST_CLOCKS]]

    def synchronize(self) -> None:
        pass

    def product(self) -> str | None:
        return cpu.read().name

    def emulates(self, precision: Precision, amp_dtype: str | None) -> bool:
        from harness.worker.observe import is_emulated  # here, so that this module loads without torch

        facts = cpu.read()
        return is_emulated(precision, amp_dtype, facts.flags, facts.architecture)

    def trim(self) -> None:
        gc.collect()
        # Without this glibc keeps freed pages, and the next phase starts from a baseline that holds them.
        if trim := getattr(ctypes.CDLL(None), "malloc_trim", None):
            trim(0)

    def reset_peak(self) -> bool:
        try:
            (self._proc / "clear_refs").write_text("5")
        except OSError:
            return False
        return True

    def memory_bytes(self) -> int | None:
        return self._status("VmRSS")

    def peak_bytes(self) -> int | None:
        return self._status("VmHWM")

    def highest_clock_mhz(self) -> float | None:
        """Return the base clock where the kernel names it, as turbo is not promised to all cores; else the highest."""
        return self._megahertz("base_frequency") or self._megahertz("cpuinfo_max_freq")

    def read(self) -> Reading:
        return Reading(clock_mhz=self._megahertz("scaling_cur_freq"))

    def _megahertz(self, file: str) -> float | None:
        """Median over the processors that this process runs on; None where the kernel does not tell."""
        told = [word for clock in self._clocks if (word := text(clock / file)).isdecimal()]
        return median(int(kilohertz) for kilohertz in told) / 1000 if told else None

    def _status(self, field: str) -> int | None:
        """Bytes of a field of the kernel's status file; None where the kernel does not tell."""
        try:
            lines = (self._proc / "status").read_text().splitlines()
        except OSError:
            return None
        kib = next((line.split()[1] for line in lines if line.startswith(f"{field}:")), None)
        return None if kib is None else int(kib) * 1024


def open_device(profile: DeviceProfile) -> Device:
    """Return the device of a profile, which is touched for the first time here, with what the profile says of it.

    Raises:
        BenchError: it does not answer, or is another product.
        UsageError: no such kind.
    """
    device = _open(profile.kind)
    if profile.kind != CpuDevice.kind and profile.product is not None:
        found = device.product()
        if not is_product(profile.product, found or ""):
            raise BenchError(
                f"Profile {profile.name} is for {profile.product}, and the device here is "
                f"{found or 'nameless'}. Choose another profile: see `bench list devices`."
            )
    device.limit(profile.device_reserve_bytes)
    return device


def _open(kind: str) -> Device:
    if kind == CpuDevice.kind:
        return CpuDevice()
    if kind == "cuda":
        from harness.worker.cuda import CudaDevice

        return CudaDevice()
    if kind == "mps":
        from harness.worker.mps import MpsDevice

        return MpsDevice()
    module, _, name = kind.partition(":")
    if not name:
        raise UsageError(
            f'Device kind "{kind}" is unknown. Known: cpu, cuda, mps, and the class of another as package.module:Class.'
        )
    try:
        device: Device = getattr(importlib.import_module(module), name)()
    except (ImportError, AttributeError) as error:
        raise UsageError(f'Device kind "{kind}": {error}. Install its package, or correct the profile.') from error
    return device
