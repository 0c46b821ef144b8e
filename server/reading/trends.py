"""Summaries over time: how a suite in a configuration fares from run to run, from the rows that are kept for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic import TypeAdapter
from sqlalchemy import Connection, Select, select, tuple_

from server import schemas_series as schemas
from server.reading import cursor
from server.reading.cursor import Page
from server.reading.filters import SeriesFilter, Span
from server.reading.series import machines
from server.reading.thin import thinned
from server.tables import Case, Configuration, Environment, Run, Series, Summary

Group = tuple[str, str, str, str, str]

_PLACE: TypeAdapter[Group] = TypeAdapter(Group)
_GROUP: tuple[Any, ...] = (Case.suite, Case.configuration_id, Series.hard, Series.source, Series.branch)
_SAID: tuple[Any, ...] = (Configuration.label, Configuration.device)
_COLUMNS = {
    "at": "started_at",
    "run": "id",
    "planned": "planned",
    "skipped": "skipped",
    "passed": "passed",
    "missing": "missing",
    "speedup": "speedup_geomean",
    "low": "speedup_geomean_low",
    "high": "speedup_geomean_high",
    "n": "speedup_geomean_n",
    "compile_wall_s": "compile_wall_s_median",
    "memory_ratio": "memory_ratio_median",
}
"""Of a trend, and the column of a run or a summary that each is."""


def page(
    connection: Connection, wanted: SeriesFilter, span: Span, points: int, limit: int, after: str | None
) -> Page[schemas.Trend]:
    """Return trends by suite, configuration, machine, source and branch. Which there are is asked of the series.

    Raises:
        BadQuestion: `after` is no cursor of this list.
    """
    groups = (
        select(*_GROUP, *_SAID)
        .select_from(Series)
        .join(Case, Case.key == Series.case_key)
        .join(Configuration, Configuration.id == Case.configuration_id)
        .where(*wanted.conditions())
        .distinct()
        .order_by(*_GROUP)
        .limit(limit + 1)
    )
    if after is not None:
        groups = groups.where(tuple_(*_GROUP) > tuple_(*cursor.read(after, _PLACE)))
    found = connection.execute(groups).all()
    shown = found[:limit]
    cpus = machines(connection, {group.hard for group in shown})
    rows: dict[Group, list[Any]] = {}
    for row in connection.execute(_statement(shown, span)).all() if shown else ():
        suite, configuration, hard, source, branch, *figures = row
        rows.setdefault((suite, configuration, hard, source or "", branch or ""), []).append(figures)
    items = [_answer(group, cpus.get(group.hard), rows.get(_key(group), []), points) for group in shown]
    return Page(items, cursor.written(*_key(shown[-1])) if len(found) > limit else None)


def _statement(groups: Sequence[Any], span: Span) -> Select[Any]:
    """The summaries of all groups, and of others with the same suites and configurations."""
    group: list[Any] = [*Summary.__table__.c["suite", "configuration_id"], Environment.hard, Run.source, Run.branch]
    return (
        select(*group, *_columns())
        .select_from(Summary)
        .join(Run, Run.key == Summary.run_key)
        .join(Environment, Environment.id == Run.environment_id)
        .where(
            Summary.configuration_id.in_({group.configuration_id for group in groups}),
            Summary.suite.in_({group.suite for group in groups}),
            Environment.hard.in_({group.hard for group in groups}),
            *span.of(Run.started_at),
        )
        .order_by(Run.started_at, Run.key)
    )


def _columns() -> list[Any]:
    return [
        (Run if source in ("started_at", "id") else Summary).__table__.c[source].label(name)
        for name, source in _COLUMNS.items()
    ]


def _key(group: Any) -> Group:
    return (group.suite, group.configuration_id, group.hard, group.source, group.branch)


def _answer(group: Any, cpu: str | None, rows: Sequence[Any], points: int) -> schemas.Trend:
    listed = zip(*rows, strict=True) if rows else [()] * len(_COLUMNS)
    columns = dict(zip(_COLUMNS, listed, strict=True))
    kept = thinned(columns["speedup"], [passed == 0 for passed in columns["passed"]], points)
    if len(kept) < len(rows):
        columns = {name: tuple(column[number] for number in kept) for name, column in columns.items()}
    return schemas.Trend(
        suite=group.suite,
        configuration_id=group.configuration_id,
        label=group.label,
        device=group.device,
        hard=group.hard,
        cpu=cpu,
        source=group.source or None,
        branch=group.branch or None,
        total=len(rows),
        thinned=len(kept) < len(rows),
        **columns,
    )
