"""The runner: whatever a child does, there is one row, nothing stays behind, and the next case runs."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from harness.journal import History, Journal, replay
from harness.record import EndReason, Outcome, Record, Run, Stage
from harness.runner import execute
from harness.workers import Stop, Workers
from tests.harness import children
from tests.harness.runs import Heard, make_planned, make_run

Target = Callable[..., None]


@pytest.fixture(scope="module")
def workers() -> Workers:
    workers = Workers([])
    workers.host(1)
    return workers


@pytest.fixture
def run_child(workers: Workers, tmp_path: Path) -> Callable[..., Record]:
    def run_one(target: Target, *, timeout_s: float = 30.0) -> Record:
        run = make_run(make_planned(timeout_s=timeout_s))
        return run_all(workers, tmp_path, run, target)[0]

    return run_one


def run_all(workers: Workers, folder: Path, run: Run, target: Target, stop: Stop | None = None) -> list[Record]:
    heard = Heard()
    with Journal(folder / f"{run.id}.jsonl") as journal:
        journal.write(run)
        execute(History(run), workers, journal, [heard], stop or Stop(), target=target)
    written = replay(folder / f"{run.id}.jsonl").records
    told = [call for name, call in heard.calls if name == "record"]
    assert [written[record.case.id] for record in told] == told  # type: ignore[attr-defined]
    return told  # type: ignore[return-value]


def sleepers(*seconds: int) -> list[psutil.Process]:
    wanted = [["sleep", str(each)] for each in seconds]
    found = []
    for process in psutil.process_iter():
        try:
            found += [process] if process.cmdline() in wanted and process.status() != psutil.STATUS_ZOMBIE else []
        except psutil.NoSuchProcess:
            continue
    return found


def test_answer(run_child: Callable[..., Record]) -> None:
    """A child that answers leaves a record with its findings and no exit code."""
    record = run_child(children.answers)

    assert (record.outcome, record.stage, record.exit_code, record.attempt) == (Outcome.PASS, None, None, 1)


@pytest.mark.parametrize("target", [children.hangs, children.hangs_deaf])
def test_hung_child(run_child: Callable[..., Record], target: Target) -> None:
    """A child that never answers costs its time limit, even one that holds the interpreter lock in C."""
    began = time.monotonic()
    record = run_child(target, timeout_s=1.0)

    assert (record.outcome, record.stage) == (Outcome.TIMEOUT, Stage.EAGER)
    assert "within 1 s" in (record.text or "")
    assert time.monotonic() - began < 10


def test_segmentation_fault(run_child: Callable[..., Record]) -> None:
    """A segmentation fault is a crash that names its signal and stage, and the stack is in the log."""
    record = run_child(children.segfaults)

    assert (record.outcome, record.stage, record.exit_code) == (Outcome.CRASH, Stage.COMPILE, -signal.SIGSEGV)
    assert "SIGSEGV" in (record.text or "")
    assert "Segmentation fault" in record.log.head


def test_killed_child(run_child: Callable[..., Record]) -> None:
    """A child killed from outside, with no word from the kernel that memory was short, is a crash by SIGKILL."""
    record = run_child(children.killed)

    assert (record.outcome, record.exit_code) == (Outcome.CRASH, -signal.SIGKILL)


def test_killed_by_the_kernel(run_child: Callable[..., Record], monkeypatch: pytest.MonkeyPatch) -> None:
    """A killed child counts as out of memory when the kernel's own counter of such kills has moved."""
    counts = iter([4, 5])
    monkeypatch.setattr("harness.workers._kernel_kills", lambda: next(counts))

    assert run_child(children.killed).outcome == Outcome.OOM


@pytest.fixture
def small_cgroup() -> Iterator[Path]:
    """A memory cgroup of 64 MiB, version 1 or 2."""
    root = Path("/sys/fs/cgroup")
    for parent, limit in ((root / "memory", "memory.limit_in_bytes"), (root, "memory.max")):
        cgroup = parent / f"bench-test-{os.getpid()}"
        try:
            cgroup.mkdir()
            (cgroup / limit).write_text(str(64 << 20))
        except OSError:
            with contextlib.suppress(OSError):
                cgroup.rmdir()
            continue
        yield cgroup
        cgroup.rmdir()
        return
    pytest.skip("no memory cgroup can be made here")


def test_killed_by_the_kernel_itself(workers: Workers, tmp_path: Path, small_cgroup: Path) -> None:
    """A child that the kernel kills for want of memory ends as out of memory, in the stage it was in."""
    planned = make_planned()
    spec = planned.spec.model_copy(update={"build": str(small_cgroup)})
    run = make_run(planned.model_copy(update={"spec": spec}))
    (record,) = run_all(workers, tmp_path, run, children.killed_by_the_kernel)

    assert (record.outcome, record.exit_code, record.stage) == (Outcome.OOM, -signal.SIGKILL, Stage.EAGER)


def test_exit_without_answer(run_child: Callable[..., Record]) -> None:
    """Exit code 0 without an answer is a crash, not a success."""
    record = run_child(children.exits_without_answer)

    assert (record.outcome, record.exit_code) == (Outcome.CRASH, 0)


