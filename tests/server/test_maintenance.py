"""What an operator does to a database: is it whole, what may go, how large is it, and a copy of it."""

from __future__ import annotations

import dataclasses
import shutil
import sqlite3
import subprocess
import threading
from datetime import timedelta

import pytest
from sqlalchemy import create_engine, text

from harness.errors import BenchError, UsageError
from harness.record import Outcome, Run
from server import db, migrations
from server.maintenance import prune as pruning
from server.maintenance.backup import backup, conninfo
from server.maintenance.check import check
from server.maintenance.prune import Keep, duration, prune
from server.maintenance.recount import FaultKind
from server.maintenance.sizes import sizes
from server.queries import NotFound, Queries
from server.store import Kept, Store
from tests.server import factory
from tests.server.reading import everything, rows

NIGHTS = 5
NOW = factory.BEGIN + timedelta(days=NIGHTS)


def run_id(night: int) -> str:
    return f"0194a3f2-1111-7000-8000-{night:012}"


def make_night(night: int, **fields) -> Run:
    at = factory.BEGIN + timedelta(days=night)
    cases = [factory.make_case(name) for name in ("mlp", "conv", f"only_{night}")]
    return factory.make_run(cases, id=run_id(night), at=at, skip={"skipped": "no such device"}, **fields)


def play(store: Store, run: Run, *, end: bool = True) -> None:
    store.open(run)
    for number, planned in enumerate(run.plan):
        at = run.started_at + timedelta(minutes=number + 1)
        crash = factory.make_record(planned.case, Outcome.CRASH, run_id=run.id, at=at)
        again = factory.make_record(planned.case, run_id=run.id, at=at + timedelta(seconds=9), attempt=2)
        store.start(factory.make_start(planned.case, run.id, at=at - timedelta(seconds=55)))
        store.save([crash, again] if number % 2 else [crash])
    if end:
        store.close(factory.make_end(run.id, run.started_at + timedelta(hours=1)))


@pytest.fixture
def nights(store):
    """Five nights of three cases, of which two are the same each night; of one the second attempt counts."""
    for night in range(NIGHTS):
        play(store, make_night(night))
    return store


@pytest.fixture
def engine(nights):
    return nights._engine


def kinds(engine, repair=False) -> list[FaultKind]:
    return [fault.kind for fault in check(engine, repair)]


def change(url: str, *statements: str) -> None:
    """Change rows past the store, and past the foreign keys."""
    engine = create_engine(url)
    with engine.begin() as connection:
        for statement in statements:
            connection.execute(text(statement))
    engine.dispose()


# -- is it whole? -----------------------------------------------------------------------------


def test_what_the_store_wrote_is_whole(engine):
    """A database that only the store wrote has nothing wrong with it."""
    assert [] == [*check(engine)]


def kept(engine) -> list[str]:
    """What the store keeps for pages, row by row."""
    with engine.begin() as connection:
        return [
            str(row)
            for table in ("run", "planned", "summary", "series")
            for row in connection.execute(text(f"SELECT * FROM {table} ORDER BY 1, 2, 3"))
        ]


DAMAGES = {
    "UPDATE summary SET passed = passed + 1 WHERE run_key = 2": FaultKind.SUMMARY,
    "DELETE FROM summary WHERE run_key = 2": FaultKind.SUMMARY,
    "UPDATE summary SET speedup_geomean = 1.5 WHERE run_key = 2": FaultKind.SUMMARY,
    "UPDATE run SET crashed = 0 WHERE key = 3": FaultKind.COUNTS,
    "UPDATE planned SET result_key = NULL WHERE run_key = 1 AND position = 1": FaultKind.NEWEST,
    "UPDATE planned SET attempt = 1 WHERE run_key = 1 AND position = 1": FaultKind.NEWEST,
    "UPDATE series SET results = results + 1 WHERE case_key = 1": FaultKind.HEAD,
    "UPDATE series SET recent = '[]', outcome = 'oom' WHERE case_key = 2": FaultKind.HEAD,
    "UPDATE series SET passed_at = first_at, result_key = 0 WHERE case_key = 2": FaultKind.HEAD,
}


def test_what_is_kept_for_pages_is_counted_anew(engine, url):
    """What differs from a recount is named, and repaired where asked: then every row is as it was."""
    before = kept(engine)
    for damage, expected in DAMAGES.items():
        change(url, damage)

        assert [expected] == kinds(engine), damage
        assert before != kept(engine)
        assert [(expected, True)] == [(fault.kind, fault.repaired) for fault in check(engine, repair=True)]
        assert before == kept(engine)


