"""How large a database is, of what, since when, and how fast it grows."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, func, select, text
from sqlalchemy.exc import OperationalError

from server import db
from server.tables import Base, Result, Run

LATELY = timedelta(days=30)
"""Before the newest run: the nights that growth is counted from."""


@dataclass(frozen=True)
class TableSize:
    """Rows of a table; bytes with its indexes, None where the database does not tell."""

    name: str
    rows: int
    bytes: int | None


@dataclass(frozen=True)
class Growth:
    """What a night adds: the mean of the nights (days, UTC, on which a run began) in the last thirty days."""

    nights: int
    runs_per_night: float
    results_per_night: float
    bytes_per_night: float | None
    """An estimate: results of a night times the mean bytes of a result, with all that hangs on it."""


@dataclass(frozen=True)
class Sizes:
    """A database at one moment."""

    schema: str
    tables: tuple[TableSize, ...]
    bytes: int | None
    """Of all: the file with its log, or the tables with their indexes."""
    runs: int
    results: int
    oldest: datetime | None
    newest: datetime | None
    growth: Growth | None
    """None: there is no run."""


def sizes(engine: Engine) -> Sizes:
    """Count a database's rows and bytes.

    Raises:
        BenchError: it cannot be read.
    """
    with db.explained(engine.url), engine.begin() as connection:
        by_table = _bytes(connection)
        rows = {
            table.name: connection.scalar(select(func.count()).select_from(table)) or 0
            for table in Base.metadata.sorted_tables
        }
        oldest, newest = connection.execute(select(func.min(Run.started_at), func.max(Run.started_at))).one()
        whole = _file_bytes(engine) if engine.dialect.name == "sqlite" else sum(by_table.values())
        return Sizes(
            schema=db.revision(connection) or "none",
            tables=tuple(TableSize(name, count, by_table.get(name)) for name, count in rows.items()),
            bytes=whole,
            runs=rows["run"],
            results=rows["result"],
            oldest=oldest,
            newest=newest,
            growth=_growth(connection, newest, rows["result"], whole) if newest is not None else None,
        )


def _bytes(connection: Connection) -> dict[str, int]:
    if connection.dialect.name == "postgresql":
        found = connection.execute(
            text(
                "SELECT c.relname, pg_total_relation_size(c.oid) FROM pg_class c "
                "JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind = 'r' AND n.nspname = current_schema()"
            )
        )
    else:
        try:
            found = connection.exec_driver_sql(
                "SELECT m.tbl_name, sum(s.pgsize) FROM dbstat s JOIN sqlite_master m ON m.name = s.name "
                "WHERE s.aggregate = TRUE GROUP BY m.tbl_name"
            )
        except OperationalError as error:
            if "dbstat" not in str(error):
                raise
            return {}  # SQLite may be built without this table
    return {name: int(size) for name, size in found}


def _file_bytes(engine: Engine) -> int:
    path = Path(engine.url.database or "")
    files = (path, path.with_name(path.name + "-wal"))
    return sum(file.stat().st_size for file in files if file.exists())


def _growth(connection: Connection, newest: datetime, results: int, size: int | None) -> Growth:
    lately = connection.execute(select(Run.key, Run.started_at).where(Run.started_at > newest - LATELY)).all()
    nights = len({row.started_at.astimezone(UTC).date() for row in lately})
    fresh: Any = (
        select(func.count())
        .select_from(Result)
        .join(Run, Run.key == Result.run_key)
        .where(Run.started_at > newest - LATELY)
    )
    per_night = (connection.scalar(fresh) or 0) / nights
    return Growth(
        nights=nights,
        runs_per_night=len(lately) / nights,
        results_per_night=per_night,
        bytes_per_night=per_night * size / results if size is not None and results else None,
    )
