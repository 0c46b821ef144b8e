"""Compiled against eager against float64: numbers first, then the verdict.

The rule is the upstream runner's: a leaf passes when it is elementwise close to eager's; else when its
root mean square error (RMSE) against the float64 reference is not much above eager's own. One thing is
stricter: the absolute part of the tolerance goes by the size of the leaf (`size_of`).
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from statistics import median

import torch
from torch import Tensor

from harness.record import Accuracy, Leaf, Reference
from harness.worker.leaves import Leaves, Value
from suites.spec import Precision

MAX_FAILED = 10
"""Failed leaves that a record holds; the rest is counted."""

CHUNK = 1 << 20
"""Elements that are compared at a time: float64 copies of a whole leaf could be gigabytes."""

SMALLEST_SIZE = 1e-3
"""Below it values are held to an absolute tolerance again: a gradient that is zero in theory (a bias before a batch
norm) is rounding noise of 1e-9, and no two ways of computing it agree."""

SMALLEST_UPDATE = 1.0
"""The same for what an optimizer did, in learning rates: Adam divides a gradient by its own size, noise too."""

SPECIAL_TOLERANCE = 4e-2
"""Upstream's: how near to float64 the compiled numbers must be where eager has none."""

_HALF = {Precision.AMP: torch.bfloat16, Precision.BF16: torch.bfloat16, Precision.FP16: torch.float16}


@dataclass(frozen=True)
class Noise:
    """How far two eager runs of the same numbers lie apart."""

    by_leaf: dict[str, float] = field(default_factory=dict)
    """RMSE of the leaves that are not the same bit for bit."""
    differing: tuple[Leaf, ...] = ()
    """Leaves that differ by more than the tolerance, or at all where they are no floating numbers."""

    @property
    def worst(self) -> float:
        return max(self.by_leaf.values(), default=0.0)


@dataclass(frozen=True)
class Rounding:
    """How far rounding alone moves the leaves of one case (`harness.worker.rounding`)."""

    by_leaf: Mapping[str, float] = field(default_factory=dict)
    """RMSE that is forgiven, for each leaf that moves."""
    details: Mapping[str, str] = field(default_factory=dict)
    """Of each leaf that moves by more than is forgiven: by how much."""
    worst: float = 0.0
    """Largest share of a leaf's RMS by which rounding moves it, forgiven or not."""


def compare(
    eager: Leaves,
    compiled: Leaves,
    reference: Leaves | None,
    *,
    tolerance: float,
    noise: Noise | None = None,
    rounding: Rounding | None = None,
    precision: Precision = Precision.FP32,
    reference_why: str | None = None,
) -> Accuracy:
    """Hold every leaf of `compiled` against `eager`, and where those are not close, both against `reference`.

    Containers, keys, lengths, shapes and types must be the same; integers, bools and texts equal; NaN and
    infinities at the same places. Floating leaves: see `_judge_numbers`. A missing gradient counts as zeros.

    Args:
        reference: the float64 run; None: eager itself, at the tolerance (never a mere direction).
        noise: eager's own run-to-run difference, added to what is allowed.
        rounding: what eager moves by when its weights are off by a rounding; the larger of it and its error is allowed.
    """
    typical = _typical_errors(eager, reference) if reference is not None else {}
    rule = _Rule(tolerance, precision, noise or Noise(), reference is not None, typical, rounding or Rounding())
    verdicts = list(_verdicts(eager, compiled, reference, rule))
    failed = [verdict for verdict in verdicts if not verdict.passed]
    telling = [verdict for verdict in verdicts if verdict.leaf.error is not None or not verdict.passed]
    worst = max(telling, key=lambda verdict: verdict.ratio, default=None)
    return Accuracy(
        reference=Reference.EAGER if reference is None else Reference.FLOAT64,
        reference_why=reference_why,
        tolerance=tolerance,
        leaves=len(eager.values),
        failed_count=len(failed),
        failed=tuple(verdict.leaf for verdict in failed[:MAX_FAILED]),
        worst=worst.leaf if worst is not None else None,
        eager_noise=None if noise is None else noise.worst,
        rounding=None if rounding is None else rounding.worst,
    )


def eager_noise(first: Leaves, second: Leaves, tolerance: float, precision: Precision = Precision.FP32) -> Noise:
    """Measure the difference of two eager runs from one state: normally none, bit for bit."""
    verdicts = list(_verdicts(first, second, None, _Rule(tolerance, precision, Noise(), False)))
    return Noise(
        {verdict.leaf.name: verdict.leaf.error for verdict in verdicts if verdict.leaf.error},
        tuple(verdict.leaf for verdict in verdicts if not verdict.passed),
    )


