"""What the store keeps for pages, counted anew from the results: where the two differ, and set right where asked.

A run, or a handful of series, is one transaction: others write meanwhile, and nobody waits for long.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from itertools import groupby
from typing import Any

from sqlalchemy import Connection, delete, func, insert, select, update

from harness.record import Outcome
from server.heads import RECENT
from server.summaries import summary_row
from server.tables import Base, Case, Configuration, Entry, Planned, Result, Run, Series, Summary
from server.writer import SUMMED

COUNTS = ("planned", "skipped", "passed", "missing", "crashed")
HEAD = ("results", "first_at", "last_at", "result_key", "outcome", "passed_at", "recent")


class FaultKind(StrEnum):
    """What is wrong."""

    FILE = "file"
    """The database itself says that it is damaged."""
    REFERENCE = "reference"
    """A row names another that is not there."""
    NEWEST = "newest"
    """A planned case does not point at its newest attempt."""
    SUMMARY = "summary"
    COUNTS = "counts"
    HEAD = "head"


@dataclass(frozen=True)
class Fault:
    """One thing that is wrong, and where; the last three kinds, and `newest`, can be counted anew."""

    kind: FaultKind
    where: str
    text: str
    repaired: bool = False


def of_run(connection: Connection, run_key: int, repair: bool) -> list[Fault]:
    """Count a run's newest results, summaries and counts anew; the run is locked where it is to be repaired."""
    asked = select(Run.id, *[Run.__table__.c[name] for name in COUNTS]).where(Run.key == run_key)
    run = connection.execute(asked.with_for_update() if repair else asked).one_or_none()
    if run is None:
        return []  # pruned meanwhile
    found = connection.execute(_cases(run_key)).all()
    faults = [*_newest(connection, run_key, run.id, found, repair)]
    expected = {
        key: summary_row(key[0], rows[0].document, rows)
        for key, rows in (
            (key, list(group))
            for key, group in groupby(
                sorted(found, key=lambda row: (row.suite, row.configuration_id, row.position)),
                key=lambda row: (row.suite, row.configuration_id),
            )
        )
    }
    faults += _summaries(connection, run_key, run.id, expected, repair)
    counts = {name: sum(values[name] for values in expected.values()) for name in COUNTS if name != "crashed"}
    counts["crashed"] = sum(values["outcomes"].get(Outcome.CRASH.value, 0) for values in expected.values())
    if told := _differences({name: getattr(run, name) for name in COUNTS}, counts):
        faults.append(Fault(FaultKind.COUNTS, f"run {run.id}", told, repair))
        if repair:
            connection.execute(update(Run).where(Run.key == run_key).values(**counts))
    return faults


def of_series(connection: Connection, keys: Sequence[int], repair: bool) -> list[Fault]:
    """Count the heads of some series anew; they are locked where they are to be repaired."""
    asked = (
        select(Series.key, Series.hard, *[Series.__table__.c[name] for name in HEAD], Case.document)
        .join(Case, Case.key == Series.case_key)
        .where(Series.key.in_(keys))
        .order_by(Series.key)
    )
    found = connection.execute(asked.with_for_update(of=Series) if repair else asked).all()
    counted = heads(connection, keys)
    faults = []
    for row in found:
        head = counted.get(row.key)
        case = row.document
        where = f"series {row.key} ({case['suite']}/{case['model']} {case['mode']} {case['precision']}, {row.hard})"
        if head is None:
            faults.append(Fault(FaultKind.HEAD, where, "no result is left of it", repair))
            if repair and row.results:
                connection.execute(update(Series).where(Series.key == row.key).values(**EMPTY))
            continue
        expected = head.columns()
        if told := _differences({name: getattr(row, name) for name in HEAD}, expected):
            faults.append(Fault(FaultKind.HEAD, where, told, repair))
            if repair:
                connection.execute(update(Series).where(Series.key == row.key).values(**expected))
    return faults


EMPTY: dict[str, Any] = {"results": 0, "result_key": None, "outcome": "", "passed_at": None, "recent": []}
"""Columns of a head without results; its moments are those of a result that is no more, until the next comes."""


@dataclass
class Head:
    """The head of one series while its results are read, oldest first."""

    results: int = 0
    first_at: datetime | None = None
    newest: Any = None
    passed_at: datetime | None = None
    recent: deque[list[Any]] = field(default_factory=lambda: deque(maxlen=RECENT))

    def add(self, row: Any) -> None:
        self.results += 1
        self.first_at = self.first_at or row.started_at
        self.newest = row
        if row.outcome == Outcome.PASS:
            self.passed_at = row.started_at
        self.recent.append(point(row))

    def columns(self) -> dict[str, Any]:
        return {
            "results": self.results,
            "first_at": self.first_at,
            "last_at": self.newest.started_at,
            "result_key": self.newest.key,
            "outcome": self.newest.outcome,
            "passed_at": self.passed_at,
            "recent": list(self.recent),
        }


