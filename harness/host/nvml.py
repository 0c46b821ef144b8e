"""NVIDIA's management library: which GPUs there are, what their clocks do, who works on them.

It needs the driver and the package nvidia-ml-py, and never touches CUDA: so a process that must not do that may look.
Where either is missing there are no GPUs and every reading is empty; nothing here raises, but for `hold`.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

import psutil

from harness.host.reading import Reading

REASONS = {
    0x004: "power cap",
    0x008: "hardware slowdown",
    0x010: "sync boost",
    0x020: "thermal",
    0x040: "hardware thermal",
    0x080: "power brake",
    0x100: "display clock",
    0x200: "board limit",
    0x400: "reliability",
}
"""Our words for the bits of `nvmlClocksEventReason*` in nvml.h that mean: slower than it could be. Left out are 0x1,
idle, and 0x2, clocks set by an application: a lock that was asked for is no throttle."""

_IDLE = 0x001


class Refused(Exception):
    """The driver does not do what was asked; the text is its reason."""


@dataclass(frozen=True)
class Gpu:
    """A GPU as the driver describes it."""

    index: int
    """The driver's number for it: in the order of the bus, whatever `CUDA_VISIBLE_DEVICES` says."""
    name: str
    memory_bytes: int | None = None
    driver: str | None = None
    uuid: str | None = None
    capability: tuple[int, int] | None = None
    """Compute capability, e.g. (8, 0)."""


def gpus() -> list[Gpu]:
    """Return the GPUs that CUDA would show this process, in its order; empty where there is no driver or no package.

    `CUDA_VISIBLE_DEVICES` is honoured in its forms: numbers, `GPU-...` and `MIG-...`, each of the latter two also
    shortened; as in CUDA, the first entry that fits nothing ends the list. Numbers are those of the bus, which CUDA
    uses with `CUDA_DEVICE_ORDER=PCI_BUS_ID`, and the worker sets that.
    """
    with _library() as nvml:
        if nvml is None:
            return []
        everything = [
            _gpu(nvml, handle, index)
            for index in range(_ask(nvml, "nvmlDeviceGetCount") or 0)
            if (handle := _ask(nvml, "nvmlDeviceGetHandleByIndex", index)) is not None
        ]
        return _visible(nvml, everything, os.environ.get("CUDA_VISIBLE_DEVICES"))


class Monitor:
    """Looks at one GPU. What the driver refuses to tell is None.

    Args:
        index: of a `Gpu`.
        at_work: this process itself works on the GPU. In a container the driver may name it by a number from outside:
            one nameless process is then taken for this one.
    """

    def __init__(self, index: int, *, at_work: bool = False) -> None:
        self._at_work = at_work
        self._nvml = _opened()
        self._handle = self._ask("nvmlDeviceGetHandleByIndex", index, handle=False)
        self.highest_clock_mhz: float | None = self._clock("nvmlDeviceGetMaxClockInfo", "NVML_CLOCK_SM")
        self.default_clock_mhz: float | None = self._clock(
            "nvmlDeviceGetDefaultApplicationsClock", "NVML_CLOCK_GRAPHICS"
        )
        """What the driver names as its default for applications."""

    def read(self) -> Reading:
        """Look once; takes from some microseconds to some milliseconds."""
        bits = self._ask("nvmlDeviceGetCurrentClocksEventReasons")
        if bits is None:  # drivers older than the new name
            bits = self._ask("nvmlDeviceGetCurrentClocksThrottleReasons")
        sensor = getattr(self._nvml, "NVML_TEMPERATURE_GPU", 0)
        temperature = self._ask("nvmlDeviceGetTemperatureV", sensor)
        if temperature is None:
            temperature = self._ask("nvmlDeviceGetTemperature", sensor)
        milliwatts = self._ask("nvmlDeviceGetPowerUsage")
        return Reading(
            clock_mhz=self._clock("nvmlDeviceGetClockInfo", "NVML_CLOCK_SM"),
            idle=bool((bits or 0) & _IDLE),
            throttle_reasons=tuple(word for bit, word in REASONS.items() if (bits or 0) & bit),
            temperature_c=temperature,
            power_w=None if milliwatts is None else milliwatts / 1000,
            foreign_processes=self._foreign(),
        )

    def hold(self, clock_mhz: int) -> None:
        """Hold the clock there until `release`, or the next start of the driver.

        Raises:
            Refused: most often for want of permission.
        """
        if self._nvml is None or self._handle is None:
            raise Refused("there is no NVIDIA driver, or no package nvidia-ml-py")
        try:
            self._nvml.nvmlDeviceSetGpuLockedClocks(self._handle, clock_mhz, clock_mhz)
        except self._nvml.NVMLError as error:
            raise Refused(str(error)) from error

    def release(self) -> None:
        """Let the clock go where the driver wants it."""
        self._ask("nvmlDeviceResetGpuLockedClocks")

    def _ask(self, function: str, *args: Any, handle: bool = True) -> Any:
        if self._nvml is None or (handle and self._handle is None):
            return None
        return _ask(self._nvml, function, *((self._handle, *args) if handle else args))

    def _clock(self, function: str, domain: str) -> float | None:
        answer = self._ask(function, getattr(self._nvml, domain, None))
        return None if answer is None else float(answer)

    def _foreign(self) -> tuple[str, ...]:
        """Names of the programs on the GPU that are neither this process nor descend from it."""
        pids = {process.pid for process in self._ask("nvmlDeviceGetComputeRunningProcesses") or ()}
        me = psutil.Process()
        others = pids - {me.pid}
        if others:  # asked only then, as it walks through all processes of the machine
            others -= {child.pid for child in me.children(recursive=True)}
        names = {pid: _name(pid) for pid in sorted(others)}
        nameless = [pid for pid, name in names.items() if name is None]
        if self._at_work and others == pids and nameless:
            del names[nameless[0]]
        return tuple(sorted(name or self._name_outside(pid) for pid, name in names.items()))

    def _name_outside(self, pid: int) -> str:
        path = _ask(self._nvml, "nvmlSystemGetProcessName", pid)
        return (path and PurePath(path).name) or f"unknown (process {pid})"


