"""The journal: what is written is on the disk, torn ends are survived, broken lines are named."""

from __future__ import annotations

import gzip
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from harness.derive import derive
from harness.errors import BenchError, UsageError
from harness.journal import Journal, find, read, replay
from harness.record import EndReason, Observed, Outcome, Planned, Record, Run, RunEnd, Start, now, record_id
from tests.harness.runs import make_planned, make_run


def make_record(run: Run, planned: Planned, attempt: int = 1, outcome: Outcome = Outcome.PASS) -> Record:
    return Record(
        id=record_id(run.id, planned.case.id, attempt),
        run_id=run.id,
        case=planned.case,
        attempt=attempt,
        started_at=now(),
        finished_at=now(),
        outcome=outcome,
        derived=derive(outcome, Observed(), None, None, None, None),
    )


def make_start(run: Run, planned: Planned, attempt: int = 1) -> Start:
    return Start(run_id=run.id, case_id=planned.case.id, attempt=attempt, at=now())


def test_round_trip(tmp_path: Path) -> None:
    """What is read equals what was written, plain and gzipped."""
    run = make_run()
    lines = [run, make_start(run, run.plan[0]), make_record(run, run.plan[0])]
    path = tmp_path / "a.jsonl"
    with Journal(path) as journal:
        for line in lines:
            journal.write(line)
    packed = tmp_path / "a.jsonl.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))

    assert list(read(path)) == lines
    assert list(read(packed)) == lines


def test_torn_line(tmp_path: Path) -> None:
    """A torn last line is passed over by readers and cut off by the next writer."""
    run = make_run()
    path = tmp_path / "a.jsonl"
    with Journal(path) as journal:
        journal.write(run)
    with open(path, "ab") as file:
        file.write(b'{"schema":1,"type":"sta')
    assert list(read(path)) == [run]

    start = make_start(run, run.plan[0])
    with Journal(path) as journal:
        journal.write(start)
    assert list(read(path)) == [run, start]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"name,speedup\nresnet,1.2\n", "line 1: not JSON"),
        (b"\x00\xff\x80\n\n", "line 1"),
        (b'{"schema":1,"type":"run"}\n', "line 1"),
        (
            b'{"schema":99,"type":"start","run_id":"a","case_id":"b","attempt":1,"at":"2026-01-01T00:00:00Z"}\n',
            "schema",
        ),
        (b"[]\n", "line 1"),
    ],
)
def test_broken_line(tmp_path: Path, text: bytes, said: str) -> None:
    """A line that is no line of a journal is an error with file, line number and reason."""
    path = tmp_path / "a.jsonl"
    path.write_bytes(text)

    with pytest.raises(BenchError, match=said) as caught:
        list(read(path))
    assert str(path) in str(caught.value)


def test_not_gzip(tmp_path: Path) -> None:
    """A file that only calls itself gzipped, or is cut short, is an error with its name."""
    false, short = tmp_path / "a.jsonl.gz", tmp_path / "b.jsonl.gz"
    false.write_bytes(b"{}")
    short.write_bytes(gzip.compress(make_run().model_dump_json().encode() * 100)[:200])

    for path in (false, short, tmp_path / "none.jsonl", tmp_path):
        with pytest.raises(BenchError, match=path.name):
            list(read(path))


def test_replay(tmp_path: Path) -> None:
    """A replay knows the newest record of each case, the attempts, and during which case the harness was killed."""
    run = make_run(make_planned("a"), make_planned("b"), make_planned("c"))
    a, b, c = run.plan
    lines = [
        run,
        make_start(run, a),
        make_start(run, a, 2),
        make_record(run, a, 2),
        make_start(run, b),
        RunEnd(run_id=run.id, at=now(), reason=EndReason.INTERRUPTED),
        make_start(run, c),
    ]
    path = tmp_path / "a.jsonl"
    with Journal(path) as journal:
        for line in lines:
            journal.write(line)
    history = replay(path)

    assert [(key, r.attempt) for key, r in history.records.items()] == [(a.case.id, 2)]
    assert history.attempts == {a.case.id: 2, b.case.id: 1, c.case.id: 1}
    assert history.killed == {a.case.id: 1, c.case.id: 1}


def test_late_attempt(tmp_path: Path) -> None:
    """A record of an older attempt does not replace a newer one."""
    run = make_run()
    path = tmp_path / "a.jsonl"
    with Journal(path) as journal:
        journal.write(run)
        journal.write(make_record(run, run.plan[0], 2))
        journal.write(make_record(run, run.plan[0], 1, Outcome.CRASH))

    assert replay(path).records[run.plan[0].case.id].attempt == 2


def test_no_run_first(tmp_path: Path) -> None:
    """A journal that does not begin with its run is refused, an empty one too."""
    run = make_run()
    path = tmp_path / "a.jsonl"
    with Journal(path) as journal:
        journal.write(make_start(run, run.plan[0]))
    (tmp_path / "empty.jsonl").touch()

    for each in (path, tmp_path / "empty.jsonl"):
        with pytest.raises(BenchError, match="does not begin with a run"):
            replay(each)


def test_one_writer(tmp_path: Path) -> None:
    """Two processes cannot write one run at once."""
    path = tmp_path / "a.jsonl"
    code = f"from harness.journal import Journal; from pathlib import Path; Journal(Path({str(path)!r}))"
    with Journal(path):
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "another process is writing this run" in done.stderr


def test_full_disk(tmp_path: Path) -> None:
    """When the disk takes no more, the line is undone, all before it is safe, and the error says how to go on."""
    run = make_run()
    path = tmp_path / "a.jsonl"
    journal = Journal(path)
    journal.write(run)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + 10, hard))
    try:
        with pytest.raises(BenchError, match="--resume a"):
            journal.write(make_record(run, run.plan[0]))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert list(read(path)) == [run]
    assert path.read_bytes().endswith(b"\n")


def test_find(tmp_path: Path) -> None:
    """A run is found by `latest`, by unique prefix and by path; an unknown or ambiguous one is a sentence."""
    ids = ["0190-aa", "0190-ab", "0191-cc"]
    for each in ids:
        (tmp_path / f"{each}.jsonl").touch()
    assert find("latest", tmp_path).stem == "0191-cc"
    assert find("0190-aa", tmp_path).stem == "0190-aa"
    assert find("0191", tmp_path).stem == "0191-cc"
    assert find(str(tmp_path / "0190-aa.jsonl")).stem == "0190-aa"

    for wrong, said in [("0190", "fits 2 runs"), ("0191-cd", "Close: 0191-cc"), (str(tmp_path / "x.jsonl"), "no such")]:
        with pytest.raises(UsageError, match=said):
            find(wrong, tmp_path)
    with pytest.raises(UsageError, match="Start one"):
        find("latest", tmp_path / "nothing")