@dataclass(frozen=True)
class _Rule:
    tolerance: float
    precision: Precision
    noise: Noise
    has_reference: bool
    typical: Mapping[str, float] = field(default_factory=dict)
    """Eager's typical error per kind of leaf, as a share of the leaf's size."""
    rounding: Rounding = field(default_factory=Rounding)

    @property
    def closeness(self) -> float:
        """Elementwise tolerance, relative and absolute.

        Without float64 there is no telling how much of a difference is rounding, so nothing finer than
        twice the number format's spacing is asked for.
        """
        half = _HALF.get(self.precision)
        floor = 0.0 if half is None or self.has_reference else 2 * torch.finfo(half).eps
        return max(self.tolerance, floor)

    def multiplier(self, tensor: Tensor) -> float:
        """Return how many times eager's error is allowed: more where few or coarse numbers make it a poor estimate."""
        coarse = self.precision in _HALF or tensor.dtype in (torch.bfloat16, torch.float16) or self.tolerance >= 2e-2
        one_by_one = tensor.ndim == 4 and tensor.shape[-2:] == (1, 1)
        return 3.0 if coarse or one_by_one or tensor.numel() < 1000 else 2.0


@dataclass(frozen=True)
class _Verdict:
    leaf: Leaf
    passed: bool

    @property
    def ratio(self) -> float:
        """Error over allowed; infinite for a failure that is no number."""
        if self.leaf.error is None:
            return 0.0 if self.passed else math.inf
        return self.leaf.error / self.leaf.allowed if self.leaf.allowed else (0.0 if self.passed else math.inf)


@dataclass
class _Eager:
    """A leaf of compiled against eager's. `finite` elements have a number on both sides."""

    finite: int = 0
    far: int = 0
    """Finite, and not elementwise close."""
    compiled_special: int = 0
    """NaN or infinite (or another infinity) in compiled where eager is not the same."""
    eager_special: int = 0
    """NaN or infinite in eager where compiled has a number."""
    error: float = 0.0
    slack: float = 0.0


@dataclass
class _Exact:
    """A leaf of compiled and of eager against float64's, where all three have a number."""

    judged: int = 0
    far_unjudged: int = 0
    """Elements not close to eager's where float64 has no number."""
    rescued: bool = True
    """Compiled and float64 have numbers everywhere, within `SPECIAL_TOLERANCE` of each other."""
    compiled_error: float = 0.0
    eager_error: float = 0.0


def _verdicts(eager: Leaves, compiled: Leaves, reference: Leaves | None, rule: _Rule) -> Iterator[_Verdict]:
    broken: list[str] = []
    for name in {**eager.structure, **compiled.structure}:
        one, other = eager.structure.get(name), compiled.structure.get(name)
        if one != other and not _is_below(name, broken):
            broken.append(name)
            yield _failed(name, f"eager {one or _missing(eager, name)}, compiled {other or _missing(compiled, name)}")
    for name in {**eager.values, **compiled.values}:
        if _is_below(name, broken):
            continue
        if name not in eager.values or name not in compiled.values:
            yield _failed(name, f"eager {_missing(eager, name)}, compiled {_missing(compiled, name)}")
            continue
        exact = reference.values.get(name) if reference is not None else None
        yield _judge(name, eager.values[name], compiled.values[name], exact, rule)


def _judge(name: str, eager: Value, compiled: Value, exact: Value, rule: _Rule) -> _Verdict:
    note = None
    if name.startswith("gradient.") and (eager is None) != (compiled is None):
        note = f"{'eager' if eager is None else 'compiled'} has no gradient: counted as zeros"
        eager = torch.zeros_like(compiled) if eager is None and isinstance(compiled, Tensor) else eager
        compiled = torch.zeros_like(eager) if compiled is None and isinstance(eager, Tensor) else compiled
    if type(eager) is float and type(compiled) is float:
        eager, compiled = torch.tensor(eager, dtype=torch.float64), torch.tensor(compiled, dtype=torch.float64)
        exact = torch.tensor(exact, dtype=torch.float64) if isinstance(exact, float) else None
    if not isinstance(eager, Tensor) or not isinstance(compiled, Tensor):
        equal = type(eager) is type(compiled) and bool(eager == compiled)
        return (
            _Verdict(Leaf(name=name), True)
            if equal
            else _failed(name, f"eager {_say(eager)}, compiled {_say(compiled)}")
        )
    if eager.shape != compiled.shape or eager.dtype != compiled.dtype:
        return _failed(name, f"eager {_say(eager)}, compiled {_say(compiled)}")
    if not (eager.is_floating_point() or eager.is_complex()):
        return _judge_exact(name, eager, compiled)
    reference = exact if isinstance(exact, Tensor) and exact.shape == eager.shape else None
    return _judge_numbers(name, eager, compiled, reference, rule, note)