def test_summary_of_no_case(engine, url):
    """A summary that its run has no case for is superfluous, and the one in its place is missing; both are mended."""
    before = kept(engine)
    change(url, "UPDATE summary SET suite = 'tox' WHERE run_key = 2")

    said = [fault.text for fault in check(engine, repair=True)]

    assert ["is not there", "is there, and its run has no such case"] == said
    assert before == kept(engine)


def test_fault_says_where_and_what(engine, url):
    """A fault names the run, the column, what is stored and what was counted."""
    change(url, "UPDATE run SET crashed = 7 WHERE key = 3")

    (fault,) = check(engine)

    assert (f"run {run_id(2)}", "crashed 7, counted 2") == (fault.where, fault.text)


def test_rows_that_refer_to_nothing(engine, url):
    """Planned cases without their entry and results without their series are named; they cannot be repaired."""
    if url.startswith("postgresql"):
        change(
            url,
            "ALTER TABLE planned DROP CONSTRAINT fk_planned_entry_key",
            "ALTER TABLE result DROP CONSTRAINT fk_result_series_key",
        )
    change(
        url, "UPDATE planned SET entry_key = 999 WHERE run_key = 1", "UPDATE result SET series_key = 999 WHERE key = 1"
    )

    found = [fault for fault in check(engine, repair=True) if fault.kind == FaultKind.REFERENCE]

    said = "; ".join(fault.text for fault in found)
    assert "3 planned cases have no entry" in said
    assert "1 results have no series" in said
    assert not any(fault.repaired for fault in found)


def test_damaged_file(sqlite_url, tmp_path):
    """A file whose pages were overwritten is told by SQLite's own check."""
    store = Store.connect(sqlite_url)
    store.open(factory.make_run(200))
    store.dispose()
    path = tmp_path / "file.db"
    with sqlite3.connect(path) as found:
        (root,) = found.execute("SELECT rootpage FROM sqlite_master WHERE name = 'ix_case_suite_model'").fetchone()
    with path.open("r+b") as file:
        file.seek((root - 1) * 4096 + 100)
        file.write(b"\xff" * 1000)

    try:
        said = [fault.kind for fault in check(db.connect(sqlite_url))]
    except BenchError as error:
        said = [FaultKind.FILE] if "malformed" in str(error) else []

    assert FaultKind.FILE in said


# -- what may go ------------------------------------------------------------------------------


def test_old_runs_are_removed_and_all_else_stays_right(engine, url):
    """Runs older than kept go with all that hangs on them; what is kept for pages is as a recount says."""
    gone = prune(engine, Keep(runs=timedelta(days=2)), clock=lambda: NOW)

    assert ([run_id(0), run_id(1), run_id(2)], 12, 3) == (gone.runs, gone.results, gone.series)
    assert [(run_id(3),), (run_id(4),)] == rows(url, "SELECT id FROM run ORDER BY id")
    assert [(2, 2, 2)] == rows(
        url,
        "SELECT (SELECT count(DISTINCT run_key) FROM planned), (SELECT count(DISTINCT run_key) FROM summary), "
        "(SELECT count(DISTINCT run_key) FROM result)",
    )
    assert [(8, 8)] == rows(url, "SELECT (SELECT count(*) FROM detail), (SELECT count(*) FROM result)")
    assert [] == [*check(engine)]


def test_series_whose_newest_results_go_is_counted_from_the_rest(store, url):
    """A run that was imported late has old results and a late sign of life: heads do not follow the order of runs."""
    for night in (4, 0):
        play(store, make_night(night))
    store.close(factory.make_end(run_id(0), NOW))

    gone = prune(store._engine, Keep(runs=timedelta(hours=12)), clock=lambda: NOW)

    assert [run_id(4)] == gone.runs
    assert [] == [*check(store._engine)]
    results = 'SELECT c.model, s.results FROM series s JOIN "case" c ON c.key = s.case_key ORDER BY c.model'
    assert [("conv", 2), ("mlp", 1), ("only_0", 1)] == rows(url, results)


def test_dry_run_says_the_same_and_changes_nothing(engine, url):
    """A dry run counts what would go; not one row changes."""
    before = everything(url)
    keep = Keep(runs=timedelta(days=3), samples=timedelta(days=2), details=timedelta(days=1))

    told = prune(engine, keep, dry_run=True, clock=lambda: NOW)

    assert before == everything(url)
    assert dataclasses.replace(prune(engine, keep, clock=lambda: NOW), series=0) == told
    assert (2, 8, 1, 8) == (len(told.runs), told.results, told.samples, told.details)


