"""Wakes an untrained network up, so that a wrong answer would show.

Networks are built with scales at zero (the last norm of a residual branch, layer scales) and with
running statistics that fit no input: whole branches are switched off, activations die out or
explode on the way, and outputs hardly depend on inputs. Any comparison then passes.
Measured effect: docs/results/sensitivity.md; the choice: docs/decisions/0001-filled-weights.md.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _NormBase

from suites.inputs import seeded, stream

NEARLY_ZERO = 1e-3
"""Layer scales start between 1e-6 and 1e-4; the smallest ordinary initialisation is a deviation of 0.01."""


def wake(module: nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any], seed: int) -> nn.Module:
    """Fill zero-initialised scales and set running statistics, in place, and return the module.

    Args:
        args, kwargs: arguments of the calibration pass. Give the same ones for every batch size and
            mode, and the weights are the same everywhere.
    """
    fill_scales(module, seed)
    calibrate(module, args, kwargs, seed)
    return module


def fill_scales(module: nn.Module, seed: int) -> list[str]:
    """Fill all-zero weights with seeded values of about 1 / sqrt(depth); return their names.

    Depth is the number of such weights: each closes one residual branch, and that many branches of
    variance 1 / depth together double the variance of the stream, whatever the depth. Vectors are
    gains, uniform between 0.5 and 1.5 of that; matrices and kernels are normal, scaled by their
    inputs as well. Biases stay as they are: at zero they switch nothing off.
    """
    zero = [
        (name, weight)
        for name, weight in module.named_parameters()
        if weight.is_floating_point() and weight.numel() > 0 and "bias" not in name.rsplit(".", 1)[-1]
        if weight.detach().abs().amax() <= NEARLY_ZERO
    ]
    for name, weight in zero:
        generator = stream(seed, f"fill/{name}")
        with torch.no_grad():
            weight.copy_(_small(weight, generator) / math.sqrt(len(zero)))
    return [name for name, _ in zero]


def _small(weight: Tensor, generator: torch.Generator) -> Tensor:
    if max(weight.shape, default=1) == weight.numel():  # a vector, or a layer scale such as (channels, 1, 1)
        return torch.rand(weight.shape, generator=generator, dtype=torch.float32) + 0.5
    fan_in = weight[0].numel()
    return torch.randn(weight.shape, generator=generator, dtype=torch.float32) / math.sqrt(fan_in)


def calibrate(module: nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any], seed: int) -> None:
    """Set all running statistics to those of one pass; everything but the norms is in eval mode meanwhile.

    Dropout stays off, as the statistics are read in eval mode. Modes and momenta are put back.
    """
    norms = _norms(module)
    if not norms:
        return
    modes = [(each, each.training) for each in module.modules()]
    momenta = [(each, each.momentum) for each in norms]
    try:
        module.eval()
        for norm in norms:
            norm.training = True
            norm.momentum = 1.0  # the new statistics replace the old ones
        with torch.no_grad(), seeded(seed):
            module(*args, **kwargs)
    finally:
        for each, training in modes:
            each.training = training
        for norm, momentum in momenta:
            norm.momentum = momentum


def has_running_statistics(module: nn.Module) -> bool:
    """Say whether a calibration pass would set anything."""
    return bool(_norms(module))


def _norms(module: nn.Module) -> list[_NormBase]:
    """Batch norms, and instance norms that keep statistics."""
    return [each for each in module.modules() if isinstance(each, _NormBase) and each.running_mean is not None]
