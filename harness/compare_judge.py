"""One metric of many cases in, one verdict each out: which way is better, how small a change counts, how sure it is.

Where both sides have an interval, a change of the logarithm gets one: half-widths added in squares, for each end by
itself (the method of variance estimates recovery, Zou and Donner 2008; `stats.geometric_mean` does the same). Then

    better, worse    the 95 % interval excludes no change, and the change is at least the floor
    same             the 90 % interval lies wholly within the floor: two one-sided tests at 5 %
    inconclusive     neither

Without an interval the figures are taken as they are, and `Ground` says so: at least the floor is a change, less is
not.
Floors are compared in logarithms, +2 % with -1.96 %, so that changing sides mirrors every verdict.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from operator import attrgetter

import numpy as np
from numpy.typing import NDArray

from harness.compare_points import Point
from harness.compare_rules import RULES, TRAITS, Metric, Rules, number
from harness.stats import Floats

NARROWER = 1.6448536269514722 / 1.959963984540054
"""Half-width of a 90 % interval, as a share of that of a 95 % one: those of a normal distribution."""

ROUNDING = 1e-12
"""In a logarithm: 2.04 against 2.00 is 2 %, whatever the last bit of their logarithms says."""


class Judgement(StrEnum):
    """What became of one metric of one case."""

    BETTER = "better"
    WORSE = "worse"
    SAME = "same"
    INCONCLUSIVE = "inconclusive"
    ABSENT = "absent"
    """A side has no such number, or none that may be compared."""

    @property
    def mirrored(self) -> Judgement:
        """What it is with the sides changed."""
        return {Judgement.BETTER: Judgement.WORSE, Judgement.WORSE: Judgement.BETTER}.get(self, self)


class Ground(StrEnum):
    """What a judgement stands on."""

    INTERVAL = "interval"
    STATED = "stated"
    """A side has no interval: the figures are taken as they are."""
    COUNTED = "counted"
    """Whole numbers that do not vary by chance."""


JUDGEMENTS = tuple(Judgement)
"""A code of `Judged.codes` is a place in here."""


@dataclass(frozen=True, slots=True)
class MetricChange:
    """One metric of one case.

    Args:
        change: head / base - 1, unrounded; None where the base is zero.
        low, high: ends of its 95 % interval, where both sides have one.
        floor: the smallest change that counts; of a counted metric, the smallest difference.
        why: why it is absent.
    """

    metric: Metric
    judgement: Judgement
    ground: Ground | None
    base: float | None
    head: float | None
    change: float | None
    low: float | None
    high: float | None
    floor: float
    why: str | None = None


@dataclass(frozen=True)
class Judged:
    """One metric of many cases, column by column. Inside these arrays, and nowhere else, NaN stands for unknown."""

    metric: Metric
    floor: float
    codes: NDArray[np.intp]
    log: Floats
    """ln head - ln base; of a counted metric the same, where neither is zero."""
    low: Floats
    high: Floats

    @property
    def intervals(self) -> NDArray[np.bool_]:
        """Whether there is an interval, of each case that has a change at all."""
        return ~np.isnan(self.low[~np.isnan(self.log)])

    @cached_property
    def listed(self) -> list[Judgement]:
        return [JUDGEMENTS[code] for code in self.codes.tolist()]

    @cached_property
    def counts(self) -> dict[Judgement, int]:
        """Cases per judgement, zeros too."""
        found = np.bincount(self.codes, minlength=len(JUDGEMENTS)).tolist()
        return dict(zip(JUDGEMENTS, found, strict=True))

    @cached_property
    def _shares(self) -> tuple[list[float | None], ...]:
        """Change, and low and high end of its interval, of every case: one by one they would cost ten times this."""
        return tuple(map(_shares, (self.log, self.low, self.high)))

    def at(self, row: int, base: Point, head: Point) -> MetricChange:
        """Return the change of one case, whose points are given for their numbers."""
        judgement = self.listed[row]
        known = judgement != Judgement.ABSENT
        change, low, high = (shares[row] for shares in self._shares)
        interval = Ground.STATED if math.isnan(self.low[row]) else Ground.INTERVAL
        return MetricChange(
            metric=self.metric,
            judgement=judgement,
            ground=None if not known else Ground.COUNTED if TRAITS[self.metric].counted else interval,
            base=number(base, self.metric),
            head=number(head, self.metric),
            change=change,
            low=low,
            high=high,
            floor=self.floor,
            why=None if known else _why_absent(self.metric, base, head),
        )


def judge_all(pairs: Sequence[tuple[Point, Point]], rules: Rules = RULES) -> dict[Metric, Judged]:
    """Return the judgements of every metric over pairs of base and head."""
    base, head = (_columns([pair[side] for pair in pairs]) for side in (0, 1))
    both = base["valid"] * head["valid"] > 0
    found = {}
    for metric, trait in TRAITS.items():
        names = (metric.value, *(trait.ends or ()))
        old, new = ([np.where(both | (not trait.timed), side[name], np.nan) for name in names] for side in (base, head))
        found[metric] = (_count if trait.counted else judge)(metric, old, new, rules.floor(metric))
    return found


def judge(metric: Metric, base: Sequence[Floats], head: Sequence[Floats], floor: float) -> Judged:
    """Return the judgements of a metric whose ratio says how much it changed.

    Args:
        base, head: value, and where there is one low and high end of its 95 % interval, each `(cases,)`; NaN: unknown.
        floor: smallest relative change that counts.
    """
    b, h = (_logs(side) for side in (base, head))
    log = h[0] - b[0]
    down, up = np.hypot(h[0] - h[1], b[2] - b[0]), np.hypot(h[2] - h[0], b[0] - b[1])
    low, high = log - down, log + up
    present, interval = ~np.isnan(log), ~(np.isnan(low) | np.isnan(high))
    limit = math.log1p(floor)
    large = np.abs(log) >= limit - ROUNDING
    changed = large & np.where(interval, (low > 0) | (high < 0), np.abs(log) > ROUNDING)
    within = (log - NARROWER * down >= -limit) & (log + NARROWER * up <= limit)
    same = present & ~changed & np.where(interval, within, True)
    return Judged(
        metric,
        floor,
        _codes(log if TRAITS[metric].more_is_better else -log, present, changed, same),
        log,
        np.where(interval, low, np.nan),
        np.where(interval, high, np.nan),
    )


def _count(metric: Metric, base: Sequence[Floats], head: Sequence[Floats], floor: float) -> Judged:
    """The same of whole numbers, by their difference: nothing is divided, so that zero is a number like any other."""
    more = head[0] - base[0]
    present = np.isfinite(more)
    changed = present & (np.abs(more) >= floor) & (more != 0)
    codes = _codes(more if TRAITS[metric].more_is_better else -more, present, changed, present & ~changed)
    unknown = np.full(len(more), np.nan)
    return Judged(metric, floor, codes, _log(head[0]) - _log(base[0]), unknown, unknown)


def _codes(
    gain: Floats, present: NDArray[np.bool_], changed: NDArray[np.bool_], same: NDArray[np.bool_]
) -> NDArray[np.intp]:
    place = JUDGEMENTS.index
    return np.select(
        [~present, changed & (gain > 0), changed & (gain < 0), same],
        [place(Judgement.ABSENT), place(Judgement.BETTER), place(Judgement.WORSE), place(Judgement.SAME)],
        place(Judgement.INCONCLUSIVE),
    )


def _logs(side: Sequence[Floats]) -> tuple[Floats, Floats, Floats]:
    """Logarithms of value, low and high; an interval that leaves its own value out grows to hold it."""
    value, low, high = (_log(each) for each in side) if len(side) == 3 else (_log(side[0]), *_unknown(len(side[0])))
    return value, np.minimum(low, value), np.maximum(high, value)


def _unknown(n: int) -> tuple[Floats, Floats]:
    return np.full(n, np.nan), np.full(n, np.nan)


def _log(values: Floats) -> Floats:
    """NaN where there is no positive, finite number."""
    good = np.isfinite(values) & (values > 0)
    return np.where(good, np.log(np.where(good, values, 1.0)), np.nan)


_FIELDS = ("valid", *dict.fromkeys(name for m, trait in TRAITS.items() for name in (m.value, *(trait.ends or ()))))


def _columns(points: Sequence[Point]) -> dict[str, Floats]:
    values = np.array(list(map(attrgetter(*_FIELDS), points)), dtype=np.float64).reshape(len(points), len(_FIELDS))
    return dict(zip(_FIELDS, values.T, strict=True))


LARGEST = 30.0
"""In a logarithm: a factor of 1e13, beyond which a share less one keeps no digits, and far beyond any real change."""


def _shares(logs: Floats) -> list[float | None]:
    good = np.abs(logs) <= LARGEST
    return np.where(good, np.expm1(np.where(good, logs, 0.0)), None).tolist()  # type: ignore[call-overload,no-any-return]


def _why_absent(metric: Metric, base: Point, head: Point) -> str:
    sides = {"base": base, "head": head}
    numbers = {side: number(point, metric) for side, point in sides.items()}
    lacking = [side for side, value in numbers.items() if value is None]
    if lacking:
        return "neither side has one" if len(lacking) == 2 else f"the {lacking[0]} has none"
    zero = [side for side, value in numbers.items() if value is not None and value <= 0]
    if zero:
        return f"the {' and the '.join(zero)} has {numbers[zero[0]]:g}, which has no ratio"
    invalid = [
        f"the {side} is not valid" + (f": {p.text}" if p.text else "") for side, p in sides.items() if not p.valid
    ]
    return "; ".join(invalid)
