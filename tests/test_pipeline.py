"""The whole line, as a user has it: `bench run` as a process, the database, the page; killed and resumed."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import TypeVar

import psutil
import pytest
from starlette.testclient import TestClient

from dashboards.app import create_app
from harness.journal import read, replay
from harness.record import JournalLine, Outcome, Record, Start
from server.settings import Settings

ROOT = Path(__file__).parents[1]
BENCH = [sys.executable, "-m", "bench.main"]
T = TypeVar("T")
TOY = ["run", "--suite", "toy", "--backend", "aot_eager", "--max-seconds", "0.3"]


def start(folder: Path, *args: str) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"}
    return subprocess.Popen(
        [*BENCH, *args],
        cwd=folder,
        env=environment,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )


def lines(kind: type[T], folder: Path) -> list[T]:
    journals = sorted((folder / "runs").glob("*.jsonl")) if (folder / "runs").exists() else []
    return [line for path in journals for line in read(path) if isinstance(line, kind)]


def wait_for(kind: type[JournalLine], count: int, folder: Path, process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + 120
    while len(lines(kind, folder)) < count:
        assert process.poll() is None, process.communicate()[1]
        assert time.monotonic() < deadline
        time.sleep(0.1)


def rows(folder: Path) -> list[dict[str, object]]:
    client = TestClient(create_app(Settings(database=f"sqlite:///{folder}/bench.db")))
    return list(client.get("/api/v1/runs/latest/results").json())


def test_from_the_command_to_the_page(tmp_path: Path) -> None:
    """One command measures the toy suite; its results are in the journal, in the database and on the page."""
    process = start(tmp_path, *TOY, "--only-accuracy")
    out, err = process.communicate(timeout=200)
    assert process.returncode == 0, err
    assert "6 of 6 passed" in out
    with pytest.raises(ProcessLookupError):  # nothing of the run is left, not even a forkserver on its way out
        os.killpg(process.pid, 0)

    measured = lines(Record, tmp_path)
    assert [record.outcome for record in measured] == [Outcome.PASS] * 6
    assert len(rows(tmp_path)) == 6
    client = TestClient(create_app(Settings(database=f"sqlite:///{tmp_path}/bench.db")))
    page = client.get(f"/runs/{measured[0].run_id}")
    assert page.status_code == 200
    for model in ("mlp", "conv", "attention"):
        assert model in page.text


def test_killed_and_resumed(tmp_path: Path) -> None:
    """After SIGKILL of everything in the middle, nothing is left running, and `--resume` completes the run:
    no row lost, none doubled."""
    process = start(tmp_path, *TOY)
    wait_for(Record, 2, tmp_path, process)
    family = psutil.Process(process.pid).children(recursive=True)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    _, alive = psutil.wait_procs(family, timeout=15)
    assert alive == []
    before = {record.id for record in lines(Record, tmp_path)}

    done = start(tmp_path, "run", "--resume", "latest")
    out, err = done.communicate(timeout=200)
    assert done.returncode == 0, err
    assert "6 of 6 passed" in out

    (journal,) = (tmp_path / "runs").glob("*.jsonl")
    history = replay(journal)
    counts = Counter(record.case.id for record in lines(Record, tmp_path))
    assert counts == Counter(planned.case.id for planned in history.run.plan)
    assert before <= {record.id for record in history.records.values()}
    assert len(rows(tmp_path)) == 6


def test_interrupted_by_hand(tmp_path: Path) -> None:
    """Ctrl-C once finishes the record in hand and begins no other, exits with 130 and says how to go on."""
    process = start(tmp_path, *TOY, "--only-accuracy")
    wait_for(Start, 2, tmp_path, process)  # between two cases nothing would be in hand
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=100)

    assert process.returncode == 130, err
    finished = len(lines(Record, tmp_path))
    assert finished == len(lines(Start, tmp_path)) < 6
    assert f"missing {6 - finished}" in out
    assert "--resume" in out


def test_without_a_database_nothing_is_lost(tmp_path: Path) -> None:
    """When the database breaks in the middle, the run goes on; the journal has all, and `bench import` catches up."""
    process = start(tmp_path, *TOY, "--only-accuracy")
    wait_for(Record, 1, tmp_path, process)
    while process.poll() is None:  # again and again: a transaction under way could mend what is damaged once
        for path in tmp_path.glob("bench.db*"):
            # In place, as one of the files is mapped: cut short it would kill whoever reads it.
            with contextlib.suppress(FileNotFoundError), path.open("r+b") as file:
                file.write(b"this is no database".ljust(path.stat().st_size, b"!"))
        time.sleep(0.05)
    out, err = process.communicate(timeout=200)

    assert process.returncode == 0
    assert "6 of 6 passed" in out
    assert "bench import" in err
    for path in tmp_path.glob("bench.db*"):
        path.unlink()
    (journal,) = (tmp_path / "runs").glob("*.jsonl")
    imported = start(tmp_path, "import", str(journal))
    imported.communicate(timeout=60)
    assert imported.returncode == 0
    assert len(rows(tmp_path)) == 6


@pytest.mark.inductor
def test_inductor_with_time_and_memory(tmp_path: Path) -> None:
    """With inductor, a training case has a speedup with its interval, cold compile seconds and peak memory."""
    args = ["run", "--suite", "toy", "--model", "mlp", "--mode", "training", "--max-seconds", "3", "--json"]
    process = start(tmp_path, *args)
    out, err = process.communicate(timeout=200)
    assert process.returncode == 0, err

    (record,) = (line for line in map(json.loads, out.splitlines()) if line["type"] == "record")
    assert record["compile"]["cold"]
    assert record["compile"]["compiled_by"] == "inductor"
    assert record["compile"]["wall_s"] > 0.5
    assert record["derived"]["speedup"]["low"] <= record["derived"]["speedup"]["value"]
    assert len(record["timing"]["eager_s"]) == len(record["timing"]["compiled_s"]) >= 6
    assert record["memory"]["eager_peak_bytes"] is None or record["memory"]["eager_peak_bytes"] >= 0
