"""Which filters have data: counted over the series' heads, in two statements and one for each filter that is set."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, func, select

from server import schemas_series as schemas
from server.reading.filters import SeriesFilter, preset
from server.tables import Case, Configuration, Series

COLUMNS: dict[str, Any] = {
    "suite": Case.suite,
    "model": Case.model,
    "device": Configuration.device,
    "mode": Configuration.mode,
    "precision": Configuration.precision,
    "backend": Configuration.backend,
    "preset": preset(),
    "branch": Series.branch,
    "source": Series.source,
    "hard": Series.hard,
    "status": Series.outcome,
}
"""Filter -> what it is held against."""


def facets(connection: Connection, wanted: SeriesFilter) -> schemas.Facets:
    """Return for each filter the values that series have under all the other filters."""
    alone = [name for name in COLUMNS if name == "model" or wanted.without(name) != wanted]
    counts = _counts(connection, [name for name in COLUMNS if name not in alone], wanted)
    for name in alone:
        counts |= _counts(connection, [name], wanted.without(name))
    return schemas.Facets(**{name: _ordered(counts[name]) for name in COLUMNS})


def _counts(connection: Connection, names: Sequence[str], wanted: SeriesFilter) -> dict[str, Counter[str | None]]:
    """Return how many series have each value of these columns: they are grouped by all, and added up for each."""
    columns = [COLUMNS[name].label(name) for name in names]
    asked = (
        select(func.count(), *columns)
        .select_from(Series)
        .join(Case, Case.key == Series.case_key)
        .join(Configuration, Configuration.id == Case.configuration_id)
        .where(*wanted.conditions())
        .group_by(*[COLUMNS[name] for name in names])
    )
    found: dict[str, Counter[str | None]] = {name: Counter() for name in names}
    for count, *values in connection.execute(asked):
        for name, value in zip(names, values, strict=True):
            found[name][value or None] += count
    return found


def _ordered(counts: Counter[str | None]) -> tuple[schemas.Facet, ...]:
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0] or ""))
    return tuple(schemas.Facet(value=value, series=count) for value, count in ordered)
