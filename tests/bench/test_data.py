"""`bench import`: journals into the database, each wholly or not at all."""

from __future__ import annotations

import gzip
import json
import sqlite3
from pathlib import Path

import pytest
from typer.testing import CliRunner

from bench.data import app
from harness.errors import BenchError
from tests.server import factory


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return tmp_path / "bench.db"


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    """A finished run of three cases, as `bench run` writes it."""
    run = factory.make_run(3)
    records = [factory.make_record(planned.case) for planned in run.plan]
    path = tmp_path / "run.jsonl"
    path.write_text("".join(line.model_dump_json() + "\n" for line in (run, *records, factory.make_end())))
    return path


def load(database, *arguments):
    return CliRunner().invoke(app, [*map(str, arguments), "--database", f"sqlite:///{database}"])


def stored(database) -> int:
    with sqlite3.connect(database) as found:
        return found.execute("SELECT count(*) FROM result").fetchone()[0]


def test_new_and_known(database, journal):
    """A journal is loaded once; the second time its records are known."""
    first, second = load(database, journal), load(database, journal)

    assert f"{journal}: journal of run 0194a3f2, 3 records: 3 new\n" == first.stdout
    assert f"{journal}: journal of run 0194a3f2, 3 records: 0 new, 3 already there\n" == second.stdout
    assert 3 == stored(database)


def test_compressed(database, journal, tmp_path):
    """A gzipped journal is read as it is."""
    packed = tmp_path / "run.jsonl.gz"
    packed.write_bytes(gzip.compress(journal.read_bytes()))

    assert "3 new" in load(database, packed).stdout


def test_torn_last_line(database, journal):
    """The torn last line of a killed run loses that line alone."""
    journal.write_text(journal.read_text()[:-30])

    assert "3 new" in load(database, journal).stdout


@pytest.mark.parametrize("place", [0, 2])
def test_bad_line_stores_nothing_of_its_file(database, journal, place):
    """A broken line is named by file and number; nothing of that file is stored, all of the others is."""
    lines = journal.read_text().splitlines(keepends=True)
    broken = journal.with_name("broken.jsonl")
    broken.write_text("".join(lines[:place]) + "{broken\n" + "".join(lines[place:]))
    result = load(database, broken, journal)

    assert f"bench: {broken}, line {place + 1}: not JSON" in result.stderr
    assert "Nothing of this file was stored." in result.stderr
    assert "3 new" in result.stdout
    assert isinstance(result.exception, BenchError)
    assert (1, 3) == (result.exception.exit_code, stored(database))


def test_record_of_another_run(database, journal, tmp_path):
    """A record that does not belong to the journal's run is refused, with the file's name."""
    stray = factory.make_record(factory.make_case("stranger"))
    journal.write_text(journal.read_text() + stray.model_dump_json() + "\n")

    result = load(database, journal)

    assert f"bench: {journal}: run {factory.RUN_ID} has no case" in result.stderr
    assert 0 == stored(database)


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("nothing.jsonl", None, "cannot be read: No such file"),
        ("empty.jsonl", "", "does not begin with a run"),
        ("notes.txt", "milk, eggs\n", "not JSON"),
        ("fake.jsonl.gz", "not gzipped\n", "cannot be read"),
    ],
)
def test_what_is_no_journal(database, tmp_path, name, content, said):
    """Other files are refused with where, what and what to do."""
    path = tmp_path / name
    if content is not None:
        path.write_text(content)

    result = load(database, path)

    assert result.stderr.startswith(f"bench: {path}")
    assert said in result.stderr
    assert "1 of 1 files could not be imported" in str(result.exception)


def test_folder(database, tmp_path):
    """A folder is answered with the pattern of its journals."""
    assert f"{tmp_path}: is a folder. Name the journals in it: {tmp_path}/*.jsonl" in load(database, tmp_path).stderr


def test_json(database, journal):
    """For programs there is one object a file."""
    line = json.loads(load(database, journal, "--json").stdout)

    assert (1, "import", 3, 0) == tuple(line[name] for name in ("schema", "type", "new", "already_there"))
