"""Rows for analysis: runs, results over many runs, series and samples as columns, without a model for each row.

The words of a question are those of the API, so that a database and a server are asked alike.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import Column, ColumnElement, Connection, Engine, Select, case, func, literal, or_, select

from server import db
from server.queries import NotFound, Queries
from server.rows import unpack
from server.schemas import RunState, Status
from server.tables import Case, Configuration, Entry, Environment, Planned, Result, Run, Samples, Series

AT_ONCE = 5000
"""Rows that are fetched together."""


class Kind(StrEnum):
    """What a column holds; any of them may be absent."""

    TEXT = "text"
    WORD = "word"
    """One of few."""
    WHOLE = "whole"
    NUMBER = "number"
    FLAG = "flag"
    MOMENT = "moment"


RUN_COLUMNS = {
    "run_id": Kind.TEXT,
    "started_at": Kind.MOMENT,
    "ended_at": Kind.MOMENT,
    "device": Kind.WORD,
    "host": Kind.WORD,
    "cpu": Kind.WORD,
    "torch": Kind.WORD,
    "source": Kind.WORD,
    "trigger": Kind.WORD,
    "branch": Kind.WORD,
    "commit": Kind.TEXT,
    "planned": Kind.WHOLE,
    "skipped": Kind.WHOLE,
    "passed": Kind.WHOLE,
    "crashed": Kind.WHOLE,
    "command": Kind.TEXT,
}
_CASE = {
    "case_id": Kind.WORD,
    "suite": Kind.WORD,
    "model": Kind.WORD,
    "label": Kind.WORD,
    "device": Kind.WORD,
    "mode": Kind.WORD,
    "precision": Kind.WORD,
    "backend": Kind.WORD,
    "batch_size": Kind.WHOLE,
}
RESULT_COLUMNS = {
    "run_id": Kind.WORD,
    "run_started_at": Kind.MOMENT,
    **_CASE,
    "status": Kind.WORD,
    "text": Kind.TEXT,
    "record_id": Kind.TEXT,
    "attempt": Kind.WHOLE,
    "finished_at": Kind.MOMENT,
    "stage": Kind.WORD,
    "side": Kind.WORD,
    "valid": Kind.FLAG,
    "invalid_why": Kind.WORD,
    "emulated": Kind.FLAG,
    "reference": Kind.WORD,
    "speedup": Kind.NUMBER,
    "speedup_low": Kind.NUMBER,
    "speedup_high": Kind.NUMBER,
    "speedup_n": Kind.WHOLE,
    "no_estimate": Kind.WORD,
    "eager_s": Kind.NUMBER,
    "compiled_s": Kind.NUMBER,
    "compile_wall_s": Kind.NUMBER,
    "compile_cpu_s": Kind.NUMBER,
    "graphs": Kind.WHOLE,
    "graph_breaks": Kind.WHOLE,
    "recompiles": Kind.WHOLE,
    "break_even_steps": Kind.NUMBER,
    "eager_peak_bytes": Kind.WHOLE,
    "compiled_peak_bytes": Kind.WHOLE,
    "memory_ratio": Kind.NUMBER,
}
"""`emulated` and all after `status` are absent where there is no result."""

METRICS = {
    "speedup": Kind.NUMBER,
    "eager_s": Kind.NUMBER,
    "compiled_s": Kind.NUMBER,
    "compile_wall_s": Kind.NUMBER,
    "compile_cpu_s": Kind.NUMBER,
    "memory_ratio": Kind.NUMBER,
    "eager_peak_bytes": Kind.WHOLE,
    "compiled_peak_bytes": Kind.WHOLE,
    "graphs": Kind.WHOLE,
    "graph_breaks": Kind.WHOLE,
    "recompiles": Kind.WHOLE,
    "break_even_steps": Kind.NUMBER,
}
"""What a series is of."""

TIMED = ("speedup", "eager_s", "compiled_s")
"""Metrics that come from samples: with an interval, and with a value only where the times are valid."""

SAMPLE_COLUMNS = {"pair": Kind.WHOLE, "eager_s": Kind.NUMBER, "compiled_s": Kind.NUMBER, "eager_first": Kind.FLAG}


def series_columns(metric: str) -> dict[str, Kind]:
    """Return the columns of a series of this metric."""
    names = (metric, f"{metric}_low", f"{metric}_high") if metric in TIMED else (metric,)
    return {
        "series": Kind.WHOLE,
        **_CASE,
        "hard": Kind.WORD,
        "source": Kind.WORD,
        "branch": Kind.WORD,
        "at": Kind.MOMENT,
        **dict.fromkeys(names, METRICS[metric]),
        "outcome": Kind.WORD,
        "run_id": Kind.WORD,
    }


@dataclass(frozen=True)
class Asked:
    """Which rows. Within a filter any word will do, all filters must hold; an empty word asks for what has none."""

    run: tuple[str, ...] = ()
    words: Mapping[str, tuple[str, ...]] | None = None
    """By name of the filter: those in `RUN_FILTERS`, `CASE_FILTERS` and `SERIES_FILTERS`."""
    since: datetime | None = None
    until: datetime | None = None


RUN_ORIGIN = ("branch", "commit", "trigger", "source", "host")
RUN_FILTERS = ("device", *RUN_ORIGIN)
CASE_FILTERS = ("suite", "model", "device", "mode", "precision", "backend")
SERIES_FILTERS = ("branch", "source", "hard")


class Analysis:
    """Answers with rows, in the order of the columns."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def runs(self, asked: Asked) -> Iterator[tuple[Any, ...]]:
        """Yield runs, newest first."""
        columns = [Run.id if name == "run_id" else _of(name, Run, Environment) for name in RUN_COLUMNS]
        statement = select(*columns).join(Environment, Environment.id == Run.environment_id)
        yield from self._rows(_where_run(statement, asked, RUN_FILTERS).order_by(Run.started_at.desc(), Run.id.desc()))

    def results(self, asked: Asked) -> Iterator[tuple[Any, ...]]:
        """Yield every planned case with its newest result, the oldest run first, each in the order of its plan."""
        columns: list[Any] = [Run.key, Run.id, Run.ended_at]
        runs = select(*columns).join(Environment, Environment.id == Run.environment_id)
        ordered = _where_run(runs, asked, RUN_ORIGIN).order_by(Run.started_at, Run.id)
        queries = Queries(self._engine)
        for key, run_id, ended_at in [*self._rows(ordered)]:
            over = ended_at is not None or queries.run(run_id).state != RunState.RUNNING
            yield from self._rows(_results(key, Status.MISSING if over else Status.WAITING, asked))

    def series(self, metric: str, asked: Asked) -> Iterator[tuple[Any, ...]]:
        """Yield the points of series, series by series, oldest first."""
        yield from self._rows(_points(metric, asked))

    def samples(self, record_id: str) -> Iterator[tuple[Any, ...]]:
        """Yield a record's pairs in the order in which they were taken: seconds per step.

        Raises:
            NotFound: there is no such record, or its samples were pruned.
        """
        Queries(self._engine).record(record_id)  # says what is wrong with the id
        statement = select(Samples.__table__).join(Result, Result.key == Samples.result_key)
        found = [*self._rows(statement.where(Result.id == record_id))]
        if not found:
            raise NotFound(f"Record {record_id} has no samples: nothing was timed, or they were pruned.")
        _, pairs, eager_s, compiled_s, eager_first = found[0]
        firsts = map(bool, zlib.decompress(eager_first))
        yield from zip(range(pairs), unpack(eager_s), unpack(compiled_s), firsts, strict=True)

    def _rows(self, statement: Select[Any]) -> Iterator[tuple[Any, ...]]:
        with self._read() as connection:
            for row in connection.execute(statement.execution_options(yield_per=AT_ONCE)):
                yield tuple(row)

    @contextmanager
    def _read(self) -> Iterator[Connection]:
        with db.explained(self._engine.url), self._engine.begin() as connection:
            yield connection