def test_samples_and_details_go_before_their_figures(engine, url):
    """Without its samples a record has its numbers; without its detail the answer says that it was pruned."""
    queries = Queries(engine)
    record_id = next(found.record_id for found in queries.results(run_id(0)) if found.model == "conv")
    before = queries.results(run_id(0))

    prune(engine, Keep(samples=timedelta(days=2)), clock=lambda: NOW)

    record = queries.record(record_id)
    assert ((), 1.25) == (record.timing.eager_s, record.derived.speedup.value)
    assert [(2,)] == rows(url, "SELECT count(*) FROM samples")
    prune(engine, Keep(details=timedelta(days=2)), clock=lambda: NOW)
    with pytest.raises(NotFound, match="was pruned"):
        queries.record(record_id)
    assert before == queries.results(run_id(0))
    assert [] == [*check(engine)]


def test_run_in_progress_is_never_touched(store):
    """A run whose case in hand may take longer than runs are kept is left as it is; one that is lost is not."""
    slow, lost = make_night(0), make_night(1)
    plan = tuple(planned.model_copy(update={"timeout_s": 9 * 86400.0}) for planned in slow.plan)
    for run in (slow.model_copy(update={"plan": plan}), lost):
        store.open(run)
        store.start(factory.make_start(run.plan[0].case, run.id, at=run.started_at))

    gone = prune(store._engine, Keep(runs=timedelta(days=1)), clock=lambda: NOW)

    assert ([run_id(1)], [run_id(0)]) == (gone.runs, gone.in_progress)


def test_pruning_that_breaks_off_has_pruned_whole_runs(engine, monkeypatch):
    """When the database fails on the way, the oldest runs are wholly gone, the others wholly there."""
    whole = pruning._shrink

    def fails(connection, removed):
        whole(connection, removed)
        if connection.scalar(text(f"SELECT count(*) FROM run WHERE id = '{run_id(0)}'")) == 0:
            raise RuntimeError("pulled the plug")

    monkeypatch.setattr(pruning, "_shrink", fails)
    with pytest.raises(RuntimeError):
        prune(engine, Keep(runs=timedelta(days=1)), clock=lambda: NOW)

    assert NIGHTS - 1 == Queries(engine).count()
    assert [FaultKind.HEAD] == kinds(engine)  # the series of the first night alone, which is removed at the end
    assert [FaultKind.HEAD] == kinds(engine, repair=True)
    assert [] == kinds(engine)


def test_series_without_results_takes_the_next_one(nights, engine, url, monkeypatch):
    """A result that comes between the removal of a series' last result and that of the series begins it anew."""
    monkeypatch.setattr(pruning, "forget_empty", lambda engine: 0)
    prune(engine, Keep(runs=timedelta(hours=1)), clock=lambda: NOW + timedelta(days=9))
    assert [(0,)] == rows(url, "SELECT DISTINCT results FROM series")
    late = make_night(7)

    play(nights, late)
    monkeypatch.undo()

    assert 5 == pruning.forget_empty(engine)
    assert [] == [*check(engine)]


def test_pruned_journal_may_come_back(nights, engine):
    """A run that was pruned is a new one when its journal is imported again."""
    prune(engine, Keep(runs=timedelta(days=2)), clock=lambda: NOW)
    run = make_night(0)
    nights.open(run)

    assert [Kept.NEW] == nights.save([factory.make_record(run.plan[0].case, run_id=run.id)])
    assert [] == [*check(engine)]


@pytest.mark.parametrize(("said", "days"), [("90d", 90), ("26w", 182), ("2y", 730), (" 1 d ", 1), ("100y", 36500)])
def test_durations(said, days):
    """Days, weeks and years are durations; a year has 365 days."""
    assert timedelta(days=days) == duration(said)


@pytest.mark.parametrize(
    "said", ["", "2", "y", "-1d", "0d", "1.5y", "2m", "101y", "999999y", "1d 2h", "two years", "٣d"]
)
def test_nonsense_is_no_duration(said):
    """What is no duration, nothing at all or longer than a century is refused with examples."""
    with pytest.raises(UsageError, match=r"90d, 26w, 2y|between 1d and 100y"):
        duration(said)


def test_what_cannot_be_meant(engine):
    """Pruning that limits nothing, or keeps samples for longer than their runs, is refused before anything is read."""
    with pytest.raises(UsageError, match="nothing to prune"):
        prune(engine, Keep())
    with pytest.raises(UsageError, match=r"samples cannot be kept for longer \(9 days\) than runs \(2 days\)"):
        prune(engine, Keep(runs=timedelta(days=2), samples=timedelta(days=9)))


# -- how large is it? -------------------------------------------------------------------------


