"""What the store promises: every line may come twice, late and from several processes at once."""

from __future__ import annotations

import json
import math
import multiprocessing
import zlib
from datetime import timedelta

import pytest

from harness.errors import BenchError
from harness.record import Flag, Outcome, Run, Stage
from harness.sinks import Sink
from harness.stats import geometric_mean
from server.store import Kept, Store
from tests.server import factory
from tests.server.reading import everything, rows


def play(store: Store, run: Run, *, until: int | None = None) -> None:
    store.open(run)
    for planned in run.plan[:until]:
        start = factory.make_start(planned.case, run.id)
        store.start(start)
        store.stage(start, Stage.LOAD)
        store.record(factory.make_record(planned.case, run_id=run.id))
    if until is None:
        store.close(factory.make_end(run.id))


def test_store_is_a_sink(store):
    """The runner can hand its lines to a store."""
    sink: Sink = store

    assert sink is store


def test_whole_plan_is_stored_before_the_first_case(store, url):
    """Opening a run stores the machine, the plan with its reasons to skip, and a summary in which all is missing."""
    store.open(factory.make_run(3, skip={"model_1": "over the time limit"}))

    assert [(1, None, 0), (0, None, 0), (2, None, 0)] == rows(
        url,
        "SELECT p.position, p.result_key, p.attempt FROM planned p JOIN entry e ON e.key = p.entry_key "
        "ORDER BY e.skip IS NULL, p.position",
    )
    assert [("bench-1", "2.14.1")] == rows(url, "SELECT host, torch FROM environment")
    assert [(3, 1, 0, 2)] == rows(url, "SELECT planned, skipped, passed, missing FROM summary")


def test_every_line_may_come_twice(store, url):
    """A journal replayed over a finished run changes nothing."""
    run = factory.make_run(3)
    play(store, run)
    before = everything(url)

    play(store, run)

    assert before == everything(url)


def test_known_record_is_said_to_be_known(store):
    """The second copy of a record is told apart from the first."""
    run = factory.make_run(1)
    store.open(run)
    record = factory.make_record(run.plan[0].case)

    assert [Kept.NEW, Kept.KNOWN] == [*store.save([record]), *store.save([record])]


def test_newer_attempt_supersedes(store, url):
    """The result of a second attempt takes the place of the first, which stays in its row."""
    run = factory.make_run(1)
    case = run.plan[0].case
    store.open(run)
    store.record(factory.make_record(case, Outcome.CRASH))
    again = factory.make_record(case, attempt=2)

    store.record(again)

    assert [(2, 2)] == rows(url, "SELECT p.attempt, r.attempt FROM planned p JOIN result r ON r.key = p.result_key")
    assert [("crash",), ("pass",)] == rows(url, "SELECT outcome FROM result ORDER BY attempt")
    assert [(1, 1, '{"pass": 1}')] == rows(url, "SELECT planned, passed, CAST(outcomes AS TEXT) FROM summary")


def test_late_attempt_is_refused(store, url):
    """A result of an attempt older than the newest start never enters."""
    run = factory.make_run(1)
    case = run.plan[0].case
    store.open(run)
    store.start(factory.make_start(case, attempt=1))
    store.start(factory.make_start(case, attempt=2))

    assert [Kept.LATE] == store.save([factory.make_record(case, attempt=1)])
    assert [] == rows(url, "SELECT id FROM result")
    assert [Kept.NEW] == store.save([factory.make_record(case, attempt=2)])


def test_summary_equals_recomputation(store, url):
    """A summary kept insert by insert is what a recomputation from the records gives."""
    cases = [factory.make_case(name) for name in "abcdefg"]
    run = factory.make_run(cases, skip={"g": "no such device"})
    records = [
        factory.make_record(cases[0], speedup=1.5),
        factory.make_record(cases[1], speedup=0.9, compile=factory.make_compile(10.0)),
        factory.make_record(cases[2], Outcome.FAIL_ACCURACY),
        factory.make_record(cases[3], speedup=8.9, emulated=True),
        factory.make_record(cases[4], flags=[Flag.NO_REFERENCE], speedup=None),
    ]
    store.open(run)
    for record in records:
        store.record(record)

    mean = geometric_mean([record.derived.speedup for record in records[:2]])
    (found,) = rows(
        url,
        "SELECT planned, skipped, passed, missing, emulated, unchecked, speedup_geomean, speedup_geomean_low, "
        "speedup_geomean_high, speedup_geomean_n, compile_wall_s_median FROM summary",
    )
    assert (7, 1, 3, 1, 1, 1, mean.value, mean.low, mean.high, 2, (27.3 + 27.3) / 2) == found