def _results(run_key: int, without: Status, asked: Asked) -> Select[Any]:
    status = case(
        (Result.outcome.is_not(None), Result.outcome),
        (Entry.skip.is_not(None), literal(Status.SKIPPED.value)),
        else_=literal(without.value),
    )
    special: dict[str, Any] = {
        "run_id": Run.id,
        "run_started_at": Run.started_at,
        "case_id": Case.id,
        "status": status,
        "text": func.coalesce(Result.text, Entry.skip),
        "record_id": Result.id,
    }
    columns = [special[name] if name in special else _of(name, Case, Configuration, Result) for name in RESULT_COLUMNS]
    statement = (
        select(*columns)
        .select_from(Planned)
        .join(Run, Run.key == Planned.run_key)
        .join(Case, Case.key == Planned.case_key)
        .join(Configuration, Configuration.id == Case.configuration_id)
        .join(Entry, Entry.key == Planned.entry_key)
        .outerjoin(Result, Result.key == Planned.result_key)
        .where(Planned.run_key == run_key)
        .order_by(Planned.position)
    )
    return statement.where(*_of_case(asked))


def _points(metric: str, asked: Asked) -> Select[Any]:
    figures = [name for name in series_columns(metric) if name.startswith(metric)]
    values: list[ColumnElement[Any]] = [_of(name, Result) for name in figures]
    if metric in TIMED:
        values = [case((Result.valid, value)) for value in values]
    special: dict[str, Any] = {
        "series": Series.key,
        "case_id": Case.id,
        "hard": Series.hard,
        "source": func.nullif(Series.source, ""),
        "branch": func.nullif(Series.branch, ""),
        "at": Result.started_at,
        "outcome": Result.outcome,
        "run_id": Run.id,
        **dict(zip(figures, values, strict=True)),
    }
    names = series_columns(metric)
    statement = (
        select(*[special[name] if name in special else _of(name, Case, Configuration) for name in names])
        .select_from(Series)
        .join(Case, Case.key == Series.case_key)
        .join(Configuration, Configuration.id == Case.configuration_id)
        .join(Result, Result.series_key == Series.key)
        .join(Run, Run.key == Result.run_key)
        .order_by(Series.key, Result.started_at, Result.key)
    )
    if asked.run:
        statement = statement.where(Run.id.in_(asked.run))
    for name in SERIES_FILTERS:
        statement = _one_of(statement, _of(name, Series), asked, name)
    return _between(statement, Result.started_at, asked).where(*_of_case(asked))


