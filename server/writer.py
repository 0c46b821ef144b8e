"""One transaction of the store: lines of journals -> rows, and what is kept for pages renewed at its end.

Statements are made for many lines at once, since a nightly run arrives in batches: everything is looked up by a list of
keys and inserted by one statement a table. Whoever adds to a run locks its row first, so that two writers of one run
take turns (SQLite has locked everything already).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from itertools import islice
from typing import Any, TypeVar

from sqlalchemy import Connection, and_, bindparam, delete, insert, select, update
from sqlalchemy.dialects import postgresql, sqlite

from harness.record import Outcome, Record, Run, RunEnd, Stage, Start, now
from server import rows
from server.heads import Heads
from server.summaries import summary_row
from server.tables import (
    Base,
    Case,
    Configuration,
    Detail,
    Entry,
    Environment,
    Planned,
    Progress,
    Result,
    Samples,
    Summary,
)
from server.tables import Run as RunRow

T = TypeVar("T")

CHUNK = 500
"""Values in one IN (...): SQLite allows 32,766 parameters, but plans a short list better."""


class Kept(StrEnum):
    """What became of a record."""

    NEW = "new"
    KNOWN = "known"
    LATE = "late"
    """Refused: a newer attempt of the case was started or recorded."""


class Writer:
    """Writes within one transaction. `finish` must be called at its end."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._runs: dict[str, _Run] = {}
        self._touched: dict[tuple[int, str, str], None] = {}
        self._heads = Heads(connection)

    def finish(self) -> None:
        """Renew the summaries, the runs' counts and the series' heads that this transaction touched."""
        self._heads.store()
        for run in self._runs.values():
            if run.changes:
                self._connection.execute(update(RunRow).where(RunRow.key == run.key).values(**run.changes))
        for run_key, suite, configuration_id in self._touched:
            self._renew_summary(run_key, suite, configuration_id)
        for run_key in dict.fromkeys(key for key, _, _ in self._touched):
            self._renew_counts(run_key)

    # -- lines --------------------------------------------------------------------------------

    def open(self, run: Run) -> None:
        """Add a run, its environment and its whole plan. A resumed run is opened again: its plan can only grow."""
        environment = rows.environment_row(run.environment)
        self._add(Environment, [environment])
        self._add(RunRow, [rows.run_row(run, environment["id"])])
        held = self._lock(run.id)
        configurations = {planned.case.configuration.id: planned.case.configuration for planned in run.plan}
        self._add(Configuration, [rows.configuration_row(each) for each in configurations.values()])
        self._add(Case, [rows.case_row(planned.case) for planned in run.plan])
        entries = [rows.entry_row(planned) for planned in run.plan]
        self._add(Entry, entries)
        cases = self._keys(Case, [planned.case.id for planned in run.plan])
        known = self._keys(Entry, list(dict.fromkeys(entry["id"] for entry in entries)))
        self._add(
            Planned,
            [
                {
                    "run_key": held.key,
                    "case_key": cases[planned.case.id],
                    "position": position,
                    "entry_key": known[entry["id"]],
                    "attempt": 0,
                }
                for position, (planned, entry) in enumerate(zip(run.plan, entries, strict=True))
            ],
        )
        for planned in run.plan:
            self._touched[held.key, planned.case.suite, planned.case.configuration.id] = None

    def stage(self, start: Start, stage: Stage) -> None:
        """Note where the case in hand is."""
        at = now()
        run = self._lock(start.run_id)
        planned = self._planned(run, [start.case_id])[start.case_id]
        in_hand = (
            Progress.run_key == run.key,
            Progress.case_key == planned.case_key,
            Progress.attempt == start.attempt,
        )
        if self._connection.scalar(select(Progress.case_key).where(*in_hand)) is None:
            return  # its record is here already
        self._alive(run, at)
        moved = Progress.stage.is_distinct_from(stage.value)
        self._connection.execute(update(Progress).where(*in_hand, moved).values(stage=stage.value, stage_since=at))

    def take(self, lines: Sequence[Start | Record]) -> list[Kept | None]:
        """Add attempts that were begun and their records, each once, and say what became of each record.

        The lines may be of several runs; those of one run count in the order given.
        """
        kept: dict[int, Kept | None] = {}
        by_run: dict[str, list[int]] = {}
        for number, line in enumerate(lines):
            by_run.setdefault(line.run_id, []).append(number)
        for run_id, numbers in sorted(by_run.items()):  # in one order, so that two writers seldom wait for each other
            found = self._take(self._lock(run_id), [lines[number] for number in numbers])
            kept |= dict(zip(numbers, found, strict=True))
        return [kept[number] for number in range(len(lines))]

    def close(self, end: RunEnd) -> None:
        """Note that an execution of a run ended."""
        run = self._lock(end.run_id)
        if run.last_start_at is not None and end.at < run.last_start_at:
            return  # the end of an execution that was resumed since
        self._alive(run, end.at)
        if run.ended_at is None or end.at >= run.ended_at:
            run.ended_at = end.at
            run.changes |= {"ended_at": end.at, "end_reason": end.reason.value}
        self._connection.execute(delete(Progress).where(Progress.run_key == run.key))

    # -- records ------------------------------------------------------------------------------

    def _take(self, run: _Run, lines: Sequence[Start | Record]) -> list[Kept | None]:
        planned = self._planned(run, [_case_id(line) for line in lines])
        attempts = self._attempts(run, [each.case_key for each in planned.values()])
        kept: list[Kept | None] = []
        fresh: list[_Fresh] = []
        begun: dict[int, Start] = {}
        for line in lines:
            place = planned[_case_id(line)]
            known = attempts.setdefault(place.case_key, set())
            if isinstance(line, Start):
                self._alive(run, line.at, started=True)
                kept.append(None)
                if line.attempt >= place.attempt:
                    place.attempt = line.attempt
                    if line.attempt not in known:
                        begun[place.case_key] = line
                continue
            self._alive(run, line.finished_at)
            if line.attempt in known:
                kept.append(Kept.KNOWN)
            elif line.attempt < place.attempt:
                kept.append(Kept.LATE)
            else:
                kept.append(Kept.NEW)
                known.add(line.attempt)
                place.attempt = line.attempt
                begun.pop(place.case_key, None)
                fresh.append(_Fresh(line, place, rows.result_row(line)))
        if fresh:
            self._insert(run, fresh)
        if begun:
            self._begin(run, begun)
        return kept

    def _begin(self, run: _Run, begun: Mapping[int, Start]) -> None:
        self._set_planned(
            run, [{"case": key, "newest": start.attempt} for key, start in begun.items()], attempt=bindparam("newest")
        )
        self._forget_progress(run, list(begun))
        self._connection.execute(
            insert(Progress),
            [
                {
                    "run_key": run.key,
                    "case_key": key,
                    "attempt": start.attempt,
                    "started_at": start.at,
                    "stage_since": start.at,
                }
                for key, start in begun.items()
            ],
        )

    def _insert(self, run: _Run, fresh: Sequence[_Fresh]) -> None:
        started = {each.place.case_key: each.record.started_at for each in fresh}
        series = self._heads.keys(started, run.hard, run.source, run.branch)
        for each in fresh:
            case_key = each.place.case_key
            each.row.update(run_key=run.key, case_key=case_key, series_key=series[case_key])
        self._connection.execute(insert(Result), [each.row for each in fresh])
        keys = self._keys(Result, [each.record.id for each in fresh])
        details = [{"result_key": keys[each.record.id], "document": rows.packed_detail(each.record)} for each in fresh]
        self._connection.execute(insert(Detail), details)
        samples = [(each.record.id, rows.samples_row(each.record)) for each in fresh]
        timed = [{"result_key": keys[id_], **row} for id_, row in samples if row is not None]
        if timed:
            self._connection.execute(insert(Samples), timed)
        newest = {
            each.place.case_key: {
                "case": each.place.case_key,
                "newest": each.record.attempt,
                "result": keys[each.record.id],
            }
            for each in fresh
        }
        self._set_planned(run, list(newest.values()), attempt=bindparam("newest"), result_key=bindparam("result"))
        self._forget_progress(run, list(started))
        for each in fresh:
            self._heads.add(each.row["series_key"], keys[each.record.id], each.row)
            self._touched[run.key, each.place.suite, each.place.configuration_id] = None

    # -- what is kept for pages ---------------------------------------------------------------

    def _renew_summary(self, run_key: int, suite: str, configuration_id: str) -> None:
        """Count a summary anew from the columns of its results."""
        found = self._connection.execute(
            select(
                Case.model,
                Planned.position,
                Entry.skip,
                *[Result.__table__.c[name] for name in SUMMED],
            )
            .select_from(Planned)
            .join(Case, Case.key == Planned.case_key)
            .join(Entry, Entry.key == Planned.entry_key)
            .outerjoin(Result, Result.key == Planned.result_key)
            .where(Planned.run_key == run_key, Case.suite == suite, Case.configuration_id == configuration_id)
            .order_by(Planned.position)
        ).all()
        configuration = self._connection.scalar(
            select(Configuration.document).where(Configuration.id == configuration_id)
        )
        key = {"run_key": run_key, "suite": suite, "configuration_id": configuration_id}
        values = summary_row(suite, configuration or {}, found)
        self._connection.execute(delete(Summary).filter_by(**key))
        self._connection.execute(insert(Summary).values(**key, **values))

    def _renew_counts(self, run_key: int) -> None:
        found = self._connection.execute(
            select(Summary.planned, Summary.skipped, Summary.passed, Summary.missing, Summary.outcomes).where(
                Summary.run_key == run_key
            )
        ).all()
        counts = {
            name: sum(getattr(row, name) for row in found) for name in ("planned", "skipped", "passed", "missing")
        }
        counts["crashed"] = sum(row.outcomes.get(Outcome.CRASH.value, 0) for row in found)
        self._connection.execute(update(RunRow).where(RunRow.key == run_key).values(**counts))

    # -- small steps --------------------------------------------------------------------------

    def _add(self, table: type[Base], values: Sequence[Mapping[str, Any]]) -> None:
        """Insert the rows that are not there yet; in one order, so that two writers cannot wait for each other."""
        add = postgresql.insert if self._connection.dialect.name == "postgresql" else sqlite.insert
        distinct = {values["id"]: values for values in values} if values and "id" in values[0] else None
        ordered = [distinct[id_] for id_ in sorted(distinct)] if distinct is not None else list(values)
        if ordered:
            self._connection.execute(add(table).on_conflict_do_nothing(), ordered)

    def _keys(self, table: type[Case] | type[Entry] | type[Result], ids: Sequence[str]) -> dict[str, int]:
        found: dict[str, int] = {}
        for part in chunks(ids):
            found |= dict(self._connection.execute(select(table.id, table.key).where(table.id.in_(part))).all())
        return found

    def _lock(self, run_id: str) -> _Run:
        """Return a run, locked until the end of the transaction.

        Raises:
            UnknownRun: there is no such run.
        """
        if run_id not in self._runs:
            found = self._connection.execute(
                select(
                    RunRow.key,
                    RunRow.source,
                    RunRow.branch,
                    RunRow.last_start_at,
                    RunRow.heartbeat_at,
                    RunRow.ended_at,
                    Environment.hard,
                )
                .join(Environment, Environment.id == RunRow.environment_id)
                .where(RunRow.id == run_id)
                .with_for_update(of=RunRow)
            ).one_or_none()
            if found is None:
                raise rows.UnknownRun(
                    f"run {run_id} is not in the database, so nothing of it can be added. Import its journal, or send "
                    "the run first."
                )
            self._runs[run_id] = _Run(run_id, found)
        return self._runs[run_id]

    def _planned(self, run: _Run, case_ids: Sequence[str]) -> dict[str, _Planned]:
        """Return the planned cases with these ids.

        Raises:
            Misfit: one of them is not in the run's plan.
        """
        wanted = [case_id for case_id in dict.fromkeys(case_ids) if case_id not in run.plan]
        for part in chunks(wanted):
            for row in self._connection.execute(
                select(Planned.case_key, Planned.attempt, Case.id, Case.suite, Case.configuration_id)
                .join(Case, Case.key == Planned.case_key)
                .where(Planned.run_key == run.key, Case.id.in_(part))
            ):
                run.plan[row.id] = _Planned(row)
        for case_id in wanted:
            if case_id not in run.plan:
                raise rows.Misfit(
                    f"run {run.id} has no case {case_id} in its plan. The journal is of another run, or damaged.",
                    case_id,
                )
        return {case_id: run.plan[case_id] for case_id in case_ids}

    def _attempts(self, run: _Run, case_keys: Sequence[int]) -> dict[int, set[int]]:
        """Return the attempts at each case that have a result."""
        found: dict[int, set[int]] = {}
        for part in chunks(case_keys):
            of_part = select(Result.case_key, Result.attempt).where(
                and_(Result.run_key == run.key, Result.case_key.in_(part))
            )
            for case_key, attempt in self._connection.execute(of_part):
                found.setdefault(case_key, set()).add(attempt)
        return found

    def _alive(self, run: _Run, at: datetime, started: bool = False) -> None:
        """Move the run's heartbeat forward; a case started after the run's end reopens it."""
        if at > run.heartbeat_at:
            run.heartbeat_at = run.changes["heartbeat_at"] = at
        if started and (run.last_start_at is None or at > run.last_start_at):
            run.last_start_at = run.changes["last_start_at"] = at
            if run.ended_at is not None and at > run.ended_at:
                run.ended_at = None
                run.changes |= {"ended_at": None, "end_reason": None}

    def _set_planned(self, run: _Run, parameters: list[dict[str, Any]], **values: Any) -> None:
        """Update one planned case for each of the parameters, whose `case` names it."""
        where = (Planned.run_key == run.key, Planned.case_key == bindparam("case"))
        self._connection.execute(update(Planned).where(*where).values(**values), parameters)

    def _forget_progress(self, run: _Run, case_keys: Sequence[int]) -> None:
        for part in chunks(case_keys):
            self._connection.execute(delete(Progress).where(Progress.run_key == run.key, Progress.case_key.in_(part)))


