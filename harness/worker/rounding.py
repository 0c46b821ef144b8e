"""How far rounding alone moves the leaves of a step: eager again, with every weight off by one rounding.

Where a check fails, this says whether the failure is any compiler's. A unit of a ReLU within rounding of zero, or a
long sum in bfloat16, comes out otherwise in any other order of the same operations, and float64 cannot tell which
of the two answers is the better one. Rounding errors put into the data, and what they do looked at, is Monte Carlo
arithmetic (D. S. Parker, 1997); here with two runs (docs/decisions/0011).
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Mapping, Sequence

import torch
from torch import Tensor

from harness.record import Accuracy, Case
from harness.worker.accuracy import Rounding, eager_noise, rms_of, size_of
from harness.worker.collect import State, Step, collect, restore
from harness.worker.leaves import Leaves
from harness.worker.step import Prepared, seed_everything
from suites.spec import Precision

FINE_LIMIT = 0.02
"""Most that is forgiven in FP32, a share of a leaf's RMS: one ReLU that switches was seen to move gradients by 1 %."""

COARSE_LIMIT = 0.5
"""The same in formats of 8 or 11 bits, TF32 too. An answer of zeros is wrong by 1, one of the other sign by 2."""

FINE_NUDGE = 2.0**-18
"""In FP32. One rounding, 2^-24, is not enough: a compiled forward pass was seen 3 times as far from float64 as eager's,
and the unit that it switched switches almost surely only where the nudge moves it by several times as much."""

MOST_PAIRS = 4
"""One is enough where each leaf is moved by many roundings; single switches take more, each pair has others."""

NOISE_FACTOR = 10.0
"""A leaf that moves by half of itself is noise: a sum that is zero in theory, as the gradient of a bias before a batch
norm. How far from zero it comes out depends on the order of its terms: compiled was seen at 9 and 12 times eager's."""

TF32_ROUNDOFF = 2.0**-11
"""Numbers of 10 stored bits go into the products."""


def rounding(prepared: Prepared, step: Step, state: State, eager: Leaves, seed: int) -> Iterator[Rounding]:
    """Run pairs of eager steps with nudged weights; yield after each pair how far all until then move each leaf.

    The two of a pair are nudged by opposite signs: a unit nearer to zero than it is moved by switches in one of them.
    Nothing comes where nothing can be told: no floating weights, or a model that refuses nudged ones, be it for memory.

    Args:
        eager: what the step gave with the weights of `state`. The module has these again at each yield.
    """
    floating = [name for name, weight in prepared.module.named_parameters() if weight.is_floating_point()]
    nudge = nudge_of(prepared.case)
    moved: dict[str, float] = {}
    for pair in range(MOST_PAIRS if floating else 0):
        try:
            for sign in (1, -1):
                other = collect(prepared, step, _nudged(state, floating, sign * nudge, seed + pair), seed)
                for name, error in eager_noise(eager, other, 0.0).by_leaf.items():
                    moved[name] = max(error, moved.get(name, 0.0))
        except Exception:  # whatever a model raises: the failure that stands is another one
            return
        finally:
            restore(prepared, state)
        yield _bounded(moved, eager, FINE_LIMIT if nudge == FINE_NUDGE else COARSE_LIMIT)


def may_be_rounding(accuracy: Accuracy) -> bool:
    """Whether a check failed, and in numbers alone: no rounding makes another shape, integer or infinity."""
    return accuracy.failed_count > 0 and all(leaf.error is not None for leaf in accuracy.failed)


def nudge_of(case: Case) -> float:
    """Return the share of itself by which a weight is moved: what one rounding can do, in FP32 64 of them."""
    if case.precision == Precision.FP32 and not case.tf32:
        return FINE_NUDGE
    if case.precision == Precision.FP32:
        return TF32_ROUNDOFF
    half = torch.float16 if case.precision == Precision.FP16 or case.amp_dtype == "float16" else torch.bfloat16
    return torch.finfo(half).eps / 2


def _nudged(state: State, names: Sequence[str], share: float, seed: int) -> State:
    """Return `state` with each element of these weights larger or smaller by `share` of itself, as a coin says."""
    seed_everything(seed)
    return State({**state.tensors, **{name: _nudge(state.tensors[name], share) for name in names}}, state.optimizer)


def _nudge(weight: Tensor, share: float) -> Tensor:
    signs = torch.empty_like(weight).bernoulli_(0.5).mul_(2).sub_(1)
    # Not `weight * (1 + share)`: 1 and a roundoff is 1.
    return weight.addcmul(weight, signs, value=share)


def _bounded(moved: Mapping[str, float], eager: Leaves, limit: float) -> Rounding:
    by_leaf, details, worst = {}, {}, 0.0
    for name, error in moved.items():
        value = eager.values[name]
        if not isinstance(value, Tensor):
            continue
        size = size_of(name, value, largest=math.inf)
        forgiven = NOISE_FACTOR * error if error > rms_of(value) / 2 else error
        worst = max(worst, min(error / size, sys.float_info.max))
        by_leaf[name] = min(forgiven, limit * size)
        if error > limit * size:
            details[name] = f"rounding alone moves it by {error / size:.2g} of its size, counted as {limit:g}"
    return Rounding(by_leaf, details, worst)