def test_nonsense_on_the_pipe(run_child: Callable[..., Record]) -> None:
    """What a model writes into the answer pipe cannot be taken for an answer, nor break the run."""
    assert run_child(children.writes_nonsense).outcome == Outcome.CRASH


def test_ten_megabytes_of_output(run_child: Callable[..., Record]) -> None:
    """Ten megabytes on stdout neither block the child nor fill the record: head and tail are kept."""
    record = run_child(children.talks_much)

    assert record.outcome == Outcome.PASS
    assert record.log.bytes > 10_000_000
    assert record.log.head.startswith("first words")
    assert record.log.tail.endswith("last words\n")
    assert len(record.log.head) + len(record.log.tail) < 50_000


def test_slow_exit(run_child: Callable[..., Record]) -> None:
    """An answer counts although the child does not leave; it is waited for only a moment."""
    began = time.monotonic()

    assert run_child(children.lingers).outcome == Outcome.PASS
    assert time.monotonic() - began < 10


def test_grandchildren(run_child: Callable[..., Record]) -> None:
    """Nothing a child started survives it, not even what left its process group."""
    assert run_child(children.leaves_grandchildren).outcome == Outcome.PASS
    assert sleepers(613, 617) == []


def test_memory_limit(run_child: Callable[..., Record]) -> None:
    """A child that asks for more than its memory limit is refused by the allocator and can say so."""
    assert run_child(children.eats_memory).outcome == Outcome.OOM


def test_findings_survive_a_crash(run_child: Callable[..., Record]) -> None:
    """What a child had found before it died is in its record."""
    record = run_child(children.tells_then_dies)

    assert (record.outcome, record.stage, record.exit_code) == (Outcome.CRASH, Stage.TIME, 7)
    assert record.compile is not None
    assert record.compile.operators == 2


def test_first_failure_decides(run_child: Callable[..., Record]) -> None:
    """A child that dies after its check had failed stays a failed check, and the record says how it went on."""
    record = run_child(children.fails_then_dies)

    assert (record.outcome, record.stage) == (Outcome.FAIL_ACCURACY, Stage.CHECK)
    assert record.text == "output differs; then ended with exit code 7 and no answer, in stage time"


def test_next_case_runs(workers: Workers, tmp_path: Path) -> None:
    """After a crash the next case runs; a skipped one is a row with its reason."""
    run = make_run(make_planned("a"), make_planned("b", skip="too large"), make_planned("c"))
    records = run_all(workers, tmp_path, run, children.segfaults)

    assert [r.outcome for r in records] == [Outcome.CRASH, Outcome.SKIPPED, Outcome.CRASH]
    assert records[1].text == "too large"


def test_first_interrupt_finishes_the_record_in_hand(workers: Workers, tmp_path: Path) -> None:
    """Ctrl-C once: the record in hand is finished, nothing more is begun, and the rest can be resumed."""
    run, stop = make_run(make_planned("a"), make_planned("b")), Stop()

    class Interrupts(Heard):
        def start(self, start: Any) -> None:
            stop()

    path = tmp_path / f"{run.id}.jsonl"
    with Journal(path) as journal:
        journal.write(run)
        reason = execute(History(run), workers, journal, [Interrupts()], stop, target=children.answers)
    history = replay(path)
    assert reason == EndReason.INTERRUPTED
    assert [r.case.model for r in history.records.values()] == ["a"]

    with Journal(path) as journal:
        reason = execute(history, workers, journal, [], Stop(), target=children.answers)
    assert reason == EndReason.FINISHED
    assert [r.case.model for r in replay(path).records.values()] == ["a", "b"]


def test_second_interrupt_stops_at_once(workers: Workers, tmp_path: Path) -> None:
    """Ctrl-C twice: the child is killed, its case stays missing, what was finished stays."""
    run, stop = make_run(make_planned("a", timeout_s=60)), Stop()

    class Interrupts(Heard):
        def stage(self, start: Any, stage: Stage) -> None:
            stop()
            stop()

    began = time.monotonic()
    path = tmp_path / f"{run.id}.jsonl"
    with Journal(path) as journal:
        journal.write(run)
        reason = execute(History(run), workers, journal, [Interrupts()], stop, target=children.hangs)
    assert reason == EndReason.INTERRUPTED
    assert time.monotonic() - began < 10
    assert replay(path).records == {}
    assert replay(path).killed == {}


def test_given_up_after_three_deaths_of_the_harness(workers: Workers, tmp_path: Path) -> None:
    """A case during which the harness itself was killed three times is a crash, and the run goes on."""
    run = make_run(make_planned("a"), make_planned("b"))
    path = tmp_path / f"{run.id}.jsonl"
    with Journal(path) as journal:
        journal.write(run)
    history = replay(path)
    history.killed[run.plan[0].case.id] = 3
    history.attempts[run.plan[0].case.id] = 3
    with Journal(path) as journal:
        execute(history, workers, journal, [], Stop(), target=children.answers)
    records = [replay(path).records[p.case.id] for p in run.plan]
    assert [(r.outcome, r.attempt) for r in records] == [(Outcome.CRASH, 4), (Outcome.PASS, 1)]
