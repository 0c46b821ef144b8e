"""A run's cases in one suite and configuration -> the row that pages show. Counted by `harness.summary` alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from harness.record import Derived, Outcome, Planned, Record, record_id
from harness.summary import summarise
from server.rows import document


def summary_row(plan: Sequence[Planned], records: Mapping[str, Record]) -> dict[str, Any]:
    """Return the columns of `tables.Summary` but its key.

    Args:
        plan: the planned cases of one suite and configuration.
        records: the newest record of each case that has one, by case id.
    """
    (summary,) = summarise(plan, records)
    speedup = summary.speedup
    return {
        "planned": summary.planned,
        "skipped": summary.outcomes.get(Outcome.SKIPPED, 0),
        "passed": summary.passed,
        "missing": summary.outcomes.get(Outcome.MISSING, 0),
        "emulated": summary.emulated,
        "unchecked": summary.unchecked,
        "outcomes": {outcome.value: count for outcome, count in summary.outcomes.items() if count},
        "speedup_geomean": speedup and speedup.value,
        "speedup_geomean_low": speedup and speedup.low,
        "speedup_geomean_high": speedup and speedup.high,
        "speedup_geomean_n": speedup and speedup.n,
        "speedup_geomean_method": speedup and speedup.method,
        "no_geomean": summary.no_speedup,
        "left_out": [document(each) for each in summary.left_out],
        "compile_wall_s_median": summary.compile_wall_s,
        "memory_ratio_median": summary.memory_ratio,
    }


def skipped_record(run_id: str, started_at: datetime, planned: Planned) -> Record:
    """Return the record that a case skipped by its plan will have: it counts as skipped from the first moment."""
    return Record(
        id=record_id(run_id, planned.case.id, 0),
        run_id=run_id,
        case=planned.case,
        attempt=0,
        started_at=started_at,
        finished_at=started_at,
        outcome=Outcome.SKIPPED,
        text=planned.skip,
        derived=Derived(valid=False),
    )
