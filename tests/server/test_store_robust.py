"""What befalls a store: others who write, death, a full disk, a server that goes away, a lock that is held."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from datetime import timedelta
from itertools import count
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import select

from harness.errors import BenchError
from harness.record import Outcome, Record
from server import db, tables
from server.maintenance.check import check
from server.maintenance.prune import Keep, prune
from server.queries import Queries
from server.store import Kept, Store
from tests import postgres
from tests.server import factory, writers
from tests.server.reading import rows

ROOT = Path(__file__).parents[2]
LIMIT_BYTES = 17 << 20
"""Largest file of the bounded server; a segment of its log has 16 MiB."""


@pytest.fixture(scope="module")
def cluster() -> Iterator[postgres.Cluster]:
    """A server of these tests' own, which they may stop, and whose files cannot grow past a limit."""
    binaries = postgres.find()
    assert binaries is not None, "there is no PostgreSQL to test with: install one"
    with tempfile.TemporaryDirectory(prefix="bench-pg-", dir="/tmp") as folder:
        found = postgres.Cluster(binaries, Path(folder), "synchronous_commit=on", limits=[f"--fsize={LIMIT_BYTES}"])
        found.start()
        try:
            yield found
        finally:
            found.stop()


@pytest.fixture
def bounded(cluster) -> Iterator[str]:
    with postgres.Server(cluster.url).schema() as url:
        yield url


def whole(url: str) -> bool:
    """Whether a database has nothing wrong with it."""
    engine = db.connect(url)
    faults = [*check(engine)]
    engine.dispose()
    assert [] == faults
    return True


def make_large(number: int, pairs: int) -> Record:
    """Return a record of model number `number` whose samples cannot be compressed."""
    record = factory.make_record(factory.make_case(f"model_{number}"))
    noise = random.Random(number)
    times = tuple(noise.random() for _ in range(pairs))
    update = {"eager_s": times, "compiled_s": times, "eager_first": (True,) * pairs}
    return record.model_copy(update={"timing": record.timing.model_copy(update=update)})


def test_ten_writers_at_once(url):
    """Ten processes that find no database and write at once, half of them the same run, lose and double nothing."""
    process = subprocess.Popen([sys.executable, "-m", "tests.server.writers", url], cwd=ROOT)
    asked = 0
    while process.poll() is None:
        if db.exists(url):
            engine = db.connect(url)
            found = Queries(engine).runs()
            engine.dispose()
            asked += all(run.passed <= run.planned == writers.CASES for run in found)

    own = writers.WRITERS // 2
    assert 0 == process.returncode
    assert asked > 0
    assert [((own + 1) * writers.CASES,)] == rows(url, "SELECT count(*) FROM result")
    assert [(writers.CASES, writers.CASES, "finished")] * (own + 1) == rows(
        url, "SELECT planned, passed, end_reason FROM run"
    )
    assert whole(url)


def test_writer_killed_in_the_middle_of_a_batch(store, url):
    """A writer that is killed before it commits leaves nothing of its batch, and no lock; the next one goes on."""
    run = factory.make_run(50)
    store.open(run)
    script = (
        "import os, signal\n"
        "from server.heads import Heads\n"
        "from server.store import Store\n"
        "from tests.server import factory\n"
        "Heads.store = lambda self: os.kill(os.getpid(), signal.SIGKILL)\n"
        f"run = factory.make_run(50)\n"
        f"Store.connect({url!r}).save([factory.make_record(planned.case) for planned in run.plan])\n"
    )
    ended = subprocess.run([sys.executable, "-c", script], cwd=ROOT, timeout=60, check=False)

    assert -signal.SIGKILL == ended.returncode
    assert [(0,)] == rows(url, "SELECT (SELECT count(*) FROM result) + (SELECT count(*) FROM series)")
    assert {Kept.NEW} == set(store.save([factory.make_record(planned.case) for planned in run.plan]))
    assert whole(url)


def test_full_disk_loses_nothing(sqlite_url):
    """On a full disk a batch is refused whole, in words; what was stored stays, and room is all that it takes."""
    store = Store.connect(sqlite_url)
    store.open(factory.make_run(3))
    store.save([make_large(0, 10)])
    limit_pages(store, 1)
    batch = [make_large(number, 20_000) for number in (1, 2)]

    with pytest.raises(BenchError, match=r"disk is full\. Free some space; the journal holds what is missing"):
        store.save(batch)
    assert [(1, 1, 2)] == rows(sqlite_url, "SELECT (SELECT count(*) FROM result), passed, missing FROM run")
    limit_pages(store, 1 << 30)
    assert [Kept.NEW, Kept.NEW] == store.save(batch)
    assert whole(sqlite_url)


