"""The models that are valid on both sides of a comparison, and their geometric means.

Means over different models are never set beside each other without saying so: what fails leaves a mean, which then
rises.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from harness.compare_changes import BY_NUMBERS, Change
from harness.compare_judge import Judgement
from harness.compare_points import Point
from harness.compare_rules import Metric, number
from harness.stats import Estimate, NoEstimate, cluster_interval, geometric_mean_of
from harness.summary import LeftOut

Answer = Estimate | NoEstimate


@dataclass(frozen=True)
class Means:
    """Geometric mean speedup of the base, of the head, and of head / base."""

    base: Answer
    head: Answer
    ratio: Answer


@dataclass(frozen=True)
class Speedups:
    """Speedups, or ratios of two, with the ends of their intervals: columns, since a comparison has thousands.

    Args:
        rows: value, low, high; where there is no interval the value stands for its ends.
        bounded: all have an interval.
    """

    rows: Sequence[tuple[float, float, float]]
    bounded: bool

    @classmethod
    def of(cls, points: Sequence[Point]) -> Speedups:
        """As each side states them."""
        found = [(point.speedup or 0.0, point.speedup_low, point.speedup_high) for point in points]
        bounded = all(low is not None and high is not None for _, low, high in found)
        return cls([(v, v if lo is None else lo, v if hi is None else hi) for v, lo, hi in found], bounded)

    @classmethod
    def ratios(cls, changes: Sequence[Change]) -> Speedups:
        """Head / base, half-widths added in squares."""
        if not changes:
            return cls([], True)
        judged, places = changes[0].judged[Metric.SPEEDUP], [each.row for each in changes]
        log, low, high = (values[places] for values in (judged.log, judged.low, judged.high))
        bounded = not bool(np.isnan(low).any())
        ends = [np.where(np.isnan(end), log, end) for end in (low, high)]
        return cls(np.exp(np.column_stack([log, *ends])).tolist(), bounded)

    @cached_property
    def mean(self) -> Answer:
        return geometric_mean_of(self.rows, self.bounded)


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
        base, head, ratio = (side.mean for side in self._sides)
        return Means(base, head, ratio)

    @cached_property
    def like_these(self) -> Means:
        """With the interval by families, drawn with replacement: what should other models like these expect?"""
        if self.families is None:
            unknown = NoEstimate("the families of these models are not known")
            return Means(unknown, unknown, unknown)
        families = [self.families.get(each.point.name, f"only {each.point.name}") for each in self.members]
        base, head, ratio = (cluster_interval([row[0] for row in side.rows], families) for side in self._sides)
        return Means(base, head, ratio)

    @cached_property
    def own(self) -> tuple[Answer, Answer]:
        """The means of whatever is valid on the base, and on the head: of different models, unless `same_models`."""
        base, head = (
            [each for each in side if each and _counts(each)]
            for side in ([each.base for each in self.changes], [each.head for each in self.changes])
        )
        if len(base) == len(head) == len(self.members):  # then they are the members
            return self.these.base, self.these.head
        return Speedups.of(base).mean, Speedups.of(head).mean

    @property
    def same_models(self) -> bool:
        """Whatever is valid on one side is valid on the other too."""
        counts = {answer.n if isinstance(answer, Estimate) else 0 for answer in self.own}
        return counts == {len(self.members)}

    @cached_property
    def _sides(self) -> tuple[Speedups, Speedups, Speedups]:
        """Speedups of the members: of the base, of the head, and head / base."""
        base = Speedups.of([each.base for each in self.members if each.base])
        head = Speedups.of([each.head for each in self.members if each.head])
        return base, head, Speedups.ratios(self.members)


def cohorts(changes: Sequence[Change], families: Mapping[str, str] | None = None) -> tuple[Cohort, ...]:
    """Return a cohort per suite and configuration, in the order of the changes."""
    groups: dict[tuple[str, str], list[Change]] = {}
    for each in changes:
        groups.setdefault((each.point.suite, each.point.label), []).append(each)
    return tuple(Cohort(suite, label, tuple(group), families) for (suite, label), group in groups.items())


def _counts(point: Point) -> bool:
    return point.valid and (number(point, Metric.SPEEDUP) or 0) > 0


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
