"""A run's planned cases with their newest results: filtered, in any order, page by page."""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import StrEnum
from typing import Any

from pydantic import TypeAdapter
from sqlalchemy import ColumnElement, Connection, Select, Text, and_, case, cast, func, literal, or_, select

from harness import record
from server.reading import cursor
from server.reading.cursor import Page
from server.reading.errors import BadQuestion
from server.reading.filters import ResultFilter
from server.schemas import RunState, Status
from server.tables import Case, Configuration, Entry, Planned, Progress, Result, Run, Series

Known = float | str | None

_PLACE: TypeAdapter[tuple[str, bool, Known, int]] = TypeAdapter(tuple[str, bool, Known, int])


class Sort(StrEnum):
    """What results are sorted by. Missing values come last in both directions."""

    PLAN = "position"
    MODEL = "model"
    SUITE = "suite"
    STATUS = "status"
    SPEEDUP = "speedup"
    EAGER = "eager_s"
    COMPILED = "compiled_s"
    COMPILE = "compile_wall_s"
    COMPILE_CPU = "compile_cpu_s"
    GRAPHS = "graphs"
    BREAKS = "graph_breaks"
    RECOMPILES = "recompiles"
    MEMORY = "memory_ratio"
    EAGER_PEAK = "eager_peak_bytes"
    COMPILED_PEAK = "compiled_peak_bytes"
    BREAK_EVEN = "break_even_steps"


CHUNK = 500
"""Keys in one statement."""

TEXTS = (Sort.MODEL, Sort.SUITE, Sort.STATUS)
"""Sorted as words; all else as numbers."""


def statement(run_key: int) -> Select[Any]:
    """Every planned case of a run, in the order of its plan."""
    elsewhere = ("key", "run_key", "case_key", "series_key", "attempt")
    columns = [column for column in Result.__table__.c if column.name not in elsewhere]
    return (
        select(
            *columns,
            Result.attempt.label("result_attempt"),
            Planned.case_key,
            Planned.position,
            Entry.tolerance,
            Entry.skip,
            Case.id.label("case_id"),
            Case.suite,
            Case.model,
            Case.batch_size,
            Case.configuration_id,
            Configuration.label,
            Configuration.device,
            Configuration.mode,
            Configuration.precision,
            Configuration.backend,
        )
        .select_from(Planned)
        .join(Case, Case.key == Planned.case_key)
        .join(Entry, Entry.key == Planned.entry_key)
        .join(Configuration, Configuration.id == Case.configuration_id)
        .outerjoin(Result, Result.key == Planned.result_key)
        .where(Planned.run_key == run_key)
    )


def in_plan(run_key: int) -> Select[Any]:
    return statement(run_key).order_by(Planned.position)


def page(
    connection: Connection,
    run_key: int,
    state: RunState,
    wanted: ResultFilter,
    sort: Sort,
    descending: bool,
    limit: int | None,
    after: str | None,
) -> Page[Any]:
    """Return planned cases in order, those without a value last, ties in the order of the plan.

    Args:
        limit: None: all that there are; a run is bounded by its plan.

    Raises:
        BadQuestion: `after` is no cursor of this list in this order.
    """
    status = status_of(run_key, state)
    text = func.coalesce(Result.text, Entry.skip)
    value = status if sort == Sort.STATUS else _column(sort)
    order = value.desc() if descending else value.asc()
    asked = (
        statement(run_key)
        .add_columns(value.label("place"))
        .where(*wanted.conditions(status, text))
        .order_by(value.is_(None), order, Planned.position)
    )
    if after is not None:
        asked = asked.where(_beyond(value, sort, descending, after))
    if limit is None:
        return Page(connection.execute(asked).all())
    found = connection.execute(asked.limit(limit + 1)).all()
    if len(found) <= limit:
        return Page(found)
    last = found[limit - 1]
    return Page(found[:limit], cursor.written(sort.value, descending, last.place, last.position))


ENDED_WELL = (record.Outcome.PASS.value, record.Outcome.SKIPPED.value)


def failed(run_key: int) -> Select[Any]:
    """Cases of a run whose newest result neither passed nor was skipped, in the order of its plan."""
    return in_plan(run_key).where(Result.outcome.not_in(ENDED_WELL))