def limit_pages(store: Store, pages: int) -> None:
    """Let the file grow to so many pages, or stay as large as it is; holds for the one connection of the pool."""
    with store._engine.connect() as connection:
        connection.exec_driver_sql(f"PRAGMA max_page_count = {pages}")


def test_full_disk_of_a_server_loses_nothing(bounded):
    """A PostgreSQL whose files cannot grow refuses a batch whole, in words; smaller ones it still takes."""
    store = Store.connect(bounded)
    store.open(factory.make_run(30))
    store.save([make_large(0, 10)])

    with pytest.raises(BenchError, match=r"could not extend file.*Free some space; the journal holds what is missing"):
        store.save([make_large(number, 70_000) for number in range(1, 25)])
    assert [(1, 1, 29)] == rows(bounded, "SELECT (SELECT count(*) FROM result), passed, missing FROM run")
    assert [Kept.NEW] == store.save([make_large(1, 10)])
    store.dispose()
    assert whole(bounded)


def test_server_that_goes_away(cluster, bounded):
    """A server that stops in a transaction or between two is told in words; the same store works once it is back."""
    store = Store.connect(bounded)
    run = factory.make_run(2)
    store.open(run)
    records = [factory.make_record(planned.case) for planned in run.plan]

    with pytest.raises(BenchError, match=r"database postgresql.*The server went away or cannot be reached"):
        store._write(lambda writer: (writer.take(records), cluster.stop()))
    with pytest.raises(BenchError, match=r"The server went away or cannot be reached: start it again"):
        store.save(records)
    cluster.start()

    assert [Kept.NEW, Kept.NEW] == store.save(records)
    store.dispose()
    assert whole(bounded)


def test_lock_that_is_held_too_long(url, monkeypatch):
    """Who waits for another writer for too long is told so; afterwards the same store writes on."""
    holder = db.connect(url)
    monkeypatch.setattr(db, "BUSY_TIMEOUT_S", 0.2)
    store = Store.connect(url)
    run = factory.make_run(1)
    store.open(run)
    record = factory.make_record(run.plan[0].case)
    with db.writing(holder).begin() as connection:
        connection.execute(select(tables.Run.key).with_for_update()).all()

        with pytest.raises(BenchError, match="Another process has been writing for long; end it, or try again later"):
            store.save([record])

    assert [Kept.NEW] == store.save([record])
    holder.dispose()
    store.dispose()


LINE = st.tuples(
    st.integers(0, 1),  # run
    st.integers(0, 2),  # case
    st.integers(1, 3),  # attempt
    st.sampled_from([None, Outcome.PASS, Outcome.PASS, Outcome.CRASH, Outcome.FAIL_ACCURACY]),  # None: it only began
    st.integers(0, 50),  # hour
)

_runs = count(1)


@settings(max_examples=12, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.lists(LINE, min_size=1, max_size=8), min_size=1, max_size=4), st.integers(1, 60))
def test_whatever_comes_the_kept_figures_equal_a_recount(store, batches, hours):
    """After any batches of attempts in any order of time, and any pruning, what is kept for pages is as counted."""
    ids = [f"0194a3f2-0000-7000-8000-{next(_runs):012}" for _ in range(2)]
    cases = [factory.make_case(name) for name in "abc"]
    for id_ in ids:
        store.open(factory.make_run(cases, id=id_, skip={"c": "no such device"}))
    for batch in batches:
        store._write(lambda writer, batch=batch: writer.take([_line(ids, cases, *values) for values in batch]))

    assert [] == [*check(store._engine)]
    at = factory.BEGIN + timedelta(hours=hours)
    prune(store._engine, Keep(runs=timedelta(days=9)), clock=lambda: at + timedelta(days=9))
    assert [] == [*check(store._engine)]


def _line(ids, cases, run, case, attempt, outcome, hour):
    at = factory.BEGIN + timedelta(hours=hour)
    if outcome is None:
        return factory.make_start(cases[case], ids[run], attempt, at)
    return factory.make_record(cases[case], outcome, 1.0 + hour / 100, run_id=ids[run], attempt=attempt, at=at)
