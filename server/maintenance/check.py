"""Is a database whole? Its own word for it, what its rows refer to, and what the store keeps for pages."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import Connection, Engine, and_, exists, func, select

from server import db
from server.maintenance.prune import forget_empty
from server.maintenance.recount import Fault, FaultKind, of_run, of_series, pages
from server.tables import Case, Entry, Planned, Result, Run, Series

SERIES_AT_ONCE = 20
"""Series in one transaction: a case that ran for ten years has some thousand results."""

NAMED = 20
"""References that are named one by one; a damaged database may have millions."""


def check(engine: Engine, repair: bool = False) -> Iterator[Fault]:
    """Yield what is wrong, as it is found; with `repair`, what can be counted anew is.

    Args:
        repair: needs nothing but the store's own locks: others may write meanwhile.

    Raises:
        BenchError: the database cannot be read at all.
    """
    with db.explained(engine.url):
        yield from _file(engine)
        yield from _references(engine)
        last = 0
        while keys := _next(engine, Run, last, 1):
            last = keys[-1]
            with _look(engine, repair) as connection:
                faults = of_run(connection, last, repair)
            yield from faults
        last = 0
        while keys := _next(engine, Series, last, SERIES_AT_ONCE):
            last = keys[-1]
            with _look(engine, repair) as connection:
                faults = of_series(connection, keys, repair)
            yield from faults
        if repair:
            forget_empty(engine)


@contextmanager
def _look(engine: Engine, repair: bool = False) -> Iterator[Connection]:
    """Open a transaction that sees one state of the database; or, to repair, one that waits for other writers."""
    if repair:
        with db.writing(engine).begin() as connection:
            yield connection
        return
    one_state = {"isolation_level": "REPEATABLE READ"} if engine.dialect.name == "postgresql" else {}
    with engine.execution_options(**one_state).begin() as connection:
        yield connection


def _next(engine: Engine, table: type[Run] | type[Series], after: int, size: int) -> list[int]:
    with _look(engine) as connection:
        return pages(connection, table, after, size)


def _file(engine: Engine) -> Iterator[Fault]:
    """Ask SQLite itself; PostgreSQL has tools of its own for its files (pg_amcheck)."""
    if engine.dialect.name != "sqlite":
        return
    with engine.connect() as connection:
        damage = [str(text) for text in connection.exec_driver_sql("PRAGMA integrity_check").scalars()]
        broken = connection.exec_driver_sql("PRAGMA foreign_key_check").all()
    name = str(engine.url.database)
    yield from (Fault(FaultKind.FILE, name, text) for text in damage if text != "ok")
    for table, row, parent, _ in broken[:NAMED]:
        where = f"table {table}" + ("" if row is None else f", row {row}")
        yield Fault(FaultKind.REFERENCE, where, f"refers to a row of {parent} that is not there")
    if len(broken) > NAMED:
        yield Fault(FaultKind.REFERENCE, name, f"{len(broken) - NAMED} more rows refer to ones that are not there")


def _references(engine: Engine) -> Iterator[Fault]:
    """Look for what every page would stumble over."""
    in_plan = and_(Planned.run_key == Result.run_key, Planned.case_key == Result.case_key)
    asked = {
        "planned cases have no entry": select(func.count())
        .select_from(Planned)
        .where(~exists().where(Entry.key == Planned.entry_key)),
        "planned cases have no case": select(func.count())
        .select_from(Planned)
        .where(~exists().where(Case.key == Planned.case_key)),
        "results have no series": select(func.count())
        .select_from(Result)
        .where(~exists().where(Series.key == Result.series_key)),
        "results are not in their run's plan": select(func.count()).select_from(Result).where(~exists().where(in_plan)),
    }
    for text, statement in asked.items():
        with _look(engine) as connection:
            count = connection.scalar(statement)
        if count:
            yield Fault(FaultKind.REFERENCE, statement.get_final_froms()[0].description, f"{count} {text}")