def _judge_exact(name: str, eager: Tensor, compiled: Tensor) -> _Verdict:
    wrong = (eager != compiled).nonzero()
    if not len(wrong):
        return _Verdict(Leaf(name=name), True)
    at = tuple(wrong[0].tolist())
    became = f"{eager[at].item()} became {compiled[at].item()}"
    return _failed(name, f"{len(wrong)} of {eager.numel()} differ, first at {list(at)}: {became}")


def _judge_numbers(
    name: str, eager: Tensor, compiled: Tensor, reference: Tensor | None, rule: _Rule, note: str | None
) -> _Verdict:
    """Judge one floating leaf.

    1. A NaN or infinity in compiled where eager has a number fails. One in eager where compiled has a number
       passes only if compiled and float64 have numbers everywhere, within 4e-2 of each other.
    2. Elementwise close (rtol = tolerance, atol = tolerance * size) passes; its error is the RMSE against eager.
       The size is that of the leaf itself, see `size_of`.
    3. Else RMSE(compiled, float64) <= max(multiplier * RMSE(eager, float64), rounding) + tolerance / 10 * size + noise,
       where eager's error counts as at least that of a typical leaf of its kind. Without float64 eager stands in
       for it, so that its own error is none.
    """
    size = size_of(name, eager)
    against = _against_eager(eager, compiled, rule.closeness, size)
    noise, rounding = rule.noise.by_leaf.get(name, 0.0), rule.rounding.by_leaf.get(name, 0.0)
    if against.compiled_special:
        where = f"{against.compiled_special} of {eager.numel()} places"
        return _failed(name, f"compiled has NaN or infinity at {where}, eager has not")
    error = _rms(against.error, against.finite)
    if not against.far and not against.eager_special:
        return _numbers(name, error, _rms(against.slack, against.finite) + noise, True, note)
    exact = None if reference is None else _against_float64(eager, compiled, reference, rule.closeness, size)
    if against.eager_special:
        where = f"{against.eager_special} of {eager.numel()} places"
        detail = f"eager has NaN or infinity at {where}, compiled has not"
        return _Verdict(Leaf(name=name, detail=detail), exact is not None and exact.rescued)
    detail = f"{against.far} of {eager.numel()} elements are not close to eager's"
    allowed = rounding + rule.closeness / 10 * size + noise
    if exact is not None:
        if exact.far_unjudged:
            return _failed(name, f"{detail}, and at {exact.far_unjudged} of them float64 has no number")
        error = _rms(exact.compiled_error, exact.judged)
        own = max(_rms(exact.eager_error, exact.judged), rule.typical.get(_kind(name), 0.0) * size)
        allowed = max(rule.multiplier(eager) * own, rounding) + rule.tolerance / 10 * size + noise
    details = filter(None, (note, detail, rule.rounding.details.get(name)))
    return _numbers(name, error, allowed, error <= allowed, "; ".join(details))


def _typical_errors(eager: Leaves, reference: Leaves) -> dict[str, float]:
    """Return the median, per kind of leaf, of eager's error as a share of the leaf's size.

    The error of a single leaf is one draw: in bfloat16 one rounding that switches a ReLU moves a whole row of a small
    gradient, and eager may have been lucky there. What eager misses over all gradients is the better measure.
    """
    shares: dict[str, list[float]] = {}
    for name, value in eager.values.items():
        exact = reference.values.get(name)
        if not isinstance(value, Tensor) or not isinstance(exact, Tensor) or value.shape != exact.shape:
            continue
        if value.is_floating_point() or value.is_complex():
            sums = _against_float64(value, value, exact, 0.0, 0.0)
            error = _rms(sums.eager_error, sums.judged)
            shares.setdefault(_kind(name), []).append(error / size_of(name, value))
    return {kind: median(values) for kind, values in shares.items()}


