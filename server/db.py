"""The engine: how a database is opened, locked and brought to this version's schema.

SQLite begins its transactions itself (pysqlite's own BEGIN comes too late): writers with BEGIN
IMMEDIATE, so that two of them wait for each other instead of failing half way; readers with BEGIN.
What the database refuses becomes a `BenchError` with the remedy.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event, inspect, make_url, text
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError

from harness.errors import BenchError
from server.migrations import HEAD, REVISIONS, upgrade

BUSY_TIMEOUT_S = 30
"""Longest wait for another writer; the longest transaction is the import of one journal, about a second."""

_LOCK = 0x62656E6368
"""Key of the Postgres advisory lock under which the schema is changed: "bench"."""


def connect(url: str) -> Engine:
    """Open a database, create or upgrade its schema, and return its engine.

    Raises:
        BenchError: the URL, the file or the server is no database of ours, or it is of a newer version.
    """
    parsed = _parse(url)
    with explained(parsed):
        engine = _engine(parsed)
        try:
            _prepare(engine)
        except BaseException:
            engine.dispose()
            raise
    return engine


def exists(url: str) -> bool:
    """Say whether there may be anything to read: a SQLite file is made by the first who connects to it.

    Raises:
        BenchError: the URL is no database of ours.
    """
    parsed = _parse(url)
    return parsed.get_backend_name() != "sqlite" or Path(parsed.database or "").exists()


def writing(engine: Engine) -> Engine:
    """Return the same engine for a writer: its transactions take the write lock at once."""
    return engine.execution_options(writes=True)


@contextmanager
def explained(url: URL) -> Iterator[None]:
    """Turn what the database refuses into a sentence that says what to do."""
    name = url.render_as_string(hide_password=True)
    try:
        yield
    except DBAPIError as error:
        cause = str(error.orig).strip() or type(error.orig).__name__
        raise BenchError(f"database {name}: {cause}. {_remedy(url, cause)}") from error
    except OSError as error:
        raise BenchError(f"database {name}: {error.strerror or error}. Check the path and its permissions.") from error


def _remedy(url: URL, cause: str) -> str:
    known = {
        "disk is full": "Free some space; the journal holds what is missing, `bench import` brings it in.",
        "disk I/O error": "Check the disk; the journal holds what is missing, `bench import` brings it in.",
        "readonly": "Make the file and its folder writable, or name another with --database.",
        "not a database": "The file is something else; name another with --database.",
        "malformed": "The file is damaged: move it away and `bench import` the journals into a new one.",
        "locked": "Another process has been writing for long; end it, or try again later.",
        "unable to open": "Make sure that the folder exists and may be written, or name another with --database.",
    }
    for words, remedy in known.items():
        if words in cause:
            return remedy
    if url.get_backend_name() == "sqlite":
        return "Name another file with --database, e.g. sqlite:///bench.db."
    return "Check that the server runs and that the name, the user and the password in the URL are right."


def _parse(url: str) -> URL:
    example = "e.g. sqlite:///bench.db or postgresql+psycopg://user@host/name"
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError) as error:
        raise BenchError(f"database {url!r} is no database URL: write {example}.") from error
    if parsed.get_backend_name() not in ("sqlite", "postgresql"):
        raise BenchError(f"database {parsed.get_backend_name()!r} is not supported: write {example}.")
    if parsed.get_backend_name() == "sqlite" and parsed.database in (None, "", ":memory:"):
        raise BenchError(f"database {url!r} would be lost at once: name a file, {example}.")
    return parsed


def _engine(url: URL) -> Engine:
    options: dict[str, Any] = {"json_serializer": partial(json.dumps, allow_nan=False)}
    try:
        if url.get_backend_name() != "sqlite":
            return create_engine(url, pool_pre_ping=True, **options)
        engine = create_engine(url, connect_args={"timeout": BUSY_TIMEOUT_S}, **options)
    except ModuleNotFoundError as error:
        raise BenchError(f"database driver {error.name!r} is not installed: `pip install {error.name}`.") from error
    except NoSuchModuleError as error:
        raise BenchError(f"database: {error}. Write e.g. postgresql+psycopg://user@host/name.") from error
    event.listen(engine, "connect", _configure)
    event.listen(engine, "begin", _begin)
    return engine


def _configure(connection: sqlite3.Connection, _: object) -> None:
    connection.isolation_level = None
    connection.execute("PRAGMA foreign_keys = ON")
    # NORMAL may lose the last transactions at a power cut, never the file: the journal is synced and has them.
    connection.execute("PRAGMA synchronous = NORMAL")


def _begin(connection: Connection) -> None:
    writes = connection.get_execution_options().get("writes", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _prepare(engine: Engine) -> None:
    with engine.connect() as connection:
        if _revision(connection, engine.url) == HEAD:
            return
    if engine.url.get_backend_name() == "sqlite":
        _write_ahead(engine)
    with writing(engine).begin() as connection:
        if connection.dialect.name == "postgresql":
            connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _LOCK})
        if _revision(connection, engine.url) != HEAD:  # another process may have been faster
            upgrade(connection)


def _revision(connection: Connection, url: URL) -> str | None:
    """Return the revision of the schema, None for an empty database."""
    tables = set(inspect(connection).get_table_names())
    name = url.render_as_string(hide_password=True)
    if "alembic_version" not in tables:
        if tables:
            raise BenchError(
                f"database {name} belongs to something else (it has a table {min(tables)!r}). "
                "Name another with --database."
            )
        return None
    found = connection.execute(text("SELECT version_num FROM alembic_version")).scalars().all()
    unknown = [revision for revision in found if revision not in REVISIONS]
    if unknown or len(found) != 1:
        raise BenchError(
            f"database {name} was written by another version (schema {', '.join(unknown) or 'unknown'}, this one knows "
            f"{HEAD}). Install a newer compile-bench, or name another database with --database."
        )
    return str(found[0])


def _write_ahead(engine: Engine) -> None:
    """Let readers read while one writes. Stays set in the file; a newcomer may have to wait for it."""
    Path(engine.url.database or "").expanduser().absolute().parent.stat()
    for last in (False,) * 20 + (True,):
        connection = engine.raw_connection()
        try:
            connection.cursor().execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            # SQLite does not wait for its busy timeout here.
            if last or "locked" not in str(error):
                raise DBAPIError("PRAGMA journal_mode", None, error) from error
            time.sleep(0.1)
        finally:
            connection.close()
