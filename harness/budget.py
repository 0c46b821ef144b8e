"""A plan, how long its cases took before, a limit -> the same plan, in which what does not fit is left out. Pure.

A case is expected to take as long as it took; else as its model did in another precision, mode or batch; else as its
entry declares; else as the mean of what was measured for such cases. Never longer than its time limit.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import zip_longest
from typing import TypeVar

from harness.errors import UsageError
from harness.record import NO_BACKEND, Case, Outcome, Planned
from suites.spec import Mode, Preset

T = TypeVar("T")

_Costs = list[tuple[int, float]]
"""Cases by their place in the plan, each with its seconds."""


class Source(StrEnum):
    """How the duration of a case is known, the best first."""

    PAST = "past"
    """It ran before."""
    MODEL = "model"
    """Its model ran before in another precision, mode or batch."""
    ENTRY = "entry"
    """Its entry says so."""
    DEFAULT = "default"


@dataclass(frozen=True)
class Past:
    """How long a case took, and how it ended."""

    case: Case
    seconds: float
    outcome: Outcome


@dataclass(frozen=True)
class Expected:
    """How long a case will take, as far as is known."""

    seconds: float
    source: Source


@dataclass(frozen=True)
class Fitted:
    """A whole plan, in its order; cases beyond the limit are skipped in it. Without a limit nothing is, or is expected.

    Args:
        expected: of each case of the plan; None: it is skipped anyway.
    """

    plan: tuple[Planned, ...]
    expected: tuple[Expected | None, ...]
    limit_s: float | None = None

    @classmethod
    def whole(cls, plan: tuple[Planned, ...]) -> Fitted:
        """Return a plan without a limit."""
        return cls(plan, (None,) * len(plan))

    @property
    def fitting(self) -> tuple[Expected, ...]:
        """What is expected of the cases that fit, in the order of the plan."""
        pairs = zip(self.plan, self.expected, strict=True)
        return tuple(expected for planned, expected in pairs if planned.skip is None and expected is not None)

    @property
    def left_out(self) -> tuple[Planned, ...]:
        pairs = zip(self.plan, self.expected, strict=True)
        return tuple(planned for planned, expected in pairs if planned.skip is not None and expected is not None)


_COMPILED = "compiled by others"

DEFAULT_S: Mapping[tuple[Preset, str], Mapping[Mode, float]] = {
    (Preset.FULL, "inductor"): {Mode.INFERENCE: 67.0, Mode.TRAINING: 165.0},
    (Preset.FULL, _COMPILED): {Mode.INFERENCE: 23.0, Mode.TRAINING: 39.0},
    (Preset.FULL, NO_BACKEND): {Mode.INFERENCE: 5.2, Mode.TRAINING: 10.1},
    (Preset.SMALL, "inductor"): {Mode.INFERENCE: 35.0, Mode.TRAINING: 63.0},
    (Preset.SMALL, _COMPILED): {Mode.INFERENCE: 15.0, Mode.TRAINING: 37.0},
    (Preset.SMALL, NO_BACKEND): {Mode.INFERENCE: 3.5, Mode.TRAINING: 3.8},
}
"""Mean seconds of a case on two CPU cores; means, as sums are made of them.