def point(row: Any) -> list[Any]:
    """Return a result as a point of a head's `recent`."""
    speedup = (row.speedup, row.speedup_low, row.speedup_high) if row.valid else (None, None, None)
    return [row.started_at.timestamp(), row.outcome, *speedup]


POINT = (
    Result.key,
    Result.series_key,
    Result.started_at,
    Result.outcome,
    Result.valid,
    Result.speedup,
    Result.speedup_low,
    Result.speedup_high,
)
"""Columns of a result that a head is counted from."""


def heads(connection: Connection, keys: Sequence[int]) -> dict[int, Head]:
    """Return the heads of some series, counted from all their results."""
    found: dict[int, Head] = {}
    ordered = (
        select(*POINT)
        .where(Result.series_key.in_(keys))
        .order_by(Result.series_key, Result.started_at, Result.key)  # of two at one moment, the later written counts
    )
    for row in connection.execute(ordered.execution_options(yield_per=5000)):
        found.setdefault(row.series_key, Head()).add(row)
    return found


def _cases(run_key: int) -> Any:
    """Every planned case of a run with its newest attempt's result, which is looked for by its number."""
    newest = (
        select(func.max(Result.attempt))
        .where(Result.run_key == Planned.run_key, Result.case_key == Planned.case_key)
        .correlate(Planned)
        .scalar_subquery()
    )
    same = (Result.run_key == Planned.run_key) & (Result.case_key == Planned.case_key) & (Result.attempt == newest)
    return (
        select(
            Planned.case_key,
            Planned.position,
            Planned.attempt,
            Planned.result_key,
            Case.suite,
            Case.model,
            Case.configuration_id,
            Configuration.label,
            Configuration.document,
            Entry.skip,
            Result.key.label("newest_key"),
            Result.attempt.label("newest_attempt"),
            *[Result.__table__.c[name] for name in SUMMED],
        )
        .select_from(Planned)
        .join(Case, Case.key == Planned.case_key)
        .join(Configuration, Configuration.id == Case.configuration_id)
        .outerjoin(Entry, Entry.key == Planned.entry_key)
        .outerjoin(Result, same)
        .where(Planned.run_key == run_key)
    )


def _newest(connection: Connection, run_key: int, run_id: str, found: Sequence[Any], repair: bool) -> Iterator[Fault]:
    for row in found:
        attempt = max(row.attempt, row.newest_attempt or 0)
        told = _differences(
            {"result": row.result_key, "attempt": row.attempt}, {"result": row.newest_key, "attempt": attempt}
        )
        if told:
            yield Fault(FaultKind.NEWEST, f"run {run_id}, {row.suite}/{row.model} {row.label}", told, repair)
            if repair:
                here = (Planned.run_key == run_key, Planned.case_key == row.case_key)
                connection.execute(update(Planned).where(*here).values(result_key=row.newest_key, attempt=attempt))


def _summaries(
    connection: Connection, run_key: int, run_id: str, expected: Mapping[tuple[str, str], Any], repair: bool
) -> Iterator[Fault]:
    stored = {
        (row.suite, row.configuration_id): row
        for row in connection.execute(select(Summary.__table__).where(Summary.run_key == run_key))
    }
    for suite, configuration_id in dict.fromkeys([*expected, *stored]):
        values, row = expected.get((suite, configuration_id)), stored.get((suite, configuration_id))
        if values is None or row is None:
            told = "is there, and its run has no such case" if values is None else "is not there"
        else:
            told = _differences({name: getattr(row, name) for name in values}, values)
        if told:
            yield Fault(FaultKind.SUMMARY, f"run {run_id}, {suite}, configuration {configuration_id}", told, repair)
        if told and repair:
            key = {"run_key": run_key, "suite": suite, "configuration_id": configuration_id}
            connection.execute(delete(Summary).filter_by(**key))
            if values is not None:
                connection.execute(insert(Summary).values(**key, **values))


def _differences(stored: Mapping[str, Any], counted: Mapping[str, Any]) -> str:
    """Return `passed 3, counted 4; ...`, empty where all is equal."""
    return "; ".join(
        f"{name} {_told(stored[name])}, counted {_told(value)}"
        for name, value in counted.items()
        if not _equal(stored[name], value)
    )


def _equal(one: Any, other: Any) -> bool:
    """Compare values, lists and mappings; two versions may add the same numbers in another order."""
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=1e-9)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_equal, one, other))
    return bool(one == other)


def _told(value: Any) -> str:
    if isinstance(value, list):
        return f"{len(value)} entries" if value else "none"
    if isinstance(value, datetime):
        return value.isoformat(timespec="seconds")
    return "none" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


def pages(connection: Connection, table: type[Base], after: int, size: int) -> list[int]:
    """Return the next keys of a table."""
    column = table.__table__.c["key"]
    return list(connection.scalars(select(column).where(column > after).order_by(column).limit(size)))
