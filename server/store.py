"""The only writer of rows.

A `Store` is a `harness.sinks.Sink`: each line of a journal is one transaction, in which the
summary it touches is renewed too. Every line may come twice, from several processes at once and
late: ids make repeats harmless, and a result older than the case's newest attempt is refused.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Self, TypeVar

from sqlalchemy import Engine
from sqlalchemy.exc import DataError, DBAPIError, OperationalError, StatementError

from harness.record import JournalLine, Record, Run, RunEnd, Stage, Start
from harness.wire import SentLine
from server import db
from server.arrivals import Arrivals, Receipt
from server.rows import Misfit
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

    # -- over the API -------------------------------------------------------------------------

    def admit(self, run: Run) -> bool:
        """Store a run as `open` does, and say whether it is new.

        Raises:
            Conflict: another run was stored under its id.
        """
        return self._write(lambda writer: writer.admit(run))

    def receive(self, run_id: str, lines: Sequence[SentLine], receipt: Receipt) -> list[Kept]:
        """Store lines of one run and the note that they came, in one transaction; say what became of the records.

        Raises:
            Misfit: there is no such run, or one of the lines does not fit it; nothing is stored.
        """
        return self._write(lambda writer: writer.receive(run_id, lines, receipt))

    def amend(self, run_id: str, said: Mapping[str, str], end: RunEnd | None) -> None:
        """Say what a run did not say of itself, and that it ended.

        Raises:
            Misfit: there is no such run.
            Conflict: it said another thing.
        """

        def work(writer: Arrivals) -> None:
            writer.amend(run_id, said)
            if end is not None:
                writer.close(end)

        self._write(work)

    def _write(self, work: Callable[[Arrivals], T]) -> T:
        """Do the work in one transaction. Two writers that wait for each other: one of them does it again."""
        with db.explained(self._engine.url):
            for attempt in range(1, ATTEMPTS + 1):
                try:
                    with self._engine.begin() as connection:
                        writer = Arrivals(connection)
                        found = work(writer)
                        writer.finish()
                    return found
                except (DataError, OverflowError) as error:
                    raise _unfit(error) from error
                except OperationalError as error:
                    if getattr(error.orig, "sqlstate", None) != DEADLOCK or attempt == ATTEMPTS:
                        raise
                    time.sleep(0.05 * attempt)
                except DBAPIError:
                    raise
                except StatementError as error:  # a value that never got as far as the database
                    raise _unfit(error) from error
        raise AssertionError("the last attempt returns or raises")


def _unfit(error: Exception) -> Misfit:
    """E.g. a whole number of more than 64 bits; on PostgreSQL a text with a null character."""
    cause = str(getattr(error, "orig", None) or error).strip().splitlines()[0]
    return Misfit(f"a value that the database cannot hold ({cause}). Nothing of it was stored.")


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
