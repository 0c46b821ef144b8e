"""The only writer of rows.

A `Store` is a `harness.sinks.Sink`: each line of a journal is one transaction, in which the
summary it touches is renewed too. Every line may come twice, from several processes at once and
late: ids make repeats harmless, and a result older than the case's newest attempt is refused.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Self, TypeVar

from sqlalchemy import Engine
from sqlalchemy.exc import OperationalError

from harness.record import JournalLine, Record, Run, RunEnd, Stage, Start
from server import db
from server.writer import Kept, Writer

T = TypeVar("T")

BATCH = 2000
"""Lines of a journal that are looked up and inserted together."""

DEADLOCK = "40P01"
"""What PostgreSQL says when two writers wait for each other; the one who hears it may try again."""

ATTEMPTS = 5


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
        self._write(lambda writer: writer.open(run))

    def start(self, start: Start) -> None:
        """Note that an attempt at a case was begun; results of older attempts are refused from now on."""
        self._write(lambda writer: writer.take([start]))

    def stage(self, start: Start, stage: Stage) -> None:
        """Note where the case in hand is."""
        self._write(lambda writer: writer.stage(start, stage))

    def record(self, record: Record) -> None:
        """Store a record, unless it is known or late."""
        self.save([record])

    def close(self, end: RunEnd) -> None:
        """Note that an execution of the run ended."""
        self._write(lambda writer: writer.close(end))

    # -- beyond the sink ----------------------------------------------------------------------

    def save(self, records: Sequence[Record]) -> list[Kept]:
        """Store records in one transaction, all of them or none, and say what became of each."""
        return [kept for kept in self._write(lambda writer: writer.take(records)) if kept is not None]

    def replay(self, lines: Iterable[JournalLine]) -> Replayed:
        """Store a journal in one transaction: all of it, or nothing when a line is bad."""
        known = list(lines)
        return self._write(lambda writer: _replay(writer, known))

    def _write(self, work: Callable[[Writer], T]) -> T:
        """Do the work in one transaction. Two writers that wait for each other: one of them does it again."""
        with db.explained(self._engine.url):
            for attempt in range(1, ATTEMPTS + 1):
                try:
                    with self._engine.begin() as connection:
                        writer = Writer(connection)
                        found = work(writer)
                        writer.finish()
                    return found
                except OperationalError as error:
                    if getattr(error.orig, "sqlstate", None) != DEADLOCK or attempt == ATTEMPTS:
                        raise
                    time.sleep(0.05 * attempt)
        raise AssertionError("the last attempt returns or raises")


def _replay(writer: Writer, lines: Sequence[JournalLine]) -> Replayed:
    runs: list[str] = []
    kept: list[Kept | None] = []
    waiting: list[Start | Record] = []
    for line in lines:
        if isinstance(line, Start | Record):
            waiting.append(line)
        if waiting and (len(waiting) >= BATCH or not isinstance(line, Start | Record)):
            kept += writer.take(waiting)
            waiting = []
        if isinstance(line, Run):
            writer.open(line)
            runs.append(line.id)
        elif isinstance(line, RunEnd):
            writer.close(line)
    kept += writer.take(waiting)
    return Replayed(tuple(dict.fromkeys(runs)), kept.count(Kept.NEW), kept.count(Kept.KNOWN), kept.count(Kept.LATE))
