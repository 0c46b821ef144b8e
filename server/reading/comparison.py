"""Two runs as sides of a comparison: one statement each, whose rows become points. No record is read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

from sqlalchemy import Connection, Text, case, cast, false, func, literal, select

from harness.compare import Comparison, Refused, compare, shown
from harness.compare_cohort import Cohort
from harness.compare_points import Point, fingerprint
from harness.compare_values import change_values, cohort_values, comparison_values
from harness.record import Environment, Flag, Outcome
from server import rows
from server import schemas_comparison as schemas
from server.reading.errors import NotComparable
from server.schemas import RunState
from server.tables import Case, Configuration, Entry, Planned, Result


@dataclass(frozen=True)
class Cases:
    """A run's planned cases with their newest results, its machine, and the families of its models."""

    environment: Environment
    points: Sequence[Point]
    families: dict[str, str]


@dataclass(frozen=True)
class Side:
    """A run, where it is, and its cases."""

    run: Any
    state: RunState
    cases: Cases


_OUTCOMES = {outcome.value: outcome for outcome in Outcome}


def _columns(hard: str | None) -> list[Any]:
    """What a point is made of, in the order of its fields."""
    warm = cast(Result.flags, Text).contains(f'"{Flag.NOT_COLD.value}"')  # a list of known words: its text will do
    computed: dict[str, Any] = {
        "case_id": Case.id,
        "label": Configuration.label,
        "valid": func.coalesce(Result.valid, false()),
        "text": case(
            (Result.outcome.is_(None), Entry.skip),
            (Result.outcome == Outcome.PASS.value, Result.invalid_why),
            else_=Result.text,
        ),
        "hard": literal(hard, Text),
        "compile_wall_s": case((warm, None), else_=Result.compile_wall_s),
        **{name: Case.__table__.c[name] for name in ("suite", "model", "configuration_id")},
    }
    return [
        computed[field.name].label(field.name) if field.name in computed else Result.__table__.c[field.name]
        for field in fields(Point)
    ]


def cases(connection: Connection, run: Any) -> Cases:
    """Return a run's planned cases as points, in the order of the plan."""
    environment = rows.stored_as(Environment, run.environment)
    columns = _columns(fingerprint(environment))
    outcome = [field.name for field in fields(Point)].index("outcome")
    skipped_or_missing = {True: Outcome.SKIPPED, False: Outcome.MISSING}
    points = []
    for row in connection.execute(
        select(*columns, Entry.skip.is_not(None))
        .select_from(Planned)
        .join(Case, Case.key == Planned.case_key)
        .join(Entry, Entry.key == Planned.entry_key)
        .join(Configuration, Configuration.id == Case.configuration_id)
        .outerjoin(Result, Result.key == Planned.result_key)
        .where(Planned.run_key == run.key)
        .order_by(Planned.position)
    ):
        *values, skipped = row
        word = values[outcome]
        values[outcome] = skipped_or_missing[bool(skipped)] if word is None else _OUTCOMES[word]
        points.append(Point(*values))
    return Cases(environment, points, _families(connection, run.key))


def _families(connection: Connection, run_key: int) -> dict[str, str]:
    """Return the families of a run's models, by `suite/model`."""
    family = Entry.spec["family"].as_string()
    found = connection.execute(
        select(Case.suite, Case.model, family)
        .select_from(Planned)
        .join(Case, Case.key == Planned.case_key)
        .join(Entry, Entry.key == Planned.entry_key)
        .where(Planned.run_key == run_key, family.is_not(None))
        .distinct()
    )
    return {f"{suite}/{model}": name for suite, model, name in found}


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
        base.cases.points,
        head.cases.points,
        across=across,
        environments=(base.cases.environment, head.cases.environment),
        families={**base.cases.families, **head.cases.families} if like_these else None,
    )
    if isinstance(found, Refused):
        raise NotComparable(_refusal(found))
    if not any(each.base and each.head for each in found.changes):
        raise NotComparable(
            f"No case is on both sides: the base has {len(base.cases.points)}, the head {len(head.cases.points)}. A "
            "case is a model in one configuration, on one device profile, with one batch size; across=true asks for "
            "less."
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
    values = comparison_values(found, _run(base), _run(head))
    values["changes"] = [change_values(each) for each in shown(found, unchanged)]
    values["cohorts"] = [_cohort(each) for each in found.cohorts]
    return schemas.RunComparison.model_validate(values)  # at one go: there are thousands of parts


def _cohort(found: Cohort) -> dict[str, Any]:
    values = cohort_values(found)
    return values if found.families is not None else values | {"models_like_these": None}


def _run(of: Side) -> dict[str, Any]:
    names = set(schemas.ComparedRun.model_fields) - {"state", "cases"}
    return {name: getattr(of.run, name) for name in names} | {"state": of.state, "cases": len(of.cases.points)}
