"""Records of one run -> a `Summary` per suite and configuration. The one place where they are counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Literal

from harness.record import Configuration, Flag, Line, Outcome, Planned, Record
from harness.stats import Estimate, NoEstimate, geometric_mean, wilson
from suites.spec import Frozen

UNCLIPPED = "unclipped"
"""The rule of our geometric means: what failed has no speedup and is left out, and no speedup is raised or lowered."""


class LeftOut(Frozen):
    """A model that does not enter the geometric mean, and why."""

    model: str
    why: str


class Summary(Line):
    """How the cases of one suite in one configuration ended.

    The pass rate is passed / (planned - skipped); every planned case is in exactly one of `outcomes`.
    A case that ran but was held against nothing (`unchecked`) has the outcome `pass` and is not counted as passed.
    """

    type: Literal["summary"] = "summary"
    suite: str
    configuration: Configuration
    planned: int
    outcomes: Mapping[Outcome, int]
    passed: int
    unchecked: int
    pass_rate: Estimate | None
    """With Wilson's interval; None when everything was skipped."""
    speedup: Estimate | None
    """Geometric mean of the valid cases, with the interval of the measurement for these models."""
    no_speedup: str | None
    rule: str = UNCLIPPED
    """By which `speedup` was averaged."""
    emulated: int
    left_out: tuple[LeftOut, ...]
    compile_wall_s: float | None
    """Median over the cases that compiled."""
    memory_ratio: float | None
    """Median of eager peak / compiled peak."""


@dataclass(frozen=True, slots=True)
class Standing:
    """How one planned case stands: all that a summary needs of it."""

    model: str
    outcome: Outcome
    why: str | None = None
    """Why it is not in the geometric mean, where its outcome does not say it."""
    speedup: Estimate | None = None
    """Only where it is valid."""
    unchecked: bool = False
    """Ended as pass, but was held against nothing."""
    emulated: bool = False
    compile_wall_s: float | None = None
    memory_ratio: float | None = None


def standing(planned: Planned, record: Record | None) -> Standing:
    """Return how a planned case stands, with its newest record or without one."""
    if record is None:
        outcome = Outcome.SKIPPED if planned.skip else Outcome.MISSING
        return Standing(planned.case.model, outcome, planned.skip)
    derived, found, passed = record.derived, record.numbers, record.outcome == Outcome.PASS
    return Standing(
        model=planned.case.model,
        outcome=record.outcome,
        why=why_left_out(record.outcome, record.text, derived.invalid_why, derived.no_estimate),
        speedup=found.speedup if derived.valid else None,
        unchecked=passed and Flag.NO_REFERENCE in derived.flags,
        emulated=record.observed.emulated,
        compile_wall_s=found.compile_wall_s,
        memory_ratio=found.memory_ratio,
    )


def why_left_out(outcome: Outcome, text: str | None, invalid_why: str | None, no_estimate: str | None) -> str | None:
    """Return why a case is not in the geometric mean; None where its outcome says enough."""
    if outcome == Outcome.PASS:
        return invalid_why or no_estimate
    return text if outcome == Outcome.SKIPPED else None


def summarise(plan: Sequence[Planned], records: Mapping[str, Record]) -> list[Summary]:
    """Return a summary per suite and configuration, in the order of the plan. `records` is keyed by case id."""
    groups: dict[tuple[str, Configuration], list[Planned]] = {}
    for planned in plan:
        groups.setdefault((planned.case.suite, planned.case.configuration), []).append(planned)
    return [
        count(suite, configuration, [standing(planned, records.get(planned.case.id)) for planned in group])
        for (suite, configuration), group in groups.items()
    ]


def count(suite: str, configuration: Configuration, cases: Sequence[Standing]) -> Summary:
    """Return the summary of one suite in one configuration, its cases in the order of the plan."""
    outcomes = Counter(case.outcome for case in cases)
    unchecked = sum(case.unchecked for case in cases)
    emulated = sum(case.emulated for case in cases)
    passed = outcomes[Outcome.PASS] - unchecked
    mean = geometric_mean([case.speedup for case in cases if case.speedup])
    rate = wilson(passed, len(cases) - outcomes[Outcome.SKIPPED])
    return Summary(
        suite=suite,
        configuration=configuration,
        planned=len(cases),
        outcomes=dict(outcomes),
        passed=passed,
        unchecked=unchecked,
        pass_rate=rate if isinstance(rate, Estimate) else None,
        speedup=mean if isinstance(mean, Estimate) else None,
        no_speedup=_no_speedup(mean, emulated),
        emulated=emulated,
        left_out=tuple(_left_out(case) for case in cases if not case.speedup),
        compile_wall_s=_median(case.compile_wall_s for case in cases),
        memory_ratio=_median(case.memory_ratio for case in cases),
    )


def _no_speedup(mean: Estimate | NoEstimate, emulated: int) -> str | None:
    if isinstance(mean, Estimate):
        return None
    return f"{emulated} emulated" if emulated else mean.reason


def _left_out(case: Standing) -> LeftOut:
    return LeftOut(
        model=case.model, why=case.why or ("no speedup" if case.outcome == Outcome.PASS else case.outcome.value)
    )


def _median(values: Iterable[float | None]) -> float | None:
    present = [value for value in values if value is not None]
    return median(present) if present else None
