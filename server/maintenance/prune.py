"""Delete what is older than it has to be kept.

A run is one transaction, so that those who write wait for one run at most, and what is interrupted has pruned the
oldest runs wholly and the others not at all. Locks are taken in the order of `server.writer`: the run, then its series.
Cases, entries and environments stay, since runs to come share them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, Engine, bindparam, delete, func, select, text, update

from harness.errors import UsageError
from harness.record import Outcome, now
from server import db
from server.heads import CHUNK, RECENT
from server.maintenance.recount import EMPTY, HEAD, POINT, point
from server.reading.runs import SILENCE
from server.tables import (
    Annotation,
    Detail,
    Entry,
    Planned,
    Progress,
    Result,
    Run,
    Samples,
    Series,
    Summary,
    Upload,
)

DAYS = {"d": 1, "w": 7, "y": 365}
LONGEST = timedelta(days=100 * 365)


@dataclass(frozen=True)
class Keep:
    """For how long what is kept, counted from a run's last sign of life. None: for ever."""

    runs: timedelta | None = None
    samples: timedelta | None = None
    details: timedelta | None = None


@dataclass
class Pruned:
    """What was removed."""

    runs: list[str] = field(default_factory=list)
    """Ids, the oldest first."""
    results: int = 0
    samples: int = 0
    details: int = 0
    series: int = 0
    """Those of which no result is left."""
    in_progress: list[str] = field(default_factory=list)
    """Old enough, but going on: left as they are."""


def duration(text: str) -> timedelta:
    """Return `90d`, `26w` or `2y` as a span; a year has 365 days.

    Raises:
        UsageError: it is none, or no time that anything is kept for.
    """
    found = re.fullmatch(r"([0-9]{1,6})\s*([dwy])", text.strip())
    if found is None:
        raise UsageError(f"{text!r} is no duration: write days, weeks or years, e.g. 90d, 26w, 2y.")
    span = timedelta(days=int(found[1]) * DAYS[found[2]])
    if not timedelta() < span <= LONGEST:
        raise UsageError(f"{text!r} is no time to keep anything for: between 1d and 100y.")
    return span


def prune(engine: Engine, keep: Keep, *, dry_run: bool = False, clock: Callable[[], datetime] = now) -> Pruned:
    """Delete runs, samples and details that are older than they are kept; or only count them.

    Raises:
        UsageError: nothing is limited, or samples or details are to be kept for longer than their runs.
        BenchError: the database refuses.
    """
    for name, span in (("samples", keep.samples), ("details", keep.details)):
        if span is not None and keep.runs is not None and span > keep.runs:
            raise UsageError(f"{name} cannot be kept for longer ({span.days} days) than runs ({keep.runs.days} days).")
    if keep == Keep():
        raise UsageError("nothing to prune: say how long runs, samples or details are kept.")
    at, gone = clock(), Pruned()
    with db.explained(engine.url):
        if keep.runs is not None:
            _runs(engine, at, at - keep.runs, gone, dry_run)
        for table, span in ((Samples, keep.samples), (Detail, keep.details)):
            if span is not None:
                count = sum(_bulk(engine, table, at - span, set(gone.runs), dry_run))
                setattr(gone, table.__tablename__ if table is Samples else "details", count)
        if not dry_run:
            gone.series = forget_empty(engine)
    return gone


def _runs(engine: Engine, at: datetime, before: datetime, gone: Pruned, dry_run: bool) -> None:
    with engine.begin() as connection:
        old = connection.execute(
            select(Run.key, Run.id)
            .where(Run.started_at < before, Run.heartbeat_at < before)
            .order_by(Run.started_at, Run.id)
        ).all()
    for key, id_ in old:
        with (engine if dry_run else db.writing(engine)).begin() as connection:
            asked = select(Run.ended_at, Run.heartbeat_at).where(Run.key == key)
            run = connection.execute(asked if dry_run else asked.with_for_update()).one_or_none()
            if run is None or run.heartbeat_at >= before:
                continue  # resumed meanwhile, or pruned by somebody else
            if run.ended_at is None and at - run.heartbeat_at <= SILENCE + _limit(connection, key):
                gone.in_progress.append(id_)
                continue
            counted = select(func.count()).select_from(Result).where(Result.run_key == key)
            gone.results += connection.scalar(counted) if dry_run else _remove(connection, key)  # type: ignore[operator]
            gone.runs.append(id_)


def _limit(connection: Connection, run_key: int) -> timedelta:
    """Return the longest that a case in hand may take, as `server.queries` has it."""
    longest = connection.scalar(
        select(func.max(Entry.timeout_s))
        .select_from(Progress)
        .join(Planned, (Progress.run_key == Planned.run_key) & (Progress.case_key == Planned.case_key))
        .join(Entry, Entry.key == Planned.entry_key)
        .where(Progress.run_key == run_key)
    )
    return timedelta(seconds=longest or 0)


