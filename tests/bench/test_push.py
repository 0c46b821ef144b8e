"""`bench push` and `bench run --server`: a run arrives at a server, while it goes on or afterwards."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench import main
from harness.journal import Journal
from server.auth import Scope
from tests.bench.test_run import QUICK
from tests.server import factory
from tests.server.doors import Door
from tests.server.reading import rows
from tests.serving import free_port, serving


@pytest.fixture
def door(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Door:
    """A server with a database of its own; the token that opens it is in the environment."""
    monkeypatch.chdir(tmp_path)
    door = Door(f"sqlite:///{tmp_path}/server.db")
    monkeypatch.setenv("BENCH_TOKEN", door.tokens.create("nightly", Scope.WRITE, None)[1])
    return door


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    path = tmp_path / "runs" / f"{factory.RUN_ID}.jsonl"
    run = factory.make_run(2)
    with Journal(path) as journal:
        for line in (run, factory.make_start(run.plan[0].case), factory.make_record(run.plan[0].case)):
            journal.write(line)
    return path


def test_push(door: Door, journal: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What was sent is told, and what was there; with --json as a line."""
    with serving(door.app, free_port()) as address:
        assert 0 == main.run(["push", str(journal), "--server", address])
        assert f"{journal}: run 0194a3f2, 1 records: 1 new\n" == capsys.readouterr().out
        assert 0 == main.run(["push", str(journal), "--server", address, "--json"])

    line = json.loads(capsys.readouterr().out)
    assert ("push", [factory.RUN_ID], 0, 1, []) == tuple(
        line[name] for name in ("type", "runs", "new", "already_there", "why")
    )


def test_push_of_several(door: Door, journal: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A journal that cannot be read holds no other back, and the exit code says that something is missing."""
    with serving(door.app, free_port()) as address:
        assert 1 == main.run(["push", "none.jsonl", str(journal), "--server", address])

    out, err = capsys.readouterr()
    assert "1 new" in out
    assert "none.jsonl: cannot be read: No such file" in err
    assert "1 of 2 journals did not arrive as a whole" in err


def test_push_without_a_token(
    journal: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without a token nothing is asked, and it is said where one comes from."""
    monkeypatch.delenv("BENCH_TOKEN", raising=False)

    assert 2 == main.run(["push", str(journal), "--server", "http://127.0.0.1:9"])
    assert "in --token-file FILE or BENCH_TOKEN" in capsys.readouterr().err


def test_run_is_sent(door: Door, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`bench run --server` has the run at the server when it ends, and in the database here."""
    with serving(door.app, free_port()) as address:
        assert 0 == main.run([*QUICK, "--only-accuracy", "--server", address])

    assert "lacks" not in capsys.readouterr().err
    there, here = (
        rows(f"sqlite:///{tmp_path}/{name}.db", "SELECT id, planned, passed, end_reason FROM run")
        for name in ("server", "bench")
    )
    assert there == here
    assert (1, 1, "finished") == there[0][1:]


def test_run_while_the_server_is_away(door: Door, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A run goes on without its server; it says at both ends what is missing, and `bench push` as told catches up."""
    port = free_port()
    address = f"http://127.0.0.1:{port}"
    assert 0 == main.run([*QUICK, "--only-accuracy", "--server", address])

    err = capsys.readouterr().err
    assert "The journal keeps what it lacks" in err
    (told,) = (line for line in err.splitlines() if "lacks 1 records of this run" in line)
    command = told.split("`")[1].split()
    assert ["bench", "push", "--server"] == [command[0], command[1], command[3]]
    with serving(door.app, port):
        assert 0 == main.run(command[1:])
    assert [(1, "finished")] == rows(f"sqlite:///{tmp_path}/server.db", "SELECT passed, end_reason FROM run")


def test_token_that_cannot_write_is_said_before_the_night(
    door: Door, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A token that only reads is a mistake that is told before anything is measured."""
    (tmp_path / "token").write_text(door.tokens.create("reader", Scope.READ, None)[1])
    with serving(door.app, free_port()) as address:
        assert 2 == main.run([*QUICK, "--server", address, "--token-file", str(tmp_path / "token")])

    assert "the token 'reader' has the scope read" in capsys.readouterr().err
    assert not (tmp_path / "runs").exists()
