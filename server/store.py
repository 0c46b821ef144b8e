"""The only writer of rows.

A `Store` is a `harness.sinks.Sink`: each line of a journal is one transaction, in which the
summary it touches is renewed too. Every line may come twice, from several processes at once and
late: ids make repeats harmless, and a result older than the case's newest attempt is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Self

from sqlalchemy import Connection, Engine, delete, func, insert, select, update
from sqlalchemy.dialects import postgresql, sqlite

from harness.errors import BenchError
from harness.record import JournalLine, Record, Run, RunEnd, Stage, Start, now
from harness.record import Planned as PlannedCase
from server import db, rows
from server.summaries import skipped_record, summary_row
from server.tables import (
    Base,
    Case,
    Configuration,
    Environment,
    Planned,
    Progress,
    Result,
    Samples,
    Summary,
)
from server.tables import Run as RunRow


class Kept(StrEnum):
    """What became of a record."""

    NEW = "new"
    KNOWN = "known"
    LATE = "late"
    """Refused: a newer attempt of the case was started or recorded."""


@dataclass(frozen=True)
class Replayed:
    """What a journal held: its runs, and what became of its records."""

    runs: tuple[str, ...]
    new: int
    known: int
    late: int


class Store:
    """Writes what a run has to say. One instance a process; it may be used by several threads."""

    def __init__(self, engine: Engine) -> None:
        self._engine = db.writing(engine)

    @classmethod
    def connect(cls, url: str) -> Self:
        """Open a database, created or upgraded where needed.

        Raises:
            BenchError: it cannot be opened, is no database of ours, or is of a newer version.
        """
        return cls(db.connect(url))

    def dispose(self) -> None:
        """Close the connections."""
        self._engine.dispose()

    # -- the sink -----------------------------------------------------------------------------

    def open(self, run: Run) -> None:
        """Store a run, its environment and its whole plan. A resumed run is opened again."""
        with self._write() as writer:
            writer.open(run)

    def start(self, start: Start) -> None:
        """Note that an attempt at a case was begun; results of older attempts are refused from now on."""
        with self._write() as writer:
            writer.start(start)

    def stage(self, start: Start, stage: Stage) -> None:
        """Note where the case in hand is."""
        with self._write() as writer:
            writer.stage(start, stage)

    def record(self, record: Record) -> None:
        """Store a record, unless it is known or late."""
        self.keep(record)

    def close(self, end: RunEnd) -> None:
        """Note that an execution of the run ended."""
        with self._write() as writer:
            writer.close(end)

    # -- beyond the sink ----------------------------------------------------------------------

    def keep(self, record: Record) -> Kept:
        """Store a record and say what became of it."""
        with self._write() as writer:
            return writer.keep(record)

    def replay(self, lines: Iterable[JournalLine]) -> Replayed:
        """Store a journal in one transaction: all of it, or nothing when a line is bad."""
        runs: list[str] = []
        kept: list[Kept] = []
        with self._write() as writer:
            for line in lines:
                match line:
                    case Run():
                        writer.open(line)
                        runs.append(line.id)
                    case Start():
                        writer.start(line)
                    case Record():
                        kept.append(writer.keep(line))
                    case RunEnd():
                        writer.close(line)
        return Replayed(tuple(dict.fromkeys(runs)), kept.count(Kept.NEW), kept.count(Kept.KNOWN), kept.count(Kept.LATE))

    @contextmanager
    def _write(self) -> Iterator[_Writer]:
        with db.explained(self._engine.url), self._engine.begin() as connection:
            writer = _Writer(connection)
            yield writer
            writer.renew_summaries()


class _Writer:
    """One transaction. Remembers which summaries its lines touched and renews them at its end."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._touched: dict[tuple[str, str, str], None] = {}

    def open(self, run: Run) -> None:
        environment = rows.environment_row(run.environment)
        self._add(Environment, [environment])
        self._add(RunRow, [rows.run_row(run, environment["id"])])
        configurations = {row["id"]: row for row in (rows.configuration_row(p.case.configuration) for p in run.plan)}
        self._add(Configuration, list(configurations.values()))
        cases = {row["id"]: row for row in (rows.case_row(p.case) for p in run.plan)}
        self._add(Case, list(cases.values()))
        self._add(Planned, [rows.planned_row(run.id, place, planned) for place, planned in enumerate(run.plan)])
        for row in cases.values():
            self._touched[run.id, row["suite"], row["configuration_id"]] = None

    def start(self, start: Start) -> None:
        planned = self._planned(start.run_id, start.case_id)
        self._alive(start.run_id, start.at, started=True)
        if start.attempt < planned.attempt:
            return
        if start.attempt > planned.attempt:
            self._set_planned(start.run_id, start.case_id, attempt=start.attempt)
        if self._result_exists(start.run_id, start.case_id, start.attempt):
            return
        self._forget_progress(start.run_id, start.case_id)
        self._connection.execute(
            insert(Progress).values(
                run_id=start.run_id,
                case_id=start.case_id,
                attempt=start.attempt,
                started_at=start.at,
                stage_since=start.at,
            )
        )

    def stage(self, start: Start, stage: Stage) -> None:
        at = now()
        in_hand = (
            Progress.run_id == start.run_id,
            Progress.case_id == start.case_id,
            Progress.attempt == start.attempt,
        )
        if self._connection.scalar(select(Progress.case_id).where(*in_hand)) is None:
            return  # its record is here already
        self._alive(start.run_id, at)
        moved = Progress.stage.is_distinct_from(stage.value)
        self._connection.execute(update(Progress).where(*in_hand, moved).values(stage=stage.value, stage_since=at))

    def keep(self, record: Record) -> Kept:
        planned = self._planned(record.run_id, record.case.id)
        self._alive(record.run_id, record.finished_at)
        if self._result_exists(record.run_id, record.case.id, record.attempt):
            return Kept.KNOWN
        if record.attempt < planned.attempt:
            return Kept.LATE
        self._connection.execute(insert(Result).values(rows.result_row(record)))
        samples = rows.samples_row(record)
        if samples is not None:
            self._connection.execute(insert(Samples).values(samples))
        self._set_planned(record.run_id, record.case.id, attempt=record.attempt, result_id=record.id)
        self._forget_progress(record.run_id, record.case.id)
        self._touched[record.run_id, planned.suite, planned.configuration_id] = None
        return Kept.NEW

    def close(self, end: RunEnd) -> None:
        run = self._lock(end.run_id)
        if run.last_start_at is not None and end.at < run.last_start_at:
            return  # the end of an execution that was resumed since
        self._alive(end.run_id, end.at)
        if run.ended_at is None or end.at >= run.ended_at:
            self._connection.execute(
                update(RunRow).where(RunRow.id == end.run_id).values(ended_at=end.at, end_reason=end.reason.value)
            )
        self._connection.execute(delete(Progress).where(Progress.run_id == end.run_id))

    def renew_summaries(self) -> None:
        for run_id, suite, configuration_id in self._touched:
            key = {"run_id": run_id, "suite": suite, "configuration_id": configuration_id}
            values = summary_row(*self._group(run_id, suite, configuration_id))
            self._connection.execute(delete(Summary).filter_by(**key))
            self._connection.execute(insert(Summary).values(**key, **values))

    def _group(self, run_id: str, suite: str, configuration_id: str) -> tuple[list[PlannedCase], dict[str, Record]]:
        """Return a summary's planned cases, and the newest record of each that has one, without its samples."""
        found = self._connection.execute(
            select(Planned.__table__, Case.document.label("case"), Result.document.label("record"), RunRow.started_at)
            .join(RunRow, RunRow.id == Planned.run_id)
            .join(Case, Case.id == Planned.case_id)
            .outerjoin(Result, Result.id == Planned.result_id)
            .where(Planned.run_id == run_id, Case.suite == suite, Case.configuration_id == configuration_id)
            .order_by(Planned.position)
        ).all()
        cases: list[PlannedCase] = []
        records: dict[str, Record] = {}
        for row in found:
            planned = rows.planned_of(row._asdict(), row.case)
            cases.append(planned)
            if row.record is not None:
                records[row.case_id] = rows.record_of(row.record)
            elif planned.skip is not None:
                records[row.case_id] = skipped_record(run_id, row.started_at, planned)
        return cases, records

    # -- small steps --------------------------------------------------------------------------

    def _add(self, table: type[Base], values: Sequence[Mapping[str, Any]]) -> None:
        """Insert the rows whose keys are not there yet."""
        add = postgresql.insert if self._connection.dialect.name == "postgresql" else sqlite.insert
        if values:
            self._connection.execute(add(table).on_conflict_do_nothing(), list(values))

    def _lock(self, run_id: str) -> Any:
        """Return a run's row, locked (SQLite has locked everything already).

        Raises:
            BenchError: there is no such run.
        """
        found = self._connection.execute(
            select(RunRow.id, RunRow.last_start_at, RunRow.heartbeat_at, RunRow.ended_at)
            .where(RunRow.id == run_id)
            .with_for_update()
        ).one_or_none()
        if found is None:
            raise BenchError(f"run {run_id} is not in the database, so nothing of it can be added. Import its journal.")
        return found

    def _planned(self, run_id: str, case_id: str) -> Any:
        self._lock(run_id)
        found = self._connection.execute(
            select(Planned.attempt, Case.suite, Case.configuration_id)
            .join(Case, Case.id == Planned.case_id)
            .where(Planned.run_id == run_id, Planned.case_id == case_id)
        ).one_or_none()
        if found is None:
            raise BenchError(
                f"run {run_id} has no case {case_id} in its plan. The journal is of another run, or damaged."
            )
        return found

    def _alive(self, run_id: str, at: datetime, started: bool = False) -> None:
        """Move the run's heartbeat forward; a case started after the run's end reopens it."""
        run = self._lock(run_id)
        values: dict[str, Any] = {}
        if at > run.heartbeat_at:
            values["heartbeat_at"] = at
        if started and (run.last_start_at is None or at > run.last_start_at):
            values["last_start_at"] = at
            if run.ended_at is not None and at > run.ended_at:
                values |= {"ended_at": None, "end_reason": None}
        if values:
            self._connection.execute(update(RunRow).where(RunRow.id == run_id).values(values))

    def _set_planned(self, run_id: str, case_id: str, **values: Any) -> None:
        where = (Planned.run_id == run_id, Planned.case_id == case_id)
        self._connection.execute(update(Planned).where(*where).values(values))

    def _result_exists(self, run_id: str, case_id: str, attempt: int) -> bool:
        where = {"run_id": run_id, "case_id": case_id, "attempt": attempt}
        return bool(self._connection.scalar(select(func.count()).select_from(Result).filter_by(**where)))

    def _forget_progress(self, run_id: str, case_id: str) -> None:
        self._connection.execute(delete(Progress).where(Progress.run_id == run_id, Progress.case_id == case_id))
