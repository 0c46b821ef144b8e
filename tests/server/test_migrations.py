"""The schema's history leads to what the tables say, from a checkout and from a wheel."""

from __future__ import annotations

import base64
import json
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import JSON, Boolean, DateTime, MetaData, create_engine, inspect

from server import db, migrations
from server.queries import Queries
from server.store import Kept, Store
from server.tables import Base
from tests.server import factory
from tests.server.reading import rows

SCHEMAS = Path(__file__).parents[1] / "data" / "schemas"
"""What a past version wrote, by the number of its schema: two runs, a second attempt, a skip, a case in hand."""

SECOND = "0194a3f2-1111-7000-8000-000000000002"


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


def test_broken_migration_leaves_nothing(url, monkeypatch):
    """The schema is changed in one transaction: all of it, or nothing."""
    whole = db.upgrade

    def broken(connection):
        whole(connection)
        raise KeyboardInterrupt

    monkeypatch.setattr(db, "upgrade", broken)
    with pytest.raises(KeyboardInterrupt):
        db.connect(url)

    engine = create_engine(url)
    assert [] == inspect(engine).get_table_names()
    engine.dispose()


def test_versions_lie_in_the_package():
    """Each file of the history is part of the installed package, with the template for the next."""
    folder = Path(migrations.__file__).parent

    assert len(migrations.REVISIONS) == len(list((folder / "versions").glob("0*.py")))
    assert (folder / "script.py.mako").is_file()


@pytest.fixture(params=sorted(SCHEMAS.glob("*.json")), ids=lambda path: path.stem)
def past(request, url):
    """A database as a past version left it, with two runs in it; made from what that version wrote."""
    engine = create_engine(url)
    with engine.begin() as connection:
        command.upgrade(migrations.configuration(connection), request.param.stem)
    tables = MetaData()
    tables.reflect(engine)
    with engine.begin() as connection:
        for name, found in json.loads(request.param.read_text()).items():
            table = tables.tables[name]
            if found:
                connection.execute(table.insert(), [_row(table, row) for row in found])
    engine.dispose()
    return url


def _row(table, row):
    def value(name, stored):
        if isinstance(stored, dict):
            return base64.b64decode(stored["base64"])
        if stored is None:
            return None
        kind = table.c[name].type
        if isinstance(kind, JSON):
            return json.loads(stored)
        if isinstance(kind, DateTime):
            return datetime.fromisoformat(stored).replace(tzinfo=UTC)
        return bool(stored) if isinstance(kind, Boolean) else stored

    return {name: value(name, stored) for name, stored in row.items()}


def test_database_of_a_past_version_is_brought_here_with_all_that_is_in_it(past):
    """Every schema that ever was upgrades, and answers afterwards what it would have answered before."""
    queries = Queries(db.connect(past))

    newest, oldest = queries.runs()
    assert [(2, 1), (4, 3)] == [(run.planned, run.passed) for run in (newest, oldest)]
    found = {(result.model, result.precision): result for result in queries.results(oldest.id)}
    assert {"pass": 3, "skipped": 1} == dict(Counter(result.status for result in found.values()))
    assert (0.8, 2) == (found["conv", "fp32"].speedup.value, found["conv", "fp32"].attempt)
    expected = factory.make_record(factory.make_case("conv"), speedup=0.8, attempt=2)
    assert expected == queries.record(expected.id)
    assert 20 == len(queries.record(expected.id).timing.eager_s)


def test_series_are_made_of_what_was_there(past):
    """After the upgrade the two nights of one case are one series, whose head is the newer."""
    db.connect(past).dispose()

    heads = rows(
        past,
        'SELECT s.results, s.outcome, CAST(s.recent AS TEXT) FROM series s JOIN "case" c ON c.key = s.case_key '
        f"WHERE c.id = '{factory.make_case('mlp').id}'",
    )

    ((results, outcome, recent),) = heads
    assert (2, "pass") == (results, outcome)
    assert [1.25, 1.5] == [speedup for _, _, speedup, _, _ in json.loads(recent)]


def test_upgraded_database_goes_on(past):
    """A run that was begun by the past version takes its next record from this one."""
    store = Store.connect(past)
    later = factory.BEGIN + timedelta(days=1)
    record = factory.make_record(factory.make_case("conv"), run_id=SECOND, at=later + timedelta(minutes=3))

    assert [Kept.NEW] == store.save([record])
    assert [Kept.KNOWN] == store.save([record])
    assert [(2, 2, 0)] == rows(past, f"SELECT planned, passed, missing FROM run WHERE id = '{SECOND}'")
    store.dispose()
