"""What a comparison needs of one result: a `Point`, filled from a record, a plan, or the columns of a table."""

from __future__ import annotations

from dataclasses import dataclass

from harness.record import Case, Environment, Outcome, Planned, Record
from harness.stats import Estimate


@dataclass(frozen=True, slots=True)
class Point:
    """One case on one side of a comparison. Unknown is None; `low` and `high` are ends of 95 % intervals."""

    case_id: str
    suite: str
    model: str
    configuration_id: str
    label: str
    """Of the configuration, without the device."""
    outcome: Outcome
    valid: bool = False
    """The times may be compared."""
    text: str | None = None
    """Why it is no plain pass, or why it is not valid."""
    hard: str | None = None
    """Hard fingerprint of the machine; None: a foreign file does not say."""
    speedup: float | None = None
    speedup_low: float | None = None
    speedup_high: float | None = None
    eager_s: float | None = None
    eager_s_low: float | None = None
    eager_s_high: float | None = None
    compiled_s: float | None = None
    compiled_s_low: float | None = None
    compiled_s_high: float | None = None
    compile_wall_s: float | None = None
    """Of a cold compilation; None where a cache answered."""
    eager_peak_bytes: int | None = None
    compiled_peak_bytes: int | None = None
    memory_ratio: float | None = None
    graph_breaks: int | None = None

    @property
    def name(self) -> str:
        return f"{self.suite}/{self.model}"

    @property
    def key(self) -> tuple[str, str, str]:
        """What it has in common with the same model, in the same way, on another device or with another batch."""
        return self.suite, self.model, self.label


def fingerprint(environment: Environment) -> str | None:
    """Return the hard fingerprint; None where a file from elsewhere says nothing of its machine."""
    named = (environment.machine_id, environment.host, environment.cpu, environment.product)
    return environment.hard if any(named) else None


def point_of(record: Record, hard: str | None = None) -> Point:
    """Return a record's point; `hard` is the fingerprint of its run's environment."""
    numbers = record.numbers
    warm = record.compile is not None and not record.compile.cold
    return Point(
        *_names(record.case),
        record.outcome,
        record.derived.valid,
        _why(record),
        hard,
        *_estimate(numbers.speedup),
        *_estimate(numbers.eager_s),
        *_estimate(numbers.compiled_s),
        compile_wall_s=None if warm else numbers.compile_wall_s,
        eager_peak_bytes=numbers.eager_peak_bytes,
        compiled_peak_bytes=numbers.compiled_peak_bytes,
        memory_ratio=numbers.memory_ratio,
        graph_breaks=numbers.graph_breaks,
    )


def point_of_plan(planned: Planned, hard: str | None = None) -> Point:
    """Return the point of a planned case without a record: skipped with its reason, or missing."""
    outcome = Outcome.SKIPPED if planned.skip else Outcome.MISSING
    return Point(*_names(planned.case), outcome=outcome, text=planned.skip, hard=hard)


def _names(case: Case) -> tuple[str, str, str, str, str]:
    return case.id, case.suite, case.model, case.configuration.id, case.label


def _why(record: Record) -> str | None:
    if record.outcome == Outcome.PASS:
        return record.derived.invalid_why
    return record.text or (f"{record.failure.kind}: {record.failure.text}" if record.failure else None)


def _estimate(found: Estimate | None) -> tuple[float | None, float | None, float | None]:
    return (found.value, found.low, found.high) if found else (None, None, None)
