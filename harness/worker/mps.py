"""Apple's GPUs. Memory is the host's; there is no float64, no peak to reset, and nobody tells clocks."""

from __future__ import annotations

import gc

import torch

from harness.errors import BenchError
from harness.host import cpu
from harness.worker.device import Device, EventStopwatch, Stopwatch


class MpsDevice(Device):
    """The GPU of an Apple processor, through Metal."""

    kind = "mps"
    torch_type = "mps"

    def __init__(self) -> None:
        if not torch.backends.mps.is_available():
            raise BenchError(
                f"The profile asks for Apple's GPU, and torch {torch.__version__} finds none. It needs a Mac with an "
                "Apple processor, and a torch that was built for it."
            )

    def synchronize(self) -> None:
        torch.mps.synchronize()

    def product(self) -> str | None:
        return cpu.read().name  # GPU and CPU are one chip, e.g. `Apple M2`

    def refuses(self, dtype: torch.dtype) -> str | None:
        wide = dtype in (torch.float64, torch.complex128)
        return f"Metal has no {str(dtype).removeprefix('torch.')}" if wide else None

    def trim(self) -> None:
        gc.collect()
        torch.mps.empty_cache()

    def memory_bytes(self) -> int | None:
        return torch.mps.current_allocated_memory()

    def stopwatch(self) -> Stopwatch | None:
        return EventStopwatch(lambda: torch.mps.Event(enable_timing=True))
