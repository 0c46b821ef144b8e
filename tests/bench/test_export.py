"""`bench export`: a run of the database, or of a journal, as files that others read; nothing there is overwritten."""

from __future__ import annotations

import builtins
import csv
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from bench import data
from bench.export import app
from harness.errors import BenchError, UsageError
from harness.formats import flat
from server.store import Store
from tests.server import factory


@pytest.fixture
def database(tmp_path: Path) -> str:
    """One run: a model that passed, one that failed."""
    url = f"sqlite:///{tmp_path}/bench.db"
    run = factory.make_run(2)
    store = Store.connect(url)
    store.open(run)
    store.record(factory.make_record(run.plan[0].case))
    store.record(factory.make_record(run.plan[1].case, "timeout"))
    store.close(factory.make_end())
    store.dispose()
    return url


def export(database, *arguments):
    return CliRunner().invoke(app, [*map(str, arguments), "--database", database])


def test_runner_files(database, tmp_path):
    """The runner's files go to a new folder, with a page on what the zeros mean, and can be imported again."""
    folder = tmp_path / "out"
    told = export(database, "latest", "--format", "pytorch-csv", "--output", folder)
    again = CliRunner().invoke(data.app, [*map(str, sorted(folder.glob("*.csv"))), "--database", database])

    assert 0 == told.exit_code
    assert told.stdout.startswith(f"run {factory.RUN_ID[:8]}: {folder}/inductor_default_toy_float32_inference_cpu")
    assert ["README.txt", 2] == [next(folder.glob("*.txt")).name, len([*folder.glob("*.csv")])]
    assert "2 records: 2 new" in again.stdout


def test_tables(database, tmp_path):
    """CSV and JSON hold a row per record."""
    for name in ("csv", "json"):
        assert 0 == export(database, "latest", "--format", name, "--output", tmp_path / f"x.{name}").exit_code

    with (tmp_path / "x.csv").open(newline="") as file:
        assert ["model_0", "model_1"] == [row["model"] for row in csv.DictReader(file)]
    assert [1.25, None] == [row["speedup"] for row in json.loads((tmp_path / "x.json").read_text())]


def test_records(database, tmp_path):
    """Records of schema v3 are one JSON object a line, with every sample."""
    export(database, factory.RUN_ID[:8], "--format", "oss-v3", "--output", tmp_path / "x.jsonl")
    written = [json.loads(line) for line in (tmp_path / "x.jsonl").read_text().splitlines()]

    (samples,) = [each for each in written if each["metric"]["name"] == "eager_latency_samples"]
    assert factory.PAIRS == len(samples["metric"]["benchmark_values"])


def test_of_a_journal(database, tmp_path):
    """A journal is exported as the run that it holds; no database is needed."""
    run = factory.make_run(1)
    journal = tmp_path / "x.jsonl"
    lines = (run, factory.make_record(run.plan[0].case))
    journal.write_text("".join(line.model_dump_json() + "\n" for line in lines))

    told = export("sqlite:////nowhere/at.db", journal, "--format", "json", "--output", tmp_path / "x.json")

    assert 0 == told.exit_code
    assert 1 == len(json.loads((tmp_path / "x.json").read_text()))


@pytest.mark.parametrize("format", ["csv", "pytorch-csv"])
def test_nothing_is_overwritten(database, tmp_path, format):
    """What is there already stays."""
    path = tmp_path / "there"
    path.write_text("mine")

    result = export(database, "latest", "--format", format, "--output", path)

    assert isinstance(result.exception, UsageError)
    assert "is there already" in str(result.exception)
    assert "mine" == path.read_text()


def test_what_fails_leaves_nothing(database, tmp_path, monkeypatch):
    """An export that fails half way leaves no file behind."""
    monkeypatch.setattr(flat, "rows", lambda run, records: (1 / 0 for _ in records))

    with pytest.raises(ZeroDivisionError):
        CliRunner().invoke(
            app,
            ["latest", "--format", "csv", "--output", str(tmp_path / "x.csv"), "--database", database],
            catch_exceptions=False,
        )

    assert ["bench.db"] == [path.name for path in tmp_path.iterdir() if not path.name.startswith("bench.db-")]


def test_cannot_be_written(database, tmp_path):
    """A folder that is not there is named."""
    result = export(database, "latest", "--format", "csv", "--output", tmp_path / "no" / "x.csv")

    assert isinstance(result.exception, BenchError)
    assert f"{tmp_path}/no/x.csv: cannot be written: No such file or directory" in str(result.exception)


def test_without_pyarrow(database, tmp_path, monkeypatch):
    """Parquet needs an extra: its name is said, and nothing is written."""
    original = builtins.__import__

    def without(name, *args, **kwargs):
        if name.startswith("pyarrow"):
            raise ImportError(name)
        return original(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    result = export(database, "latest", "--format", "parquet", "--output", tmp_path / "x.parquet")

    assert "pip install 'compile-bench[export]'" in str(result.exception)
    assert not (tmp_path / "x.parquet").exists()


def test_skips_of_other_formats(database, tmp_path):
    """An option that would do nothing is refused."""
    result = export(database, "latest", "--format", "csv", "--output", tmp_path / "x.csv", "--skips")

    assert "--skips goes with --format pytorch-csv alone" in str(result.exception)


def test_no_such_run(database, tmp_path):
    """A run that is not there is answered with what there is."""
    result = export(database, "ffff", "--format", "csv", "--output", tmp_path / "x.csv")

    assert "There is no run 'ffff'" in str(result.exception)