def _where_run(statement: Select[Any], asked: Asked, filters: Iterable[str]) -> Select[Any]:
    for name in filters:
        statement = _one_of(statement, _of(name, Run, Environment), asked, name)
    if asked.run:
        statement = statement.where(Run.id.in_(asked.run))
    return _between(statement, Run.started_at, asked)


def _of_case(asked: Asked) -> Iterable[ColumnElement[bool]]:
    words = asked.words or {}
    for name in CASE_FILTERS:
        if name == "model" and words.get(name):
            patterns = [_escaped(word).replace("*", "%").replace("?", "_") for word in words[name]]
            yield or_(*[Case.model.ilike(pattern, escape="\\") for pattern in patterns])
        elif words.get(name):
            yield _of(name, Case, Configuration).in_(words[name])


def _one_of(statement: Select[Any], column: Column[Any], asked: Asked, name: str) -> Select[Any]:
    words = (asked.words or {}).get(name, ())
    if not words:
        return statement
    choices: list[ColumnElement[bool]] = [column.in_([word for word in words if word])]
    if "" in words:
        choices += [column.is_(None), column == ""]
    return statement.where(or_(*choices))


def _between(statement: Select[Any], column: Any, asked: Asked) -> Select[Any]:
    if asked.since is not None:
        statement = statement.where(column >= asked.since)
    return statement if asked.until is None else statement.where(column < asked.until)


def _of(name: str, *tables: Any) -> Column[Any]:
    """Return the column of this name in the first of the tables that has one."""
    found: Column[Any] = next(table.__table__.c[name] for table in tables if name in table.__table__.c)
    return found


def _escaped(text: str) -> str:
    for sign in "\\%_":
        text = text.replace(sign, f"\\{sign}")
    return text
