"""The committed device profiles: what the announcement's devices share, and who vouches for which."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness import config
from harness.journal import replay

ROOT = Path(__file__).parents[3]
PROFILES = {name: config.device(name) for name in config.devices()}
EXAMPLES = {path.name: replay(path).run for path in sorted((ROOT / "examples").glob("*.jsonl.gz"))}


def test_devices_of_the_announcement() -> None:
    """All devices that are asked for have a profile."""
    assert {"a100", "rtx3090", "h200", "cpu-x86", "graviton3", "mps", "cpu", "cuda"} <= set(PROFILES)


@pytest.mark.parametrize("name", [name for name, profile in PROFILES.items() if profile.kind == "cuda"])
def test_gpus_are_comparable(name: str) -> None:
    """NVIDIA's GPUs run the lists' own batch sizes, with the announcement's AMP, and are numbered by the driver."""
    profile = PROFILES[name]

    assert (1, "float16", True) == (profile.batch_divisor, profile.amp_dtype, profile.tf32)
    assert "PCI_BUS_ID" == profile.environment["CUDA_DEVICE_ORDER"]
    assert profile.device_reserve_bytes > 0


def test_processors_are_comparable() -> None:
    """The CPUs run the same batches in the same formats, pinned."""
    x86, arm = PROFILES["cpu-x86"], PROFILES["graviton3"]

    assert (x86.batch_divisor, x86.amp_dtype, x86.pin) == (arm.batch_divisor, arm.amp_dtype, arm.pin)
    assert x86.pin


@pytest.mark.parametrize("name", PROFILES)
def test_vouched_for(name: str) -> None:
    """Each journal that a profile names is an example, and was run with that profile."""
    for journal in PROFILES[name].verified_by:
        assert journal in sorted(EXAMPLES)
        assert name == EXAMPLES[journal].profile.name


@pytest.mark.parametrize("journal", EXAMPLES)
def test_examples_vouch(journal: str) -> None:
    """The profile of each example names it, if it is one of those committed."""
    name = EXAMPLES[journal].profile.name

    assert name not in PROFILES or journal in PROFILES[name].verified_by
