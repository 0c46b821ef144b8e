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
from server.settings import secret

BUSY_TIMEOUT_S = 30
"""Longest wait for another writer; the longest transaction is the import of one journal, about a second."""

CONNECT_TIMEOUT_S = 10

_LOCK = 0x62656E6368
"""Key of the Postgres advisory lock under which the schema is changed: "bench"."""


def connect(url: str, *, may_upgrade: bool = True) -> Engine:
    """Open a database, create or upgrade its schema, and return its engine.

    Args:
        may_upgrade: False leaves a PostgreSQL database as it is; a SQLite file is one program's, and always upgraded.

    Raises:
        BenchError: the URL, the file or the server is no database of ours, or it is of a newer version; or of an older
            one that may not be upgraded.
    """
    engine = opened(url)
    with explained(engine.url):
        try:
            _prepare(engine, may_upgrade or engine.dialect.name == "sqlite")
        except BaseException:
            engine.dispose()
            raise
    return engine


def opened(url: str) -> Engine:
    """Return the engine of a database whose schema is left as it is.

    Raises:
        BenchError: the URL is no database of ours, or its driver is missing.
    """
    return _engine(_parse(url))


def check(engine: Engine) -> None:
    """Ask whether the database answers and has this version's schema.

    Raises:
        BenchError: it does not.
    """
    with explained(engine.url), engine.connect() as connection:
        found = revision(connection)
    if found != HEAD:
        name = engine.url.render_as_string(hide_password=True)
        raise BenchError(f"database {name} has the schema {found or 'of nothing'}, and this version needs {HEAD}.")


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
        cause = " ".join(str(error.orig).split()).rstrip(".") or type(error.orig).__name__
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
        "lock timeout": "Another process has been writing for long; end it, or try again later.",
        "No space left": "Free some space; the journal holds what is missing, `bench import` brings it in.",
        "could not extend": "Free some space; the journal holds what is missing, `bench import` brings it in.",
        "could not write": "Free some space; the journal holds what is missing, `bench import` brings it in.",
        "unable to open": "Make sure that the folder exists and may be written, or name another with --database.",
    }
    for words, remedy in known.items():
        if words in cause:
            return remedy
    if url.get_backend_name() == "sqlite":
        return "Name another file with --database, e.g. sqlite:///bench.db."
    if "connection" in cause:
        return "The server went away or cannot be reached: start it again; what was not stored is in the journal."
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
            if url.password is None and (password := secret("BENCH_DATABASE_PASSWORD")) is not None:
                url = url.set(password=password)
            waiting = {} if "connect_timeout" in url.query else {"connect_timeout": CONNECT_TIMEOUT_S}
            engine = create_engine(url, pool_pre_ping=True, connect_args=waiting, **options)
            event.listen(engine, "connect", _limit_waiting)
            return engine
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


def _limit_waiting(connection: Any, _: object) -> None:
    """PostgreSQL would wait for another's lock for ever."""
    connection.autocommit = True
    connection.execute(f"SET lock_timeout = '{BUSY_TIMEOUT_S}s'")
    connection.autocommit = False


def _begin(connection: Connection) -> None:
    writes = connection.get_execution_options().get("writes", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _prepare(engine: Engine, may_upgrade: bool) -> None:
    with engine.connect() as connection:
        found = revision(connection)
    if found == HEAD:
        return
    if not may_upgrade:
        held = "has no tables yet" if found is None else f"has schema {found}, and this version needs {HEAD}"
        name = engine.url.render_as_string(hide_password=True)
        raise BenchError(f"database {name} {held}. Upgrade it first: bench db upgrade.")
    if engine.url.get_backend_name() == "sqlite":
        _write_ahead(engine)
    with writing(engine).begin() as connection:
        if connection.dialect.name == "postgresql":
            connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _LOCK})
        if revision(connection) != HEAD:  # another process may have been faster
            upgrade(connection)


def revision(connection: Connection) -> str | None:
    """Return the revision of the schema, None for an empty database.

    Raises:
        BenchError: it belongs to another program, or to a newer version.
    """
    tables = set(inspect(connection).get_table_names())
    name = connection.engine.url.render_as_string(hide_password=True)
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
