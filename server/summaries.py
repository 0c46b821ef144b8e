"""A run's cases in one suite and configuration -> the row that pages show. Counted by `harness.summary` alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from harness.record import Configuration, Flag, Outcome
from harness.stats import Estimate
from harness.summary import Standing, Summary, count, why_left_out
from server.rows import document, stored_as


def summary_row(suite: str, configuration: Mapping[str, Any], found: Sequence[Any]) -> dict[str, Any]:
    """Return the columns of `tables.Summary` but its key.

    Args:
        configuration: as stored.
        found: each planned case of one suite and configuration in the order of the plan: `model`, `position`, `skip`,
            and the columns of its newest result, all None where it has none.
    """
    summary = count(suite, stored_as(Configuration, configuration), [_standing(row) for row in found])
    return columns(summary, found[0].position)


def columns(summary: Summary, position: int) -> dict[str, Any]:
    """Return the columns of `tables.Summary` but its key. `position`: of its first case in the plan."""
    speedup = summary.speedup
    return {
        "position": position,
        "planned": summary.planned,
        "skipped": summary.outcomes.get(Outcome.SKIPPED, 0),
        "passed": summary.passed,
        "missing": summary.outcomes.get(Outcome.MISSING, 0),
        "emulated": summary.emulated,
        "unchecked": summary.unchecked,
        "outcomes": {outcome.value: number for outcome, number in summary.outcomes.items() if number},
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


def _standing(row: Any) -> Standing:
    """A case that its plan skips counts as skipped from the first moment."""
    if row.outcome is None:
        return Standing(row.model, Outcome.SKIPPED if row.skip is not None else Outcome.MISSING, row.skip)
    outcome = Outcome(row.outcome)
    speedup = None
    if row.valid and row.speedup is not None:
        speedup = Estimate(row.speedup, row.speedup_low, row.speedup_high, row.speedup_n, row.speedup_method)
    return Standing(
        model=row.model,
        outcome=outcome,
        why=why_left_out(outcome, row.text, row.invalid_why, row.no_estimate),
        speedup=speedup,
        unchecked=outcome == Outcome.PASS and Flag.NO_REFERENCE.value in row.flags,
        emulated=row.emulated,
        compile_wall_s=row.compile_wall_s,
        memory_ratio=row.memory_ratio,
    )
