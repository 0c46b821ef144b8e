"""Two runs' results in, one verdict per case and metric out: the same for the terminal, the API and the pages.

Pure: knows no database and no torch. `compare_points` says what is put in, `compare_rules` how one metric is judged,
`compare_changes` what that means for a case, `compare_cohort` for the mean of many. What the words mean to a reader
stands in docs/comparing.md.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

from harness.compare_changes import Change, Note, Verdict, one_sided, two_sided
from harness.compare_cohort import Cohort, cohorts
from harness.compare_environments import Difference, differences
from harness.compare_judge import Judgement, judge_all
from harness.compare_points import Point
from harness.compare_rules import RULES, Metric, Rules
from harness.record import Environment

WITHIN_ONE_LAUNCH = (
    "Each side was measured within one launch of the interpreter. The intervals tell nothing of what another launch "
    "would give: before a build is blamed, measure both builds in several launches."
)


NO_INTERVALS = (
    "Where a side states figures without intervals they are taken as they are: nothing is known of their noise."
)


class Machine(StrEnum):
    """Whether both sides were measured on one machine, as far as hard fingerprints tell."""

    SAME = "same"
    DIFFERENT = "different"
    UNKNOWN = "unknown"
    """A side does not say."""


@dataclass(frozen=True)
class Refused:
    """No comparison: the sides were measured on machines, or by methods, that start different series.

    Args:
        base, head: the hard fingerprints.
        differences: of the environments, where both were given; the hard ones say what is in the way.
    """

    base: tuple[str, ...]
    head: tuple[str, ...]
    differences: tuple[Difference, ...]

    @property
    def hard(self) -> tuple[Difference, ...]:
        return tuple(each for each in self.differences if each.hard)


@dataclass(frozen=True)
class Comparison:
    """Every case of two sides, in the order of the base, those that only the head has at the end.

    Args:
        differences: of the environments, where both were given.
        families: `suite/model` -> its family, for the interval of models like these.
    """

    changes: tuple[Change, ...]
    machine: Machine
    rules: Rules
    differences: tuple[Difference, ...] = ()
    families: Mapping[str, str] | None = None

    @cached_property
    def caveat(self) -> str:
        """What the intervals of these speedups do not cover, or that there are none."""
        judged = next((each.judged[Metric.SPEEDUP] for each in self.changes if each.judged), None)
        if judged is None or judged.intervals.all():
            return WITHIN_ONE_LAUNCH
        return f"{WITHIN_ONE_LAUNCH} {NO_INTERVALS}" if judged.intervals.any() else NO_INTERVALS

    @cached_property
    def counts(self) -> dict[Verdict, int]:
        """Cases per verdict, zeros too; they add up to all."""
        found = Counter(each.verdict for each in self.changes)
        return {verdict: found[verdict] for verdict in Verdict}

    @cached_property
    def judgements(self) -> dict[Metric, dict[Judgement, int]]:
        """Cases per metric and judgement, of those that both sides have."""
        judged = next((each.judged for each in self.changes if each.judged), None)  # one mapping, of all of these
        nothing = dict.fromkeys(Judgement, 0)
        return {metric: dict(judged[metric].counts) if judged else nothing for metric in Metric}

    @cached_property
    def cohorts(self) -> tuple[Cohort, ...]:
        """What is valid on both sides, per suite and configuration."""
        return cohorts(self.changes, self.families)

    @property
    def against(self) -> bool:
        """A case regressed, or its outcome got worse."""
        return any(each.against for each in self.changes)


def compare(
    base: Sequence[Point],
    head: Sequence[Point],
    *,
    rules: Rules = RULES,
    across: bool = False,
    environments: tuple[Environment, Environment] | None = None,
    families: Mapping[str, str] | None = None,
) -> Comparison | Refused:
    """Return the verdict of every case, or a refusal where the sides have different hard fingerprints.

    Args:
        across: compare nevertheless, and match what differs in device or batch size alone by model and configuration.
        environments: of base and head.
        families: `suite/model` -> its family.

    Raises:
        ValueError: a case is on one side twice.
    """
    pairs = _matched(base, head, across)
    differing = differences(*environments) if environments else ()
    machine = _machine(pairs)
    if machine == Machine.DIFFERENT and not across:
        return Refused(_fingerprints(base), _fingerprints(head), differing)
    return Comparison(_changes(pairs, rules), machine, rules, differing, families)


ORDER = (
    Verdict.REGRESSED,
    Verdict.STATUS_CHANGED,
    Verdict.IMPROVED,
    Verdict.INCONCLUSIVE,
    Verdict.SAME,
    Verdict.ONLY_LEFT,
    Verdict.ONLY_RIGHT,
)
"""Of rows, what needs a look first; within a verdict the largest change first."""


def shown(comparison: Comparison, unchanged: bool = False) -> list[Change]:
    """Return the rows in the order of reading. A flat ratio of two slower sides is no unchanged row."""
    rows = [
        each
        for each in comparison.changes
        if unchanged or each.verdict != Verdict.SAME or {Note.BOTH_SLOWER, Note.BOTH_FASTER} & {*each.notes}
    ]
    return sorted(rows, key=lambda each: (ORDER.index(each.verdict), not each.against, -(each.size or 0)))


Pairs = list[tuple[Point | None, Point | None]]


def _changes(pairs: Pairs, rules: Rules) -> tuple[Change, ...]:
    both = [(base, head) for base, head in pairs if base and head]
    changes = iter(two_sided(both, judge_all(both, rules), rules))
    return tuple(next(changes) if base and head else one_sided(base, head) for base, head in pairs)


def _matched(base: Sequence[Point], head: Sequence[Point], across: bool) -> Pairs:
    new = _by_case(head, "head")
    pairs: Pairs = [(point, new.pop(point.case_id, None)) for point in _by_case(base, "base").values()]
    if across:
        old = _unique(old for old, match in pairs if old and not match)
        others = _unique(new.values())
        same = {old[key].case_id: others[key] for key in old if key in others}
        pairs = [(point, match or (same.get(point.case_id) if point else None)) for point, match in pairs]
        for match in same.values():
            del new[match.case_id]
    return [*pairs, *((None, point) for point in new.values())]


def _by_case(points: Sequence[Point], side: str) -> dict[str, Point]:
    found = {point.case_id: point for point in points}
    if len(found) < len(points):
        case, times = Counter(point.case_id for point in points).most_common(1)[0]
        raise ValueError(f"case {case} ({found[case].name}) is {times} times in the {side}")
    return found


def _unique(points: Iterable[Point]) -> dict[tuple[str, str, str], Point]:
    """The points by model and configuration, without those that share theirs: which is meant would be a guess."""
    listed = list(points)
    times = Counter(point.key for point in listed)
    return {point.key: point for point in listed if times[point.key] == 1}


def _machine(pairs: Pairs) -> Machine:
    """Pair by pair; where no case is on both sides, any fingerprint that both have will do."""
    both = [(base.hard, head.hard) for base, head in pairs if base and head]
    if not both:
        old, new = ({point.hard for point in side if point} for side in zip(*pairs, strict=True)) if pairs else ({}, {})
        both = [(a, b) for a in old for b in new]
        both = [pair for pair in both if pair[0] == pair[1]] or both
    if any(a and b and a != b for a, b in both):
        return Machine.DIFFERENT
    return Machine.SAME if all(a and b for a, b in both) else Machine.UNKNOWN


def _fingerprints(points: Sequence[Point]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(point.hard for point in points if point.hard))
