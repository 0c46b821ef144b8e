"""The device under test: its clock, its queue, its memory. A class per kind; a fake one stands in the tests."""

from __future__ import annotations

import ctypes
import gc
import time
from pathlib import Path
from typing import Protocol

from harness.errors import UsageError


class Device(Protocol):
    """What timing and memory need of a device. `synchronize` returns when all work given to it is done."""

    kind: str

    def clock(self) -> float:
        """Return seconds of a clock that never goes back."""

    def synchronize(self) -> None: ...

    def trim(self) -> None:
        """Give back to the system what the process holds and does not use."""

    def reset_peak(self) -> bool:
        """Let the peak begin at what is used now; False where that is refused."""

    def memory_bytes(self) -> int | None: ...

    def peak_bytes(self) -> int | None:
        """Return the most memory in use since the peak was reset."""


class CpuDevice:
    """The host. Its work is done when the call returns; its memory is the process's own (resident set)."""

    kind = "cpu"

    def __init__(self, proc: Path = Path("/proc/self")) -> None:
        self._proc = proc

    def clock(self) -> float:
        return time.perf_counter()

    def synchronize(self) -> None:
        pass

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

    def _status(self, field: str) -> int | None:
        """Bytes of a field of the kernel's status file; None where the kernel does not tell."""
        try:
            lines = (self._proc / "status").read_text().splitlines()
        except OSError:
            return None
        kib = next((line.split()[1] for line in lines if line.startswith(f"{field}:")), None)
        return None if kib is None else int(kib) * 1024


def open_device(kind: str) -> Device:
    """Return the device of a profile's `kind`.

    Raises:
        UsageError: no such kind.
    """
    if kind == CpuDevice.kind:
        return CpuDevice()
    raise UsageError(f'Device kind "{kind}" is unknown. Known: cpu.')