Full: the 61 of timm, batch 1, FP32. Training with inductor is longer as it was for the ten smallest, 2.45 times; other
backends take what is left without the compile stage. Small: the toy suite, and 27 models of TorchBench with aot_eager,
while other work ran on the same cores: rather too long.
"""

_WHOLE = (Outcome.PASS, Outcome.FAIL_ACCURACY)
"""A case that ended otherwise may have been broken off, which says nothing about the others of its model."""


def fit(plan: Sequence[Planned], past: Iterable[Past], limit_s: float) -> Fitted:
    """Return the plan with every case skipped that does not fit into the limit beside those chosen before it.

    Cases are chosen in turns, a model from each suite and in a suite from each family, the cheapest first; those of
    one model follow each other. The run keeps the order of the plan.

    Args:
        past: the newest of each case, of runs that measured the same.
        limit_s: of all cases together; starting the workers comes on top.

    Raises:
        UsageError: the limit is not positive, or less than any case takes.
    """
    if not 0 < limit_s < math.inf:
        raise UsageError(f"--limit-seconds {limit_s:g}: must be above 0, and finite.")
    expected = _expected(plan, past)
    chosen: dict[int, float] = {}
    for place, seconds in _turns(plan, expected):
        if math.fsum((*chosen.values(), seconds)) <= limit_s:
            chosen[place] = seconds
    if not chosen and any(expected):
        place, cheapest = min(
            ((place, each) for place, each in enumerate(expected) if each), key=lambda pair: pair[1].seconds
        )
        raise UsageError(
            f"--limit-seconds {limit_s:g}: nothing fits. The cheapest case, {plan[place].case}, takes about "
            f"{cheapest.seconds:.0f} s ({cheapest.source}). Raise the limit."
        )
    why = f"left out: does not fit into --limit-seconds {limit_s:g}"
    fitted = (
        planned if place in chosen or planned.skip is not None else planned.model_copy(update={"skip": why})
        for place, planned in enumerate(plan)
    )
    return Fitted(tuple(fitted), expected, limit_s)


# -- how long -----------------------------------------------------------------------------------


def default_s(case: Case) -> float:
    """Return the mean of what was measured for cases of this preset, backend and mode."""
    kind = case.backend if case.backend in ("inductor", NO_BACKEND) else _COMPILED
    return DEFAULT_S[case.preset, kind][case.mode]


def _expected(plan: Sequence[Planned], past: Iterable[Past]) -> tuple[Expected | None, ...]:
    itself: dict[str, Past] = {}
    alike: dict[tuple[str, ...], list[Past]] = {}
    for each in past:
        itself[each.case.id] = each
        if each.outcome in _WHOLE:
            alike.setdefault(_model(each.case), []).append(each)
    return tuple(
        _of_case(planned, itself.get(planned.case.id), alike.get(_model(planned.case), ()))
        if planned.skip is None
        else None
        for planned in plan
    )


def _of_case(planned: Planned, itself: Past | None, alike: Sequence[Past]) -> Expected:
    case = planned.case
    same_mode = [each for each in alike if each.case.mode == case.mode]
    if itself is not None:
        seconds, source = itself.seconds, Source.PAST
    elif alike:
        # The longest: a limit is kept rather than overrun.
        seconds, source = max(_scaled(each.seconds, each.case, case) for each in same_mode or alike), Source.MODEL
    elif planned.spec.case_s is not None:
        declared = case.model_copy(update={"backend": "inductor", "mode": Mode.INFERENCE})
        seconds, source = _scaled(planned.spec.case_s, declared, case), Source.ENTRY
    else:
        seconds, source = default_s(case), Source.DEFAULT
    return Expected(min(seconds, planned.orders.timeout_s), source)


def _model(case: Case) -> tuple[str, ...]:
    return case.suite, case.model, case.device, case.backend, case.compile_mode, case.preset


def _scaled(seconds: float, known: Case, wanted: Case) -> float:
    """Cases of a model are as many times longer than others as the defaults are."""
    return seconds * default_s(wanted) / default_s(known)


# -- in which order ---------------------------------------------------------------------------


def _turns(plan: Sequence[Planned], expected: Sequence[Expected | None]) -> _Costs:
    """Return the places of the cases that may run, with their seconds, in the order in which they are chosen."""
    suites: dict[str, dict[str, dict[str, _Costs]]] = {}
    for place, (planned, each) in enumerate(zip(plan, expected, strict=True)):
        if each is not None:
            families = suites.setdefault(planned.case.suite, {})
            models = families.setdefault(planned.spec.family or planned.case.model, {})
            models.setdefault(planned.case.model, []).append((place, each.seconds))
    in_turns = _alternating([_of_suite(families) for families in suites.values()])
    return [cost for model in in_turns for cost in model]


def _of_suite(families: Mapping[str, Mapping[str, _Costs]]) -> list[_Costs]:
    """Return the models of a suite, one of each family and then the next of each, the cheapest first."""
    rows = [sorted(models.values(), key=_seconds) for models in families.values()]
    return _alternating(sorted(rows, key=lambda models: _seconds(models[0])))


def _seconds(model: _Costs) -> float:
    return math.fsum(seconds for _, seconds in model)


def _alternating(rows: Iterable[Sequence[T]]) -> list[T]:
    """Return the first of each row, then the second of each that has one, and so on."""
    return [each for turn in zip_longest(*rows) for each in turn if each is not None]