def looks(run_key: int, state: RunState, grave: Sequence[record.Flag], limit: int) -> Select[Any]:
    """Cases that somebody should look at, each with `total`, how many there are.

    Failures first, then what never ran, passes that prove little, and last those that are slower compiled, the slowest
    first.

    Args:
        grave: flags of a pass that proves little.
    """
    status, flags = status_of(run_key, state), cast(Result.flags, Text)
    proves_little = or_(*[flags.contains(f'"{flag.value}"', autoescape=True) for flag in grave])
    slower = and_(Result.valid, func.coalesce(Result.speedup_high, Result.speedup) < 1)
    quiet = [Status.PASS, Status.SKIPPED, Status.WAITING, Status.RUNNING]
    kind = case(
        (status == Status.MISSING.value, 2),
        (status.not_in([each.value for each in quiet]), 1),
        (and_(status == Status.PASS.value, proves_little), 3),
        (slower, 4),
    )
    return (
        statement(run_key)
        .add_columns(func.count().over().label("total"))
        .where(kind.is_not(None))
        .order_by(kind, case((kind == 4, Result.speedup)), Planned.position)
        .limit(limit)
    )


def running(connection: Connection, run_key: int) -> set[int]:
    """Return the keys of the cases in hand."""
    return set(connection.scalars(select(Progress.case_key).where(Progress.run_key == run_key)))


def durations(connection: Connection, device: str, backend: str, measure: record.Measure) -> list[Any]:
    """Return how long cases took when they last ran in each of their series here, oldest first.

    The heads of the series name their newest results. Only where one of these will not do are older ones read. Which
    runs measured the same is asked apart: joined to results, PostgreSQL would go from these runs to all they hold.
    """
    runs = set(connection.scalars(select(Run.key).where(Run.protocol["measure"].as_string() == measure.value)))
    heads = (
        select(Series.key, Series.result_key)
        .join(Case, Case.key == Series.case_key)
        .join(Configuration, Configuration.id == Case.configuration_id)
        .where(Configuration.device == device, Configuration.backend == backend)
        .where(Series.source == "")  # others do not say how long a case took
    )
    newest: dict[int, int | None] = dict(connection.execute(heads).all())
    asked = (
        select(
            *Result.__table__.c["series_key", "run_key", "started_at", "finished_at", "outcome"],
            Case.id,
            Case.document,
        )
        .join(Case, Case.key == Result.case_key)
        .order_by(Result.started_at)
    )
    found: dict[int, Any] = {}

    def take(wanted: ColumnElement[bool]) -> None:
        for row in connection.execute(asked.where(wanted)):
            if row.run_key in runs and row.outcome != record.Outcome.SKIPPED:
                found[row.series_key] = row

    keys = [key for key in newest.values() if key is not None]
    for start in range(0, len(keys), CHUNK):
        take(Result.key.in_(keys[start : start + CHUNK]))
    for key in newest.keys() - found.keys():
        take(Result.series_key == key)
    return sorted(found.values(), key=lambda row: row.started_at)


def _column(sort: Sort) -> ColumnElement[Any]:
    tables = {Sort.PLAN: Planned, Sort.MODEL: Case, Sort.SUITE: Case}
    column: ColumnElement[Any] = tables.get(sort, Result).__table__.c[sort.value]
    return column


def status_of(run_key: int, state: RunState) -> ColumnElement[str]:
    """How a planned case stands, as `schemas.Status` says it."""
    waiting: ColumnElement[str] = literal(Status.MISSING.value)
    if state == RunState.RUNNING:
        in_hand = select(Progress.case_key).where(Progress.run_key == run_key)
        waiting = case((Planned.case_key.in_(in_hand), Status.RUNNING.value), else_=Status.WAITING.value)
    return case(
        (Result.outcome.is_not(None), Result.outcome), (Entry.skip.is_not(None), Status.SKIPPED.value), else_=waiting
    )


def _beyond(value: ColumnElement[Any], sort: Sort, descending: bool, after: str) -> ColumnElement[bool]:
    """What comes after a place in the order."""
    order, down, last, position = cursor.read(after, _PLACE)
    fits = last is None or isinstance(last, str) == (sort in TEXTS)
    finite = not isinstance(last, float) or math.isfinite(last)
    if (order, down) != (sort.value, descending) or not fits or not finite or not 0 <= position < 1 << 31:
        raise BadQuestion(
            "cursor: it belongs to another order than this one. Go on with sort and direction of the page before, or "
            "leave it out to begin."
        )
    later = Planned.position > position
    if last is None:
        return and_(value.is_(None), later)
    further = value < last if descending else value > last
    return or_(further, and_(value == last, later), value.is_(None))