def _kind(name: str) -> str:
    """Return what a leaf is of: `output`, `loss`, `gradient`, `buffer`, `update` or `input`."""
    return re.split(r"[.\[]", name, maxsplit=1)[0]


def size_of(name: str, eager: Tensor, largest: float = 1.0) -> float:
    """Return the size that the absolute part of the tolerance goes by: the leaf's RMS, between 1e-3 and `largest`.

    Upstream takes 1 for every leaf. Gradients of untrained networks lie around 1e-3, and a tolerance of 1e-2
    then lets a gradient of zeros pass (docs/decisions/0002).
    """
    smallest = SMALLEST_UPDATE if name.startswith("update.") else SMALLEST_SIZE
    return min(max(rms_of(eager), smallest), largest)


def rms_of(eager: Tensor) -> float:
    """Return the root mean square of the elements that are numbers; 0: there are none."""
    total, count = 0.0, 0
    for (part,) in _chunks(eager):
        finite = part[part.isfinite()]
        total += _sum_of_squares(finite)
        count += finite.numel()
    return _rms(total, count)


def _against_eager(eager: Tensor, compiled: Tensor, tolerance: float, size: float) -> _Eager:
    sums = _Eager()
    for e, c in _chunks(eager, compiled):
        e_finite, c_finite = e.isfinite(), c.isfinite()
        finite = e_finite & c_finite
        count = int(finite.sum())
        if count < e.numel():
            same = (e == c) | (e.isnan() & c.isnan())
            sums.compiled_special += int((~same & ~c_finite).sum())
            sums.eager_special += int((~same & ~e_finite & c_finite).sum())
            e, c = e[finite], c[finite]
        error, slack = (c - e).abs_(), e.abs().add_(size).mul_(tolerance)
        sums.finite += count
        sums.far += int((error > slack).sum())
        sums.error += _sum_of_squares(error)
        sums.slack += _sum_of_squares(slack)
    return sums


def _against_float64(eager: Tensor, compiled: Tensor, reference: Tensor, tolerance: float, size: float) -> _Exact:
    sums = _Exact()
    for e, c, r in _chunks(eager, compiled, reference):
        both, exact = e.isfinite() & c.isfinite(), r.isfinite()
        judged = both & exact
        far = (c - e).abs() > tolerance * (size + e.abs())
        near = (c - r).abs() <= SPECIAL_TOLERANCE * (1 + r.abs())
        sums.judged += int(judged.sum())
        sums.far_unjudged += int((far & both & ~exact).sum())
        sums.rescued = sums.rescued and bool((c.isfinite() & exact & near).all())
        sums.compiled_error += _sum_of_squares((c - r)[judged])
        sums.eager_error += _sum_of_squares((e - r)[judged])
    return sums


def _chunks(*sides: Tensor) -> Iterator[tuple[Tensor, ...]]:
    """Yield the sides side by side, flat, in float64, some elements at a time."""
    for parts in zip(*(torch.split(_flat(side), CHUNK) for side in sides), strict=True):
        yield tuple(part.double() for part in parts)


def _sum_of_squares(values: Tensor) -> float:
    return float(torch.dot(values, values))


def _flat(tensor: Tensor) -> Tensor:
    tensor = torch.view_as_real(tensor.resolve_conj()) if tensor.is_complex() else tensor
    return tensor.reshape(-1)


def _rms(total: float, count: int) -> float:
    """Return the root of the mean square; bounded, since a record holds no infinity."""
    return min(math.sqrt(total / count), sys.float_info.max) if count else 0.0


def _numbers(name: str, error: float, allowed: float, passed: bool, detail: str | None) -> _Verdict:
    return _Verdict(
        Leaf(name=name, error=error, allowed=min(allowed, sys.float_info.max), detail=detail or None), passed
    )


def _failed(name: str, detail: str) -> _Verdict:
    return _Verdict(Leaf(name=name, detail=detail), False)


def _is_below(name: str, broken: list[str]) -> bool:
    return any(name == above or name.startswith((f"{above}.", f"{above}[")) for above in broken)


def _missing(leaves: Leaves, name: str) -> str:
    return leaves.structure.get(name) or (_say(leaves.values[name]) if name in leaves.values else "nothing")


def _say(value: Value) -> str:
    if isinstance(value, Tensor):
        return f"{str(value.dtype).removeprefix('torch.')} of shape {tuple(value.shape)}"
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
