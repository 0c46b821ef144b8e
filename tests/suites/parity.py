"""Shows that a network written anew computes what the original did, without the original.

The facts were measured on the original classes: tests/data/torchbench_models.csv and torchbench_fingerprints.json.
Parameters are filled by a rule that knows their shapes alone; so equal outputs mean equal networks, up to a swap of
parameters of one shape.
"""

from __future__ import annotations

import csv
import hashlib
import json
import math
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

DATA = Path(__file__).parent.parent / "data"
TABLE = {row["name"]: row for row in csv.DictReader((DATA / "torchbench_models.csv").read_text().splitlines())}
FINGERPRINTS = json.loads((DATA / "torchbench_fingerprints.json").read_text())

CHUNK = 1 << 24


def is_gain(module: nn.Module, name: str) -> bool:
    """Say whether a vector is the gain of a norm."""
    return name == "weight" and isinstance(module, nn.modules.batchnorm._NormBase | nn.LayerNorm | nn.GroupNorm)


def facts(module: nn.Module) -> tuple[int, int, str]:
    """Return parameters, parameter tensors and digest of the shapes; a shared tensor counts once."""
    parameters = list(module.parameters())
    shapes = sorted("x".join(map(str, each.shape)) for each in parameters)
    digest = hashlib.sha256("\n".join(shapes).encode()).hexdigest()[:16]
    return sum(each.numel() for each in parameters), len(parameters), digest


def wave(*shape: int) -> Tensor:
    """Return sin(1), sin(2), ... in float32, in rows."""
    return _sines(math.prod(shape)).float().reshape(shape)


def ints(below: int, *shape: int) -> Tensor:
    """Return (7 i + 3) mod `below` for i = 0, 1, ..., in rows."""
    return ((7 * torch.arange(math.prod(shape)) + 3) % below).reshape(shape)


@torch.no_grad()
def filled(module: nn.Module, gain: Callable[[nn.Module, str], bool] = is_gain) -> nn.Module:
    """Fill every parameter by its shape, in place; return the module in eval mode."""
    seen: set[int] = set()
    for owner in module.modules():
        for name, parameter in owner.named_parameters(recurse=False):
            if id(parameter) in seen:
                continue
            seen.add(id(parameter))
            flat = parameter.view(-1)
            for start in range(0, flat.numel(), CHUNK):
                part = flat[start : start + CHUNK]
                sines = torch.sin(torch.arange(start + 1, start + len(part) + 1, dtype=torch.float64))
                if parameter.ndim >= 2:
                    sines *= 2 / math.sqrt(parameter.numel() / parameter.shape[0])
                elif gain(owner, name):
                    sines = 1 + 0.25 * sines
                else:
                    sines *= 0.1
                part.copy_(sines)
    return module.eval()


def assert_computes(name: str, outputs: Sequence[Tensor]) -> None:
    """Hold outputs against the recorded ones: shape, mean, standard deviation, first, middle and last element."""
    expected = FINGERPRINTS[name]["outputs"]

    assert len(expected) == len(outputs)
    for wanted, output in zip(expected, outputs, strict=True):
        flat = output.detach().double().flatten()
        found = {
            "mean": flat.mean(),
            "std": flat.std(correction=0),
            "first": flat[0],
            "mid": flat[len(flat) // 2],
            "last": flat[-1],
        }
        assert wanted["shape"] == list(output.shape)
        assert {key: wanted[key] for key in found} == pytest.approx(
            {key: value.item() for key, value in found.items()}, rel=1e-3, abs=1e-5
        )


def _sines(count: int) -> Tensor:
    return torch.sin(torch.arange(1, count + 1, dtype=torch.float64))