def test_only_emulated_times_give_no_mean(store, url):
    """Emulated results pass or fail, and never enter a geometric mean."""
    run = factory.make_run([factory.make_case("a", precision="amp")])
    store.open(run)
    store.record(factory.make_record(run.plan[0].case, speedup=8.9, emulated=True))

    assert [(1, 1, None)] == rows(url, "SELECT passed, emulated, speedup_geomean FROM summary")


def test_not_a_number_is_stored_as_absent(store, url):
    """A value that is not finite becomes NULL, in the column and in the document."""
    run = factory.make_run(1)
    record = factory.make_record(run.plan[0].case)
    endless = record.derived.model_copy(update={"break_even_steps": math.inf, "memory_ratio": math.nan})
    store.open(run)

    store.record(record.model_copy(update={"derived": endless}))

    assert [(None, None)] == rows(url, "SELECT break_even_steps, memory_ratio FROM result")
    ((detail,),) = rows(url, "SELECT document FROM detail")
    derived = json.loads(zlib.decompress(detail))["derived"]
    assert (None, None) == (derived["break_even_steps"], derived["memory_ratio"])


def test_progress_shows_the_case_in_hand(store, url):
    """The stage of a running case is there until its record is."""
    run = factory.make_run(2)
    start = factory.make_start(run.plan[0].case)
    store.open(run)
    store.start(start)
    store.stage(start, Stage.COMPILE)

    of_case = 'FROM progress p JOIN "case" c ON c.key = p.case_key'
    assert [(start.case_id, "compile")] == rows(url, f"SELECT c.id, p.stage {of_case}")
    store.record(factory.make_record(run.plan[0].case))
    assert [] == rows(url, "SELECT case_key FROM progress")


def test_resumed_run_is_open_again(store, url):
    """A case started after the end reopens the run; a copy of the old end does not close it."""
    run = factory.make_run(2)
    first_end = factory.make_end(at=factory.BEGIN + timedelta(minutes=5), reason="interrupted")
    store.open(run)
    store.close(first_end)

    store.start(factory.make_start(run.plan[1].case, at=factory.BEGIN + timedelta(minutes=9)))
    store.close(first_end)

    assert [(None, None)] == rows(url, "SELECT ended_at, end_reason FROM run")
    store.close(factory.make_end(at=factory.BEGIN + timedelta(minutes=20)))
    assert [("finished",)] == rows(url, "SELECT end_reason FROM run")


def test_record_of_an_unknown_run_is_an_error(store):
    """A record whose run was never opened is refused with a sentence."""
    with pytest.raises(BenchError, match=r"not in the database.*Import its journal"):
        store.record(factory.make_record(factory.make_case()))


def test_record_outside_the_plan_is_an_error(store):
    """A record of a case that the run did not plan is refused."""
    store.open(factory.make_run(1))

    with pytest.raises(BenchError, match="no case"):
        store.record(factory.make_record(factory.make_case("stranger")))


def test_replay_is_all_or_nothing(store, url):
    """A journal that breaks in the middle leaves nothing behind; a whole one counts its records."""
    run = factory.make_run(2)
    good = [run, factory.make_record(run.plan[0].case), factory.make_record(run.plan[1].case), factory.make_end()]

    with pytest.raises(BenchError):
        store.replay([*good, factory.make_record(factory.make_case("stranger"))])
    assert [] == rows(url, "SELECT id FROM run")

    first, second = store.replay(good), store.replay(good)
    assert (2, 0, 0) == (first.new, first.known, first.late)
    assert (0, 2, 0) == (second.new, second.known, second.late)


def _write_run(url: str, run: Run, barrier) -> None:
    store = Store.connect(url)
    barrier.wait(60)
    play(store, run)


def test_two_writers_lose_nothing(url):
    """Two processes that create the database and write at once both find all their rows in it."""
    runs = [factory.make_run(8, id=f"0194a3f2-0000-7000-8000-00000000000{n}") for n in (1, 2)]
    context = multiprocessing.get_context("spawn")
    barrier = context.Barrier(2)
    writers = [context.Process(target=_write_run, args=(url, run, barrier)) for run in runs]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(120)

    assert [0, 0] == [writer.exitcode for writer in writers]
    assert [(8, 8), (8, 8)] == rows(url, "SELECT planned, passed FROM summary")
    assert [(16,)] == rows(url, "SELECT count(*) FROM samples")