SUMMED = (
    "outcome",
    "text",
    "valid",
    "invalid_why",
    "no_estimate",
    "emulated",
    "flags",
    "speedup",
    "speedup_low",
    "speedup_high",
    "speedup_n",
    "speedup_method",
    "compile_wall_s",
    "memory_ratio",
)
"""Columns of a result that a summary is counted from."""


class _Run:
    """A run that this transaction holds locked, as it stands now."""

    def __init__(self, run_id: str, row: Any) -> None:
        self.id = run_id
        self.key: int = row.key
        self.hard: str = row.hard
        self.source: str = row.source or ""
        self.branch: str = row.branch or ""
        self.last_start_at: datetime | None = row.last_start_at
        self.heartbeat_at: datetime = row.heartbeat_at
        self.ended_at: datetime | None = row.ended_at
        self.plan: dict[str, _Planned] = {}
        """Of its cases, those that were asked for, by case id."""
        self.changes: dict[str, Any] = {}
        """Columns that this transaction has changed and not yet written."""


class _Planned:
    """A case of a run's plan, as it stands now."""

    def __init__(self, row: Any) -> None:
        self.case_key: int = row.case_key
        self.suite: str = row.suite
        self.configuration_id: str = row.configuration_id
        self.attempt: int = row.attempt


@dataclass(frozen=True)
class _Fresh:
    """A record that is new, where it stands in the plan, and its columns."""

    record: Record
    place: _Planned
    row: dict[str, Any]


def _case_id(line: Start | Record) -> str:
    return line.case_id if isinstance(line, Start) else line.case.id


def chunks(values: Iterable[T]) -> Iterator[list[T]]:
    """Yield the values in lists of at most `CHUNK`."""
    left = iter(values)
    while part := list(islice(left, CHUNK)):
        yield part
