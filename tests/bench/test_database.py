"""`bench db`: what an operator types, and what is answered."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest

from bench import main
from server.store import Store
from tests.server import factory


@pytest.fixture
def database(tmp_path: Path) -> str:
    """A finished run of three cases, long ago."""
    url = f"sqlite:///{tmp_path}/bench.db"
    store = Store.connect(url)
    run = factory.make_run(3, at=factory.BEGIN.replace(year=2020))
    store.open(run)
    store.save([factory.make_record(planned.case, at=run.started_at) for planned in run.plan])
    store.close(factory.make_end(at=run.started_at))
    store.dispose()
    return url


def say(capsys: pytest.CaptureFixture[str], code: int, *args: str) -> str:
    """Run `bench db ...`, which must end with this code, and return what it printed."""
    assert code == main.run(["db", *args])
    captured = capsys.readouterr()
    return captured.out if code == 0 else captured.out + captured.err


def test_upgrade(tmp_path, capsys):
    """The first time tables are made, the second there is nothing to do; both say the schema."""
    database = ["--database", f"sqlite:///{tmp_path}/new.db"]

    assert "Created with schema 0" in say(capsys, 0, "upgrade", *database)
    assert "already: nothing to do" in say(capsys, 0, "upgrade", *database)
    line = json.loads(say(capsys, 0, "upgrade", "--json", *database))
    assert ("db_upgrade", line["after"]) == (line["type"], line["before"])


def test_upgrade_says_from_where(tmp_path, capsys):
    """An older schema is named, with the one that it was brought to."""
    from alembic import command
    from sqlalchemy import create_engine

    from server import migrations

    url = f"sqlite:///{tmp_path}/old.db"
    with create_engine(url).begin() as connection:
        command.upgrade(migrations.configuration(connection), "0002")

    assert f"Upgraded from schema 0002 to {migrations.HEAD}.\n" == say(capsys, 0, "upgrade", "--database", url)


def test_check_and_repair(database, tmp_path, capsys):
    """A fault is named and costs exit code 1; repaired it is named once more, and then it is gone."""
    assert "Nothing is wrong.\n" == say(capsys, 0, "check", "--database", database)
    with sqlite3.connect(tmp_path / "bench.db") as found:
        found.execute("UPDATE run SET passed = 9")

    said = say(capsys, 1, "check", "--database", database)
    assert f"counts: run {factory.RUN_ID}: passed 9, counted 3\n" in said
    assert "bench: 1 thing is wrong with the database, see above. `bench db check --repair`" in said
    assert "counted 3 (repaired)" in say(capsys, 0, "check", "--repair", "--database", database)
    assert {"faults": 0, "left": 0}.items() <= json.loads(
        say(capsys, 0, "check", "--json", "--database", database)
    ).items()


def test_stats(database, capsys):
    """Tables, the largest first, then the whole, and what a night adds; for programs all of it in one line."""
    said = say(capsys, 0, "stats", "--database", database)

    assert "oldest 2020-08-12 01:00, newest 2020-08-12 01:00 UTC" in said
    assert "a night adds 1.0 runs, 3 results, about 0." in said
    line = json.loads(say(capsys, 0, "stats", "--json", "--database", database))
    assert (1, 3, "2020-08-12T01:00:00+00:00", 1) == (
        line["runs"],
        line["results"],
        line["oldest"],
        line["growth"]["nights"],
    )


def test_prune(database, capsys):
    """A dry run says what would go, the other what went; then there is nothing left to go."""
    keep = ["prune", "--keep", "2y", "--database", database]

    removed = f"1 run with 3 results {{}}: {factory.RUN_ID} to {factory.RUN_ID}\n"
    assert removed.format("would be removed") == say(capsys, 0, *keep, "--dry-run")
    assert removed.format("removed") + "3 series without any result left removed\n" == say(capsys, 0, *keep)
    assert [] == json.loads(say(capsys, 0, *keep, "--json"))["runs"]


@pytest.mark.parametrize(("span", "said"), [("2", "is no duration"), ("0d", "is no time"), (None, "nothing to prune")])
def test_prune_refuses_nonsense(database, capsys, span, said):
    """What is no duration, and nothing at all, are refused as wrong usage."""
    keep = ["--keep", span] if span else []

    assert said in say(capsys, 2, "prune", *keep, "--database", database)


def test_backup(database, tmp_path, capsys):
    """The copy is a database like any other, and the answer says how to use it."""
    copy = tmp_path / "copy.db"

    assert f"--database sqlite:///{copy}\n" in say(capsys, 0, "backup", str(copy), "--database", database)
    assert "Nothing is wrong.\n" == say(capsys, 0, "check", "--database", f"sqlite:///{copy}")


@pytest.mark.parametrize("verb", [["check"], ["stats"], ["prune", "--keep", "1y"], ["backup", "copy.db"]])
def test_database_that_is_not_there(tmp_path, capsys, verb):
    """Asking after a database does not make it."""
    said = say(capsys, 1, *verb, "--database", f"sqlite:///{tmp_path}/none.db")

    assert "is not there" in said
    assert [] == [*tmp_path.iterdir()]
