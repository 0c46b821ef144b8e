"""NVIDIA's GPUs, and AMD's where torch was built for them. Imported and touched in the child alone."""

from __future__ import annotations

import gc
import os

import torch

from harness.errors import BenchError
from harness.host import nvml
from harness.host.reading import Reading
from harness.worker.device import Device, EventStopwatch, Stopwatch
from suites.spec import Precision

BFLOAT16_FROM = (8, 0)
"""Compute capability with instructions for bfloat16; before, torch converts to float32 and back."""


class CudaDevice(Device):
    """The first GPU that the process may see. Its memory is what torch's allocator has given out.

    Memory is not seen inside the replay of a CUDA graph, which allocates nothing.
    """

    kind = "cuda"
    torch_type = "cuda"

    def __init__(self) -> None:
        # The driver's own order, so that numbers mean the same to it and to CUDA; read when CUDA starts.
        os.environ.setdefault("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
        if not torch.cuda.is_available():
            raise BenchError(
                f"The profile asks for a CUDA device, and torch {torch.__version__} finds none. Look at nvidia-smi, at "
                "CUDA_VISIBLE_DEVICES, and whether this torch was built for CUDA."
            )
        try:
            torch.cuda.synchronize()
        except RuntimeError as error:
            raise BenchError(f"CUDA does not start: {str(error).splitlines()[0]}. Look at nvidia-smi.") from error
        self._properties = torch.cuda.get_device_properties(0)
        self._monitor = _monitor(getattr(self._properties, "uuid", None))

    def synchronize(self) -> None:
        torch.cuda.synchronize()

    def product(self) -> str | None:
        return torch.cuda.get_device_name(0)

    def emulates(self, precision: Precision, amp_dtype: str | None) -> bool:
        bfloat16 = precision == Precision.BF16 or (precision == Precision.AMP and amp_dtype in (None, "bfloat16"))
        return bfloat16 and torch.version.hip is None and torch.cuda.get_device_capability(0) < BFLOAT16_FROM

    def limit(self, reserve_bytes: int) -> None:
        if reserve_bytes > 0:
            share = 1 - reserve_bytes / self._properties.total_memory
            torch.cuda.set_per_process_memory_fraction(max(0.0, share))

    def trim(self) -> None:
        gc.collect()
        torch.cuda.empty_cache()

    def reset_peak(self) -> bool:
        torch.cuda.reset_peak_memory_stats()
        return True

    def memory_bytes(self) -> int | None:
        return torch.cuda.memory_allocated()

    def peak_bytes(self) -> int | None:
        return torch.cuda.max_memory_allocated()

    def stopwatch(self) -> Stopwatch | None:
        return EventStopwatch(lambda: torch.cuda.Event(enable_timing=True))  # type: ignore[no-untyped-call]

    def highest_clock_mhz(self) -> float | None:
        return self._monitor.highest_clock_mhz if self._monitor else None

    def read(self) -> Reading:
        return self._monitor.read() if self._monitor else Reading()


def _monitor(uuid: object) -> nvml.Monitor | None:
    """Return the monitor of the GPU that CUDA calls `uuid`; of the first visible one where torch does not tell."""
    visible = nvml.gpus()
    same = [gpu for gpu in visible if uuid is not None and gpu.uuid == f"GPU-{uuid}"]
    return nvml.Monitor((same or visible)[0].index, at_work=True) if visible else None