def test_sizes(engine):
    """Rows are counted, bytes are asked for, and growth is the mean of the last thirty days' nights."""
    found = sizes(engine)

    by_name = {table.name: table for table in found.tables}
    assert (5, 20, 5) == (found.runs, found.results, by_name["samples"].rows)
    assert (factory.BEGIN, factory.BEGIN + timedelta(days=4)) == (found.oldest, found.newest)
    assert 4096 <= by_name["result"].bytes < found.bytes
    assert (5, 1.0, 4.0) == (found.growth.nights, found.growth.runs_per_night, found.growth.results_per_night)
    assert found.bytes / 20 * 4 == found.growth.bytes_per_night


def test_sizes_of_an_empty_database(url):
    """Without a run there is no oldest, no newest and no growth: unknown, not zero."""
    found = sizes(db.connect(url))

    assert (0, None, None, None) == (found.runs, found.oldest, found.newest, found.growth)


# -- a copy -----------------------------------------------------------------------------------


def test_backup_while_others_write(sqlite_url, tmp_path):
    """A copy that is made while a run writes is whole, and holds what was committed before."""
    store = Store.connect(sqlite_url)
    for night in range(NIGHTS):
        play(store, make_night(night))
    writer = threading.Thread(target=lambda: [play(store, make_night(night)) for night in range(NIGHTS, NIGHTS + 6)])
    writer.start()

    size = backup(store._engine, tmp_path / "copy.db")

    writer.join(60)
    copied = db.connect(f"sqlite:///{tmp_path}/copy.db")
    assert size > 4096
    assert NIGHTS <= Queries(copied).count() <= NIGHTS + 6
    assert [] == [*check(copied)]
    assert NIGHTS + 6 == Queries(store._engine).count()


@pytest.fixture
def postgres_url(postgres_server):
    with postgres_server.schema() as found:
        yield found


def test_backup_of_postgresql(postgres_url, postgres_server, tmp_path):
    """pg_dump's copy is whole: restored into an empty database it holds the same rows."""
    url, store = postgres_url, Store.connect(postgres_url)
    play(store, make_night(0))
    assert backup(store._engine, tmp_path / "copy.dump") > 1000
    store.dispose()

    before = everything(url)
    schema = rows(url, "SELECT current_schema()")[0][0]
    change(url, f"DROP SCHEMA {schema} CASCADE")
    server = create_engine(postgres_server.url).url
    restore = ["pg_restore", f"--dbname={conninfo(server)}", str(tmp_path / "copy.dump")]
    subprocess.run(restore, check=True, capture_output=True)

    assert before == everything(url)


def test_backup_never_overwrites(engine, tmp_path):
    """A file that is there already stays; a folder that is not there is named."""
    (tmp_path / "copy").write_text("mine")

    with pytest.raises(BenchError, match="exists already; a backup never overwrites"):
        backup(engine, tmp_path / "copy")
    assert "mine" == (tmp_path / "copy").read_text()
    with pytest.raises(BenchError, match="No such file or directory. Name a file in a folder"):
        backup(engine, tmp_path / "none" / "copy")


def test_pg_dump_is_missing(postgres_url, tmp_path, monkeypatch):
    """Without pg_dump the command is said, and nothing is left behind."""
    monkeypatch.setattr(shutil, "which", lambda name: None)

    with pytest.raises(BenchError, match=r"pg_dump is not installed here.*pg_dump --format=custom --schema=test_"):
        backup(db.connect(postgres_url), tmp_path / "copy.dump")
    assert [] == [*tmp_path.glob("copy*")]


def test_conninfo_has_no_password():
    """A URL becomes libpq's words, quoted where they must be, without its password."""
    url = db.opened("postgresql+psycopg://ann:s3cret@db:5433/be'nch?sslmode=require").url

    assert r"host='db' port='5433' user='ann' dbname='be\'nch' sslmode='require'" == conninfo(url)


# -- production starts on its own schema alone ------------------------------------------------


def test_file_is_always_upgraded(sqlite_url):
    """A SQLite file is one program's: it is made and upgraded where PostgreSQL would be left as it is."""
    with db.connect(sqlite_url, may_upgrade=False).connect() as connection:
        assert migrations.HEAD == db.revision(connection)


def test_server_may_refuse_to_upgrade(postgres_url):
    """Told so, PostgreSQL with no or an older schema is refused with the remedy."""
    url = postgres_url
    with pytest.raises(BenchError, match=r"has no tables yet\. Upgrade it first: bench db upgrade"):
        db.connect(url, may_upgrade=False)
    db.connect(url).dispose()
    db.connect(url, may_upgrade=False).dispose()
    change(url, "UPDATE alembic_version SET version_num = '0002'")
    with pytest.raises(BenchError, match=r"has schema 0002, and this version needs"):
        db.connect(url, may_upgrade=False)
