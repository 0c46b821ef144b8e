"""A copy of a database while others write: SQLite's own backup, or pg_dump."""

from __future__ import annotations

import os
import shlex
import shutil
import sqlite3
import subprocess
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

from sqlalchemy import URL, Engine, text

from harness.errors import BenchError
from server import db


def backup(engine: Engine, path: Path) -> int:
    """Copy a database into a file that is not there yet, and return its bytes. Nothing half done is left behind.

    Raises:
        BenchError: the file exists, cannot be written, or the copy is not whole; pg_dump is missing or fails.
    """
    if path.exists():
        raise BenchError(f"{path}: exists already; a backup never overwrites. Name another file.")
    part = path.with_name(path.name + ".part")
    try:
        with part.open("wb"):  # says what is wrong with the path before anything is copied
            pass
        if engine.dialect.name == "sqlite":
            with db.explained(engine.url):
                _copy(engine, part)
        else:
            _dump(engine, part)
        with part.open("rb+") as file:
            os.fsync(file.fileno())
        part.rename(path)
    except OSError as error:
        raise BenchError(f"{path}: {error.strerror or error}. Name a file in a folder that may be written.") from error
    finally:
        part.unlink(missing_ok=True)
    return path.stat().st_size


def _copy(engine: Engine, part: Path) -> None:
    """Copy all pages in one read transaction: with the write-ahead log, writers go on meanwhile."""
    try:
        with closing(sqlite3.connect(part)) as target, closing(engine.raw_connection()) as source:
            connection = source.driver_connection
            assert isinstance(connection, sqlite3.Connection)
            connection.backup(target)
            target.execute("PRAGMA journal_mode = DELETE")  # one file, that may be moved; who opens it sets it again
            found = [str(row[0]) for row in target.execute("PRAGMA quick_check")]
    except sqlite3.Error as error:
        raise BenchError(f"{part.with_suffix('')}: {error}. Make room, or name a file on another disk.") from error
    if found != ["ok"]:
        raise BenchError(f"the copy is not whole: {found[0]}. See `bench db check`.")


def _dump(engine: Engine, part: Path) -> None:
    with db.explained(engine.url), engine.connect() as connection:
        schema = str(connection.scalar(text("SELECT current_schema()")))
    command = ["pg_dump", "--format=custom", f"--schema={schema}", f"--file={part}", f"--dbname={conninfo(engine.url)}"]
    if shutil.which("pg_dump") is None:
        said = shlex.join([*command[:3], f"--file={part.with_suffix('')}", command[4]])
        raise BenchError(f"pg_dump is not installed here. Install PostgreSQL's client, or run where it is: {said}")
    done = subprocess.run(
        command, env=_environment(engine.url), capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False
    )
    if done.returncode:
        last = done.stderr.strip().splitlines()[-1:] or [f"exit code {done.returncode}"]
        raise BenchError(
            f"pg_dump: {last[0].removeprefix('pg_dump: ')}. It must be of the server's version or newer, and its user "
            "may read everything; nothing was kept."
        )


def conninfo(url: URL) -> str:
    """Return a URL as libpq reads it, without its password: others can see the arguments of a process."""
    query = {name: value if isinstance(value, str) else value[-1] for name, value in url.query.items()}
    plain = {"host": url.host, "port": url.port, "user": url.username, "dbname": url.database}
    known: Mapping[str, object] = {**{name: value for name, value in plain.items() if value is not None}, **query}
    return " ".join(f"{name}={_quoted(str(value))}" for name, value in known.items())


def _quoted(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def _environment(url: URL) -> dict[str, str]:
    return {**os.environ, **({"PGPASSWORD": str(url.password)} if url.password else {})}
