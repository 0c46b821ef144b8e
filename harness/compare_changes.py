"""One case on two sides -> its verdict, what decided it, and what else a reader should know of it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from harness.compare_judge import Judged, Judgement, MetricChange
from harness.compare_points import Point
from harness.compare_rules import Metric, Rules, number
from harness.record import Outcome


class Verdict(StrEnum):
    """What became of a case. Exactly one of these."""

    REGRESSED = "regressed"
    IMPROVED = "improved"
    SAME = "same"
    INCONCLUSIVE = "inconclusive"
    STATUS_CHANGED = "status_changed"
    ONLY_LEFT = "only_left"
    """The base alone has the case."""
    ONLY_RIGHT = "only_right"
    """The head alone has it."""

    @property
    def mirrored(self) -> Verdict:
        """What it is with the sides changed."""
        pairs = ((Verdict.REGRESSED, Verdict.IMPROVED), (Verdict.ONLY_LEFT, Verdict.ONLY_RIGHT))
        return {old: new for a, b in pairs for old, new in ((a, b), (b, a))}.get(self, self)


class Note(StrEnum):
    """What a flat ratio, or a table of names, does not show."""

    BOTH_SLOWER = "both_slower"
    """Eager and compiled take longer: the host or a library, rather than the compiler."""
    BOTH_FASTER = "both_faster"
    ANOTHER_CASE = "another_case"
    """Matched by model and configuration: the device or the batch size is another."""


NEITHER = frozenset({Outcome.SKIPPED, Outcome.MISSING, Outcome.UNKNOWN})
"""Outcomes that are neither success nor failure: not run, or a file from elsewhere does not say."""

BY_NUMBERS = (Outcome.PASS, Outcome.UNKNOWN)
"""Outcomes with which a case is judged by its numbers, where those are valid."""


@dataclass(frozen=True, slots=True)
class Change:
    """One case: at least one of `base` and `head` is there.

    Args:
        outcome: better: it passes now; worse: it failed, and passed before; inconclusive: it fails in another way;
            absent: a side was not run, does not say, or has no such case.
        by: the metric that decided, where one did.
        why: why it is inconclusive, or how both sides ended alike, where no metric says it.
        row, judged: where the metrics stand. A page reads the verdicts of all cases and the numbers of few, so these
            are made when they are asked for.
    """

    base: Point | None
    head: Point | None
    verdict: Verdict
    outcome: Judgement
    by: Metric | None = None
    why: str | None = None
    row: int = field(default=-1, repr=False, compare=False)
    judged: Mapping[Metric, Judged] = field(default_factory=dict, repr=False, compare=False)

    @property
    def point(self) -> Point:
        """The base, or else the head: for names."""
        point = self.base or self.head
        assert point is not None, "a case is on one side at least"
        return point

    @property
    def against(self) -> bool:
        """It counts against the head."""
        return self.verdict == Verdict.REGRESSED or self.outcome == Judgement.WORSE

    @property
    def metrics(self) -> tuple[MetricChange, ...]:
        """Every metric, in the order of `Metric`; none where one side has no such case."""
        return tuple(self.metric(metric) for metric in Metric) if self.base and self.head else ()

    def metric(self, metric: Metric) -> MetricChange:
        """Return one metric.

        Raises:
            ValueError: one side has no such case.
        """
        if self.base is None or self.head is None:
            raise ValueError(f"{self.point.name} is on one side only")
        return self.judged[metric].at(self.row, self.base, self.head)

    @property
    def notes(self) -> tuple[Note, ...]:
        if self.base is None or self.head is None:
            return ()
        eager, compiled = self.judgement(Metric.EAGER_TIME), self.judgement(Metric.COMPILED_TIME)
        both = _BOTH.get(eager) if eager == compiled else None
        another = Note.ANOTHER_CASE if self.base.case_id != self.head.case_id else None
        return tuple(note for note in (both, another) if note)

    def judgement(self, metric: Metric) -> Judgement:
        return self.judged[metric].listed[self.row] if self.base and self.head else Judgement.ABSENT

    @property
    def size(self) -> float | None:
        """How much the speedup changed, without its direction: |ln head - ln base|."""
        log = self.judged[Metric.SPEEDUP].log[self.row] if self.base and self.head else math.nan
        return None if math.isnan(log) else abs(float(log))


_BOTH = {Judgement.WORSE: Note.BOTH_SLOWER, Judgement.BETTER: Note.BOTH_FASTER}


def one_sided(base: Point | None, head: Point | None) -> Change:
    """Return the change of a case that only one side has."""
    return Change(base, head, Verdict.ONLY_LEFT if base else Verdict.ONLY_RIGHT, Judgement.ABSENT)


def two_sided(pairs: Sequence[tuple[Point, Point]], judged: Mapping[Metric, Judged], rules: Rules) -> list[Change]:
    """Return the changes of cases that both sides have; row by row their judgements stand in `judged`."""
    deciding = [(metric, judged[metric].listed) for metric in rules.deciding]
    changes = []
    for row, (base, head) in enumerate(pairs):
        if base.outcome in BY_NUMBERS and head.outcome in BY_NUMBERS:
            verdict, by, why = _verdict(base, head, [(metric, listed[row]) for metric, listed in deciding])
            outcome = Judgement.SAME if base.outcome == head.outcome else Judgement.ABSENT
            changes.append(Change(base, head, verdict, outcome, by, why, row, judged))
        else:
            verdict, outcome, why = _ended(base.outcome, head.outcome)
            changes.append(Change(base, head, verdict, outcome, None, why, row, judged))
    return changes


Found = Sequence[tuple[Metric, Judgement]]
"""The deciding metrics of one case, in their order."""


def _verdict(base: Point, head: Point, found: Found) -> tuple[Verdict, Metric | None, str | None]:
    """Of a case that is judged by its numbers: the first deciding metric that changed, else the first that there is."""
    for metric, judgement in found:
        if judgement == Judgement.WORSE:
            return Verdict.REGRESSED, metric, None
        if judgement == Judgement.BETTER:
            return Verdict.IMPROVED, metric, None
    for metric, judgement in found:
        if judgement == Judgement.SAME:
            return Verdict.SAME, metric, None
        if judgement == Judgement.INCONCLUSIVE or any(number(point, metric) is not None for point in (base, head)):
            return Verdict.INCONCLUSIVE, metric, None
    if base.outcome == head.outcome == Outcome.PASS:
        return Verdict.SAME, None, "both pass, and nothing else is known of either"
    return Verdict.INCONCLUSIVE, None, "no number is known of both"


def _ended(base: Outcome, head: Outcome) -> tuple[Verdict, Judgement, str | None]:
    """Verdict and outcome of a case that fails, or was not run, on one side or both."""
    if base == head == Outcome.MISSING:
        return Verdict.INCONCLUSIVE, Judgement.SAME, "not run on either side"
    if base == head:
        return Verdict.SAME, Judgement.SAME, f"still {base}"
    if base in NEITHER or head in NEITHER:
        return Verdict.STATUS_CHANGED, Judgement.ABSENT, None
    if head == Outcome.PASS:
        return Verdict.STATUS_CHANGED, Judgement.BETTER, None
    # Which of two failures is the worse one depends on who asks, and neither is news.
    worse = Judgement.WORSE if base == Outcome.PASS else Judgement.INCONCLUSIVE
    return Verdict.STATUS_CHANGED, worse, None
