"""One launch of an A/A test: the same step on both sides, every sample on stdout as one line of JSON.

python -m harness.worker.noise '{"profile": {"name": "cpu", "kind": "cpu"}, "seconds": 2, "seed": 0}'
"""

from __future__ import annotations

import random
import sys

import torch
from torch import nn

from harness.doctor.noise import LAUNCH, Assignment, Work
from harness.errors import BenchError
from harness.host import cpu
from harness.record import Timing
from harness.worker.device import Device, open_device
from harness.worker.main import pin
from harness.worker.timing import Step, time_pairs

ARRAY_BYTES = 128 << 20
"""Two such arrays are read and written: together beyond the last cache of all but the largest servers."""

MAX_PAIRS = 160
"""As in a run."""


def main() -> None:
    """Measure each kind of work and print its samples."""
    assignment = Assignment.model_validate_json(sys.argv[1])
    profile, facts = assignment.profile, cpu.read()
    pinned = pin(facts) if profile.pin else ()
    torch.set_num_threads(profile.threads or len(pinned) or facts.physical_cores)
    torch.set_grad_enabled(False)
    torch.manual_seed(assignment.seed)
    try:
        device = open_device(profile)
    except BenchError as error:
        sys.exit(str(error))
    launch = {work: sample(make(device.torch_type), device, assignment) for work, make in WORKS.items()}
    print(LAUNCH.dump_json(launch).decode())


def convolutions(torch_type: str) -> Step:
    """Two convolutions on data that fits a core's caches: bound by arithmetic."""
    module = nn.Sequential(nn.Conv2d(64, 64, 3, padding=1), nn.ReLU(), nn.Conv2d(64, 64, 3, padding=1)).eval()
    module, images = module.to(torch_type), torch.randn(1, 64, 56, 56).to(torch_type)
    return lambda: module(images)


def addition(torch_type: str) -> Step:
    """Read one large array and write another: bound by memory."""
    values = torch.ones(ARRAY_BYTES // 4, device=torch_type)
    target = torch.empty_like(values)
    return lambda: torch.add(values, 1.0, out=target)


WORKS = {Work.COMPUTE: convolutions, Work.MEMORY: addition}


def sample(step: Step, device: Device, assignment: Assignment) -> Timing:
    return time_pairs(
        step,
        step,
        device,
        precision_target=0.0,
        max_seconds=assignment.seconds,
        max_pairs=MAX_PAIRS,
        rng=random.Random(assignment.seed),
    )


if __name__ == "__main__":
    main()
