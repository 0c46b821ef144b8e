"""Two runs as sides of a comparison: one statement each, whose columns become points. No record is read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from sqlalchemy import Connection, select

from harness.compare import Comparison, Refused, compare, shown
from harness.compare_cohort import Cohort
from harness.compare_points import Point, fingerprint
from harness.compare_values import change_values, cohort_values
from harness.record import Environment, Flag, Outcome
from server import rows
from server import schemas_comparison as schemas
from server.reading.errors import NotComparable
from server.schemas import RunState
from server.tables import Case, Configuration, Entry, Planned, Result

_FIELDS = tuple(field.name for field in fields(Point))
_MEASURED = tuple(name for name in _FIELDS if name in Result.__table__.c and name not in ("outcome", "text"))


@dataclass(frozen=True)
class Side:
    """A run, where it is, its machine, its cases, and the families of its models."""

    run: Any
    state: RunState
    environment: Environment
    points: Sequence[Point]
    families: dict[str, str]


def side(connection: Connection, run: Any, state: RunState) -> Side:
    """Return a run's planned cases as points, in the order of the plan."""
    environment = rows.stored_as(Environment, run.environment)
    hard = fingerprint(environment)
    columns: list[Any] = [
        Case.id.label("case_id"),
        *Case.__table__.c["suite", "model", "configuration_id"],
        Configuration.label,
        Entry.skip,
        Entry.spec["family"].as_string().label("family"),
        *Result.__table__.c["outcome", "text", "invalid_why", "flags"],
        *[Result.__table__.c[name] for name in _MEASURED],
    ]
    found = connection.execute(
        select(*columns)
        .select_from(Planned)
        .join(Case, Case.key == Planned.case_key)
        .join(Entry, Entry.key == Planned.entry_key)
        .join(Configuration, Configuration.id == Case.configuration_id)
        .outerjoin(Result, Result.key == Planned.result_key)
        .where(Planned.run_key == run.key)
        .order_by(Planned.position)
    ).all()
    families = {f"{row.suite}/{row.model}": row.family for row in found if row.family}
    return Side(run, state, environment, [_point(row, hard) for row in found], families)


def _point(row: Any, hard: str | None) -> Point:
    if row.outcome is None:
        outcome = Outcome.SKIPPED if row.skip else Outcome.MISSING
        return Point(row.case_id, row.suite, row.model, row.configuration_id, row.label, outcome, False, row.skip, hard)
    known: dict[str, Any] = {name: getattr(row, name) for name in _FIELDS if name != "hard"}
    outcome, cold = Outcome(row.outcome), Flag.NOT_COLD not in row.flags
    known |= {"outcome": outcome, "hard": hard, "compile_wall_s": row.compile_wall_s if cold else None}
    return Point(**known | {"text": row.invalid_why if outcome == Outcome.PASS else row.text})


def compared(base: Side, head: Side, *, across: bool, unchanged: bool, like_these: bool) -> schemas.RunComparison:
    """Return what changed from one run to the other.

    Args:
        across: compare across machines, device profiles and batch sizes too.
        unchanged: with the cases that stayed the same.
        like_these: with the means of models like these, for which families are drawn ten thousand times.

    Raises:
        NotComparable: the machines differ, or no case is on both sides.
    """
    found = compare(
        base.points,
        head.points,
        across=across,
        environments=(base.environment, head.environment),
        families={**base.families, **head.families} if like_these else None,
    )
    if isinstance(found, Refused):
        raise NotComparable(_refusal(found))
    if not any(each.base and each.head for each in found.changes):
        raise NotComparable(
            f"No case is on both sides: the base has {len(base.points)}, the head {len(head.points)}. A case is a "
            "model in one configuration, on one device profile, with one batch size; across=true asks for less."
        )
    return _answer(found, base, head, unchanged)


def _refusal(refused: Refused) -> str:
    what = "; ".join(f"{each.field} {each.base or 'unknown'} -> {each.head or 'unknown'}" for each in refused.hard)
    what = what or " -> ".join(f"fingerprint {', '.join(each)}" for each in (refused.base, refused.head))
    return (
        f"The sides are not of one machine and method: {what}. Compare runs of one machine, or ask with across=true to "
        "see both side by side nevertheless."
    )


def _answer(found: Comparison, base: Side, head: Side, unchanged: bool) -> schemas.RunComparison:
    return schemas.RunComparison(
        base=_run(base),
        head=_run(head),
        machine=found.machine,
        differences=tuple(schemas.Difference.model_validate(asdict(each)) for each in found.differences),
        counts=found.counts,
        judgements=found.judgements,
        against=found.against,
        caveat=found.caveat,
        changes=tuple(schemas.Change.model_validate(change_values(each)) for each in shown(found, unchanged)),
        cohorts=tuple(_cohort(each) for each in found.cohorts),
    )


def _cohort(found: Cohort) -> schemas.Cohort:
    values = cohort_values(found)
    return schemas.Cohort.model_validate(values if found.families is not None else values | {"models_like_these": None})


def _run(of: Side) -> schemas.ComparedRun:
    names = set(schemas.ComparedRun.model_fields) - {"state", "cases"}
    return schemas.ComparedRun(**{name: getattr(of.run, name) for name in names}, state=of.state, cases=len(of.points))
