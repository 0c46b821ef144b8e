"""Series with their points: heads by their filters, points as tuples of the few columns that were asked for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple

from pydantic import TypeAdapter
from sqlalchemy import Connection, DateTime, Select, func, select, type_coerce

from harness.record import Outcome
from server import schemas_series as schemas
from server.reading import cursor
from server.reading.cursor import Page
from server.reading.filters import EVER, SeriesFilter, Span
from server.reading.thin import thinned
from server.schemas_series import WITH_INTERVAL, Figure
from server.tables import Case, Configuration, Environment, Result, Run, Series

RESULTS = 100_000
"""Results that a page of series reads at most, unless one series alone has more."""

NO_FAILURE = (Outcome.PASS, Outcome.SKIPPED, Outcome.MISSING, Outcome.UNKNOWN)

_PLACE: TypeAdapter[tuple[int]] = TypeAdapter(tuple[int])
_LARGEST = (1 << 63) - 1


@dataclass(frozen=True)
class Wanted:
    """Of each series: which metrics, from when to when, and in how many points at most."""

    metrics: tuple[Figure, ...] = (Figure.SPEEDUP,)
    span: Span = EVER
    points: int = 500


def page(
    connection: Connection, wanted: SeriesFilter, of_each: Wanted, limit: int, after: str | None
) -> Page[schemas.Series]:
    """Return series in the order in which they came to be.

    Raises:
        BadQuestion: `after` is no cursor of this list.
    """
    asked = heads(wanted).order_by(Series.key).limit(limit + 1)
    if after is not None:
        (key,) = cursor.read(after, _PLACE)
        asked = asked.where(Series.key > min(max(key, 0), _LARGEST))
    found = connection.execute(asked).all()
    shown = list(_within(found[:limit]))
    points = _points(connection, [head.key for head in shown], of_each)
    cpus = machines(connection, {head.hard for head in shown})
    items = [_answer(head, cpus.get(head.hard), points[head.key]) for head in shown]
    return Page(items, cursor.written(shown[-1].key) if len(shown) < len(found) else None)


def heads(wanted: SeriesFilter) -> Select[Any]:
    """Series, each with its case."""
    columns: list[Any] = [
        *Series.__table__.c[
            "key", "hard", "source", "branch", "results", "first_at", "last_at", "outcome", "passed_at"
        ],
        Case.id.label("case_id"),
        *Case.__table__.c["suite", "model", "batch_size", "configuration_id"],
        *Configuration.__table__.c["label", "device", "mode", "precision", "backend"],
    ]
    return (
        select(*columns)
        .select_from(Series)
        .join(Case, Case.key == Series.case_key)
        .join(Configuration, Configuration.id == Case.configuration_id)
        .where(*wanted.conditions())
    )


def machines(connection: Connection, hard: Iterable[str]) -> dict[str, str | None]:
    """Return the processor of each class of machine."""
    asked = select(Environment.hard, func.min(Environment.cpu)).where(Environment.hard.in_(sorted(hard)))
    return dict(connection.execute(asked.group_by(Environment.hard)).all())


def _within(found: Sequence[Any]) -> Iterator[Any]:
    """Yield heads until they have more results than a page should read."""
    results = 0
    for number, head in enumerate(found):
        results += head.results
        if number and results > RESULTS:
            return
        yield head


def _points(connection: Connection, keys: Sequence[int], wanted: Wanted) -> dict[int, list[schemas.Points]]:
    """Return the points of series by key, one for each metric."""
    names = list(dict.fromkeys(name for metric in wanted.metrics for name in columns_of(metric)))
    asked = (
        select(
            Result.series_key,
            type_coerce(Result.started_at, DateTime(timezone=True)),  # its zone is put back on what is kept alone
            Result.outcome,
            Result.valid,
            Run.id,
            *[Result.__table__.c[name] for name in names],
        )
        .join(Run, Run.key == Result.run_key)
        .where(Result.series_key.in_(keys), *wanted.span.of(Result.started_at))
        .order_by(Result.series_key, Result.started_at)
    )
    found: dict[int, list[schemas.Points]] = {}
    for key, rows in groupby(connection.execute(asked).all(), itemgetter(0)):
        _, at, outcome, valid, run, *numbers = zip(*rows, strict=True)
        shared = _Shared(at, outcome, valid, run, tuple(each not in NO_FAILURE for each in outcome))
        columns = dict(zip(names, numbers, strict=True))
        found[key] = [_of_metric(shared, metric, columns, wanted.points) for metric in wanted.metrics]
    empty = [schemas.Points.none(metric) for metric in wanted.metrics]
    return {key: found.get(key, empty) for key in keys}


class _Shared(NamedTuple):
    """What the points of a series have whatever is asked of them, column by column."""

    at: tuple[datetime, ...]
    outcome: tuple[Outcome, ...]
    valid: tuple[bool, ...]
    run: tuple[str, ...]
    failed: tuple[bool, ...]


def columns_of(metric: Figure) -> tuple[str, ...]:
    """Return the columns of a result that a metric needs: its value and, where it has an interval, both ends."""
    return (metric, f"{metric}_low", f"{metric}_high") if metric in WITH_INTERVAL else (metric.value,)


def _of_metric(
    shared: _Shared, metric: Figure, columns: Mapping[str, Sequence[float | None]], limit: int
) -> schemas.Points:
    listed = [columns[name] for name in columns_of(metric)]
    if metric in WITH_INTERVAL:
        listed = [_where(shared.valid, column) for column in listed]
    value, low, high = listed if len(listed) == 3 else (*listed, *[(None,) * len(shared.at)] * 2)
    kept = thinned(value, shared.failed, limit)
    taken = itemgetter(*kept) if len(kept) < len(value) else tuple
    return schemas.Points(
        metric=metric,
        total=len(value),
        thinned=len(kept) < len(value),
        at=tuple(_utc(at) for at in taken(shared.at)),
        value=taken(value),
        low=taken(low),
        high=taken(high),
        outcome=taken(shared.outcome),
        run=taken(shared.run),
    )


def _where(valid: Sequence[bool], column: Sequence[float | None]) -> tuple[float | None, ...]:
    return tuple(number if good else None for number, good in zip(column, valid, strict=True))


def _utc(at: datetime) -> datetime:
    return at.astimezone(UTC) if at.tzinfo else at.replace(tzinfo=UTC)


def _answer(head: Any, cpu: str | None, points: Sequence[schemas.Points]) -> schemas.Series:
    values = {name: getattr(head, name) for name in head._fields if name != "key"}
    values |= {"id": head.key, "source": head.source or None, "branch": head.branch or None}
    return schemas.Series(**values, cpu=cpu, points=tuple(points))