def _gpu(nvml: Any, handle: Any, index: int) -> Gpu:
    memory = _ask(nvml, "nvmlDeviceGetMemoryInfo", handle)
    return Gpu(
        index=index,
        name=_ask(nvml, "nvmlDeviceGetName", handle) or "NVIDIA GPU",
        memory_bytes=None if memory is None else int(memory.total),
        driver=_ask(nvml, "nvmlSystemGetDriverVersion"),
        uuid=_ask(nvml, "nvmlDeviceGetUUID", handle),
        capability=_ask(nvml, "nvmlDeviceGetCudaComputeCapability", handle),
    )


def _visible(nvml: Any, everything: list[Gpu], asked: str | None) -> list[Gpu]:
    if asked is None:
        return everything
    seen: list[Gpu] = []
    for word in (part.strip() for part in asked.split(",")):
        if word.startswith("MIG-"):
            found = _slice(nvml, everything, word)
        elif word.startswith("GPU-"):
            found = next((gpu for gpu in everything if gpu.uuid and gpu.uuid.startswith(word)), None)
        else:
            found = next((gpu for gpu in everything if word == str(gpu.index)), None)
        if found is None:
            break
        seen.append(found)
    return seen


def _slice(nvml: Any, everything: list[Gpu], uuid: str) -> Gpu | None:
    """Return a part of a GPU that was divided (MIG): its own name and memory, the number of the whole."""
    handle = _ask(nvml, "nvmlDeviceGetHandleByUUID", uuid)
    whole = None if handle is None else _ask(nvml, "nvmlDeviceGetDeviceHandleFromMigDeviceHandle", handle)
    index = None if whole is None else _ask(nvml, "nvmlDeviceGetIndex", whole)
    known = next((gpu for gpu in everything if gpu.index == index), None)
    return None if known is None else _gpu(nvml, handle, known.index)


@contextmanager
def _library() -> Iterator[Any]:
    """The library, opened for the block; None where it cannot be."""
    nvml = _opened()
    try:
        yield nvml
    finally:
        if nvml is not None:
            _ask(nvml, "nvmlShutdown")


def _opened() -> Any:
    try:
        nvml: Any = importlib.import_module("pynvml")
        nvml.nvmlInit()
    except Exception:  # no package, no driver, or one that does not answer: there is no GPU to be had
        return None
    return nvml


def _ask(nvml: Any, function: str, *args: Any) -> Any:
    """Return the driver's answer; None where it refuses, or the function is not known to package or driver."""
    try:
        return getattr(nvml, function)(*args)
    except (nvml.NVMLError, AttributeError):
        return None


def _name(pid: int) -> str | None:
    with suppress(psutil.Error):
        return str(psutil.Process(pid).name())
    return None
