"""The models that are valid on both sides of a comparison, and their geometric means.

Means over different models are never set beside each other without saying so: what fails leaves a mean, which then
rises.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from harness.compare_changes import BY_NUMBERS, Change
from harness.compare_judge import Judgement
from harness.compare_points import Point
from harness.compare_rules import Metric, number
from harness.stats import Estimate, NoEstimate, cluster_interval, geometric_mean
from harness.summary import LeftOut

Answer = Estimate | NoEstimate

OF_THE_POINT = "as its side states it"
CHANGE_OF_RATIO = "head / base, half-widths added in squares"


@dataclass(frozen=True)
class Means:
    """Geometric mean speedup of the base, of the head, and of head / base."""

    base: Answer
    head: Answer
    ratio: Answer


@dataclass(frozen=True)
class Cohort:
    """The cases of one suite in one configuration. What is asked of it is computed once, when it is asked.

    Args:
        changes: of all its cases, valid or not.
        families: `suite/model` -> its family, where that is known; a model without one is a family of its own.
    """

    suite: str
    label: str
    changes: tuple[Change, ...]
    families: Mapping[str, str] | None = None

    @cached_property
    def members(self) -> tuple[Change, ...]:
        """The cases whose speedup is valid on both sides."""
        return tuple(each for each in self.changes if each.judgement(Metric.SPEEDUP) != Judgement.ABSENT)

    @cached_property
    def left_out(self) -> tuple[LeftOut, ...]:
        """Every other case, with the reason."""
        members = {id(each) for each in self.members}
        return tuple(
            LeftOut(model=each.point.model, why=_why(each)) for each in self.changes if id(each) not in members
        )

    @cached_property
    def these(self) -> Means:
        """With the interval of the measurement: did these models move?"""
        base, head, ratio = (geometric_mean(side) for side in self._estimates)
        return Means(base, head, ratio)

    @cached_property
    def like_these(self) -> Means:
        """With the interval by families, drawn with replacement: what should other models like these expect?"""
        if self.families is None:
            unknown = NoEstimate("the families of these models are not known")
            return Means(unknown, unknown, unknown)
        families = [self.families.get(each.point.name, f"only {each.point.name}") for each in self.members]
        base, head, ratio = (cluster_interval([each.value for each in side], families) for side in self._estimates)
        return Means(base, head, ratio)

    @cached_property
    def own(self) -> tuple[Answer, Answer]:
        """The means of whatever is valid on the base, and on the head: of different models, unless `same_models`."""
        return _mean(each.base for each in self.changes), _mean(each.head for each in self.changes)

    @property
    def same_models(self) -> bool:
        """Whatever is valid on one side is valid on the other too."""
        counts = {answer.n if isinstance(answer, Estimate) else 0 for answer in self.own}
        return counts == {len(self.members)}

    @cached_property
    def _estimates(self) -> tuple[list[Estimate], list[Estimate], list[Estimate]]:
        """Speedups of the members: of the base, of the head, and head / base."""
        base = [_speedup(each.base) for each in self.members if each.base]
        head = [_speedup(each.head) for each in self.members if each.head]
        return base, head, [_ratio(each) for each in self.members]


def cohorts(changes: Sequence[Change], families: Mapping[str, str] | None = None) -> tuple[Cohort, ...]:
    """Return a cohort per suite and configuration, in the order of the changes."""
    groups: dict[tuple[str, str], list[Change]] = {}
    for each in changes:
        groups.setdefault((each.point.suite, each.point.label), []).append(each)
    return tuple(Cohort(suite, label, tuple(group), families) for (suite, label), group in groups.items())


def _mean(points: Iterable[Point | None]) -> Answer:
    return geometric_mean([_speedup(point) for point in points if point and _counts(point)])


def _counts(point: Point) -> bool:
    return point.valid and (number(point, Metric.SPEEDUP) or 0) > 0


def _speedup(point: Point) -> Estimate:
    assert point.speedup is not None, "its speedup is valid"
    return Estimate(point.speedup, point.speedup_low, point.speedup_high, 1, OF_THE_POINT)


def _ratio(each: Change) -> Estimate:
    judged = each.judged[Metric.SPEEDUP]
    log, low, high = (float(values[each.row]) for values in (judged.log, judged.low, judged.high))
    if math.isnan(low):
        return Estimate(math.exp(log), None, None, 1, CHANGE_OF_RATIO)
    return Estimate(math.exp(log), math.exp(low), math.exp(high), 1, CHANGE_OF_RATIO)


def _why(each: Change) -> str:
    if each.base is None or each.head is None:
        return f"only in the {'base' if each.base else 'head'}"
    base, head = _trouble(each.base), _trouble(each.head)
    if base and base == head:
        return f"{base} on both sides"
    return "; ".join(f"{words} in the {side}" for side, words in (("base", base), ("head", head)) if words)


def _trouble(point: Point) -> str | None:
    if point.outcome not in BY_NUMBERS:
        return point.outcome.value
    if not point.valid:
        return f"not valid ({point.text})" if point.text else "not valid"
    return None if _counts(point) else "no speedup"
