"""The schema's history leads to what the tables say, from a checkout and from a wheel."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory

from server import db, migrations
from server.tables import Base


def test_migrations_agree_with_the_tables(url):
    """A database built by the migrations differs in nothing from the models."""
    with db.connect(url).connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})

        assert [] == compare_metadata(context, Base.metadata)


def test_known_revisions_are_those_of_the_folder(url):
    """The list of revisions in the code is that of the files, so that a new file is not forgotten."""
    with db.connect(url).connect() as connection:
        script = ScriptDirectory.from_config(migrations.configuration(connection))

    assert list(migrations.REVISIONS) == [revision.revision for revision in reversed(list(script.walk_revisions()))]


def test_second_opening_needs_no_migration(url, monkeypatch):
    """An up-to-date database opens without Alembic."""
    db.connect(url).dispose()
    monkeypatch.setattr(db, "upgrade", lambda connection: pytest.fail("upgraded twice"))

    db.connect(url).dispose()


def test_broken_migration_leaves_nothing(url, tmp_path, monkeypatch):
    """The schema is changed in one transaction: all of it, or nothing."""
    whole = db.upgrade

    def broken(connection):
        whole(connection)
        raise KeyboardInterrupt

    monkeypatch.setattr(db, "upgrade", broken)
    with pytest.raises(KeyboardInterrupt):
        db.connect(url)

    with sqlite3.connect(tmp_path / "bench.db") as found:
        assert [] == found.execute("SELECT name FROM sqlite_master").fetchall()


def test_versions_lie_in_the_package():
    """Each file of the history is part of the installed package, with the template for the next."""
    folder = Path(migrations.__file__).parent

    assert len(migrations.REVISIONS) == len(list((folder / "versions").glob("0*.py")))
    assert (folder / "script.py.mako").is_file()
