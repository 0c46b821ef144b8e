"""How a database is opened, and what is said when it cannot be."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from harness.errors import BenchError
from server import db
from tests.server import factory


def test_new_file_is_created_with_write_ahead_log(sqlite_url):
    """A database that does not exist is created; readers may read while one writes."""
    engine = db.connect(sqlite_url)

    with engine.connect() as connection:
        assert "wal" == connection.exec_driver_sql("PRAGMA journal_mode").scalar()
        assert 1 == connection.exec_driver_sql("PRAGMA foreign_keys").scalar()


def test_what_is_not_there_yet(sqlite_url, tmp_path):
    """A file that nobody has written is not there, and asking does not make it; what a server has is never known so."""
    assert not db.exists(sqlite_url)
    assert [] == [*tmp_path.iterdir()]

    db.connect(sqlite_url)

    assert db.exists(sqlite_url)
    assert db.exists("postgresql+psycopg://user@nowhere/bench")
    with pytest.raises(BenchError, match="is no database URL"):
        db.exists("bench.db")


def test_writer_takes_the_lock_at_once(sqlite_url):
    """A writer's transaction begins IMMEDIATE: a second writer waits before it has read anything."""
    engine = db.connect(sqlite_url)
    with db.writing(engine).begin():
        other = sqlite3.connect(engine.url.database, timeout=0, isolation_level=None)
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            other.execute("BEGIN IMMEDIATE")
        other.execute("BEGIN")
        assert [(0,)] == other.execute("SELECT count(*) FROM run").fetchall()
        other.close()


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        ("bench.db", "is no database URL: write e.g. sqlite:///bench.db"),
        ("", "is no database URL"),
        ("mysql://bench@host/bench", "'mysql' is not supported"),
        ("sqlite://", "would be lost at once: name a file"),
        ("sqlite:////no/such/folder/bench.db", "Make sure that the folder exists"),
    ],
)
def test_bad_url(bad, said):
    """A URL that cannot work is answered with one that can."""
    with pytest.raises(BenchError, match=said):
        db.connect(bad)


def test_missing_driver_is_named(monkeypatch):
    """A PostgreSQL URL without its driver says what to install, and never shows the password."""
    monkeypatch.setitem(sys.modules, "psycopg", None)

    with pytest.raises(BenchError, match="pip install psycopg") as refused:
        db.connect("postgresql+psycopg://bench:secret@host/bench")
    assert "secret" not in str(refused.value)


def test_file_that_is_no_database(tmp_path):
    """A file of another kind is left as it is."""
    path = tmp_path / "notes.txt"
    path.write_text("not a database, but long enough to have a header of sixteen bytes\n" * 20)
    before = path.read_bytes()

    with pytest.raises(BenchError, match=r"file is not a database\. The file is something else"):
        db.connect(f"sqlite:///{path}")
    assert before == path.read_bytes()


def test_database_of_another_program(tmp_path):
    """A database with tables of somebody else is left as it is."""
    path = tmp_path / "other.db"
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE songs (title TEXT)")
    before = path.read_bytes()

    with pytest.raises(BenchError, match=r"belongs to something else \(it has a table 'songs'\)"):
        db.connect(f"sqlite:///{path}")
    assert before == path.read_bytes()


def test_schema_newer_than_the_code(url):
    """A database of a newer version is not touched; the remedy is named."""
    engine = db.connect(url)
    with db.writing(engine).begin() as connection:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")

    with pytest.raises(BenchError, match=r"schema 9999, this one knows .*Install a newer"):
        db.connect(url)


def test_full_disk(sqlite_url, tmp_path):
    """When the disk is full the sentence says so, and that the journal still has what is missing."""
    script = (
        "import resource, signal\n"
        "from server.store import Store\n"
        "from tests.server import factory\n"
        f"store = Store.connect({sqlite_url!r})\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))\n"
        "store.open(factory.make_run(200))\n"
    )
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, cwd=_root())

    assert "BenchError: database sqlite:///" in ended.stderr
    assert "bench import" in ended.stderr


def test_unreadable_file(sqlite_url, tmp_path):
    """A file that may not be read is named, with what to do."""
    db.connect(sqlite_url).dispose()
    path = tmp_path / "file.db"
    path.chmod(0)
    if os.access(path, os.R_OK):  # root reads everything: a folder in its place is refused to root too
        path.unlink()
        path.mkdir()

    with pytest.raises(BenchError, match=r"file\.db: .* (Make sure|Make the file)"):
        db.connect(sqlite_url)


def _root() -> Path:
    return Path(factory.__file__).parents[2]
