"""Records of one run -> a `Summary` per suite and configuration. The one place where they are counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
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


def summarise(plan: Sequence[Planned], records: Mapping[str, Record]) -> list[Summary]:
    """Return a summary per suite and configuration, in the order of the plan. `records` is keyed by case id."""
    groups: dict[tuple[str, Configuration], list[Planned]] = {}
    for planned in plan:
        groups.setdefault((planned.case.suite, planned.case.configuration), []).append(planned)
    return [
        _summary(suite, configuration, [(p, records.get(p.case.id)) for p in group])
        for (suite, configuration), group in groups.items()
    ]


def _summary(suite: str, configuration: Configuration, cases: Sequence[tuple[Planned, Record | None]]) -> Summary:
    outcomes = Counter(_outcome(planned, record) for planned, record in cases)
    judged = len(cases) - outcomes[Outcome.SKIPPED]
    records = [record for _, record in cases if record]
    emulated = sum(1 for record in records if record.observed.emulated)
    unchecked = sum(1 for r in records if r.outcome == Outcome.PASS and Flag.NO_REFERENCE in r.derived.flags)
    passed = outcomes[Outcome.PASS] - unchecked
    speedups = [r.derived.speedup for r in records if r.derived.valid and r.derived.speedup]
    mean = geometric_mean(speedups)
    rate = wilson(passed, judged)
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
        left_out=tuple(_left_out(cases)),
        compile_wall_s=_median(r.compile.wall_s for r in records if r.compile),
        memory_ratio=_median(r.derived.memory_ratio for r in records if r.derived.memory_ratio is not None),
    )


def _outcome(planned: Planned, record: Record | None) -> Outcome:
    if record is not None:
        return record.outcome
    return Outcome.SKIPPED if planned.skip else Outcome.MISSING


def _no_speedup(mean: Estimate | NoEstimate, emulated: int) -> str | None:
    if isinstance(mean, Estimate):
        return None
    return f"{emulated} emulated" if emulated else mean.reason


def _left_out(cases: Sequence[tuple[Planned, Record | None]]) -> Iterable[LeftOut]:
    for planned, record in cases:
        if record is None:
            yield LeftOut(model=planned.case.model, why=planned.skip or Outcome.MISSING.value)
        elif not (record.derived.valid and record.derived.speedup):
            why = record.outcome.value
            if record.outcome == Outcome.PASS:
                why = record.derived.invalid_why or record.derived.no_estimate or "no speedup"
            yield LeftOut(model=planned.case.model, why=why)


def _median(values: Iterable[float | None]) -> float | None:
    present = [value for value in values if value is not None]
    return median(present) if present else None