def _remove(connection: Connection, run_key: int) -> int:
    """Delete a run with all that hangs on it, and return how many results it had."""
    results = select(Result.key).where(Result.run_key == run_key)
    removed = connection.execute(
        select(Result.key, Result.series_key, Result.started_at).where(Result.run_key == run_key)
    ).all()
    for bulk in (Samples, Detail):
        connection.execute(delete(bulk).where(bulk.result_key.in_(results)))
    for table in (Progress, Summary, Planned, Annotation, Result):
        connection.execute(delete(table).where(table.__table__.c.run_key == run_key))
    connection.execute(update(Upload).where(Upload.run_key == run_key).values(run_key=None))
    _shrink(connection, removed)
    connection.execute(delete(Run).where(Run.key == run_key))
    return len(removed)


def _shrink(connection: Connection, removed: Sequence[Any]) -> None:
    """Take results that are gone out of the heads of their series, reading as little of each as can be."""
    by_series: dict[int, list[Any]] = {}
    for row in removed:
        by_series.setdefault(row.series_key, []).append(row)
    oldest_left = (
        select(func.min(Result.started_at)).where(Result.series_key == Series.key).correlate(Series).scalar_subquery()
    )
    for part in _chunks(sorted(by_series)):
        found = connection.execute(
            select(Series.key, *[Series.__table__.c[name] for name in HEAD], oldest_left.label("oldest_left"))
            .where(Series.key.in_(part))
            .order_by(Series.key)  # in one order, so that two writers cannot wait for each other
            .with_for_update()
        ).all()
        heads = [_without(connection, head, by_series[head.key]) for head in found]
        connection.execute(
            update(Series)
            .where(Series.key == bindparam("of"))
            .values({name: bindparam(f"new_{name}") for name in HEAD}),
            [
                {"of": row.key, **{f"new_{name}": head[name] for name in HEAD}}
                for row, head in zip(found, heads, strict=True)
            ],
        )


def _without(connection: Connection, row: Any, lost: Sequence[Any]) -> dict[str, Any]:
    """Return a head without some of its results, which are deleted already."""
    head = {name: getattr(row, name) for name in HEAD} | {"results": row.results - len(lost)}
    if row.oldest_left is None:
        return head | EMPTY
    head["first_at"] = row.oldest_left
    oldest, newest = min(each.started_at for each in lost), max(each.started_at for each in lost)
    if not row.recent or newest.timestamp() >= row.recent[0][0]:
        head |= _tail(connection, row.key)
    if row.passed_at is not None and oldest <= row.passed_at <= newest:
        passed = _of(row.key, Result.started_at).where(Result.outcome == Outcome.PASS.value)
        head["passed_at"] = connection.scalar(passed)
    return head


def _of(series_key: int, *columns: Any) -> Any:
    """The newest result of a series."""
    newest_first = (Result.started_at.desc(), Result.key.desc())
    return select(*columns).where(Result.series_key == series_key).order_by(*newest_first).limit(1)


def _tail(connection: Connection, series_key: int) -> dict[str, Any]:
    """Return what a head tells of the newest results."""
    found = connection.execute(_of(series_key, *POINT).limit(RECENT)).all()
    newest = found[0]
    return {
        "last_at": newest.started_at,
        "result_key": newest.key,
        "outcome": newest.outcome,
        "recent": [point(row) for row in reversed(found)],
    }


def _bulk(
    engine: Engine, table: type[Samples] | type[Detail], before: datetime, gone: set[str], dry_run: bool
) -> Iterator[int]:
    """Delete the samples or details of old runs, run by run, and yield how many."""
    with engine.begin() as connection:
        old = connection.execute(
            select(Run.key, Run.id, func.count())
            .select_from(table)
            .join(Result, Result.key == table.result_key)
            .join(Run, Run.key == Result.run_key)
            .where(Run.started_at < before, Run.heartbeat_at < before)
            .group_by(Run.key, Run.id)
            .order_by(Run.key)
        ).all()
    for key, id_, count in old:
        if dry_run:
            yield 0 if id_ in gone else count
            continue
        results = select(Result.key).where(Result.run_key == key)
        with db.writing(engine).begin() as connection:
            yield connection.execute(delete(table).where(table.result_key.in_(results))).rowcount


def forget_empty(engine: Engine) -> int:
    """Delete series of which no result is left, with what was remarked on them; return how many."""
    with engine.begin() as connection:
        if connection.scalar(select(Series.key).where(Series.results == 0).limit(1)) is None:
            return 0
    with db.writing(engine).begin() as connection:
        if connection.dialect.name == "postgresql":
            # A writer may have found a series and not yet added to it: let those end, and others wait for a moment.
            connection.execute(text("LOCK TABLE series IN EXCLUSIVE MODE"))
        empty = list(connection.scalars(select(Series.key).where(Series.results == 0)))
        for part in _chunks(empty):
            connection.execute(delete(Annotation).where(Annotation.series_key.in_(part)))
            connection.execute(delete(Series).where(Series.key.in_(part)))
    return len(empty)


def _chunks(keys: Sequence[int]) -> Iterable[Sequence[int]]:
    return (keys[begin : begin + CHUNK] for begin in range(0, len(keys), CHUNK))
