"""A run's lines to a server while it goes on. The journal is the spool: what is not sent yet stands there.

    journal -> Spool -> Courier -> POST /api/v1/runs/{id}/records

Measuring never waits for it. While a case is being timed it keeps still, since a body that is packed beside a sample is
seen in the sample.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TypeVar

from harness.courier import Away, Courier, Rejected, Sent, Server, Spooled, batches
from harness.errors import BenchError
from harness.journal import read
from harness.record import Record, Run, RunEnd, Stage, Start

T = TypeVar("T")

WAITS_S = (1, 2, 4, 8, 16, 30, 60)
"""Before it is tried again; the last one repeats."""

GRACE_S = 30.0
"""At the end of a run, for what the server lacks, while it answers at all."""

MOST_EXCHANGES = 5
"""A server that does not know a run that it took is begun anew with so often."""


class Spool:
    """The whole lines of a journal that grows, behind the run's own; a torn last line is not there yet."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._place = 0
        """Where what was not sent begins, in bytes."""
        self._number = 0
        """Lines before it."""

    def batch(self) -> list[Spooled]:
        """Return the next lines, as many as go in one piece; the same ones until they are `passed`."""
        return next(batches(self._lines()), [])

    def passed(self, line: Spooled) -> None:
        """Go on behind a line."""
        self._place, self._number = line.end, line.number

    def rewind(self) -> None:
        """Begin anew."""
        self._place = self._number = 0

    def records_left(self) -> int:
        """Return how many records were not passed."""
        return sum(line.record is not None for line in self._lines())

    def _lines(self) -> Iterator[Spooled]:
        with open(self._path, "rb") as file:
            file.seek(self._place)
            number = self._number
            while (text := file.readline()).endswith(b"\n"):
                number += 1
                if number > 1 and text.strip():
                    yield Spooled.of(text, number, file.tell())


class Remote:
    """A sink whose thread sends the journal of the run. No call waits, and none raises.

    Args:
        path: of the journal; every line is in it before a sink hears of it.
    """

    def __init__(self, where: Server, path: Path) -> None:
        self._where = where
        self._spool = Spool(path)
        self._news = threading.Condition()
        self._run: Run | None = None
        self._heard = False
        """Something happened since the thread last looked."""
        self._stage: tuple[Start, Stage] | None = None
        self._told: tuple[Start, Stage] | None = None
        """The stage that the server knows."""
        self._timing = False
        self._ended = False
        self._give_up_at: float | None = None
        self._thread = threading.Thread(target=self._work, name="remote", daemon=True)
        self.sent = Sent()
        self.trouble: str | None = None
        """Why something is missing there now; None: nothing is, as far as is known."""
        self.refused: str | None = None
        """The server's sentence, when it will not have the run at all."""

    # -- the sink, called by the run ----------------------------------------------------------

    def open(self, run: Run) -> None:
        self._run = run
        self._thread.start()

    def start(self, start: Start) -> None:
        self._tell(None)

    def stage(self, start: Start, stage: Stage) -> None:
        self._tell((start, stage))

    def record(self, record: Record) -> None:
        self._tell(None)

    def close(self, end: RunEnd) -> None:
        self._tell(None)

    def finish(self, grace_s: float = GRACE_S) -> str | None:
        """Send what is left, and return a sentence about what the server lacks; None: it has all.

        Args:
            grace_s: most seconds for it. A server that does not answer at all is not waited for.
        """
        with self._news:
            self._ended, self._give_up_at = True, time.monotonic() + grace_s
            self._news.notify()
        if self._run is None:
            return None
        self._thread.join(grace_s)
        missing = self._spool.records_left() + self.sent.refused
        why = self.refused or self.trouble or next(iter(self.sent.why), None)
        if not missing and why is None:
            return None
        return f"the server at {self._where.url} lacks {missing} records of this run: {why or 'time was up.'}"

    def _tell(self, stage: tuple[Start, Stage] | None) -> None:
        with self._news:
            self._stage, self._heard = stage, True
            self._timing = stage is not None and stage[1] == Stage.TIME
            self._news.notify()

    # -- the thread ---------------------------------------------------------------------------

    def _work(self) -> None:
        assert self._run is not None
        with self._where.client() as client:
            courier, opened, failures, exchanges = Courier(client, self._run), False, 0, 0
            while self.refused is None:
                try:
                    if not opened:
                        courier.open()
                        opened = True
                    if not self._step(courier):
                        return
                    failures, self.trouble = 0, None
                except Away as error:
                    self.trouble = str(error)
                    wait_s = max(error.wait_s or 0, WAITS_S[min(failures, len(WAITS_S) - 1)])
                    failures += 1
                    if not self._pause(wait_s, answers=error.wait_s is not None):
                        return
                except Rejected as error:
                    if error.status == 404 and opened and exchanges < MOST_EXCHANGES:
                        opened, exchanges = False, exchanges + 1  # its database was exchanged
                        self._spool.rewind()
                    else:
                        self.refused = str(error)
                except Exception as error:  # whatever this thread meets, the run goes on
                    self.refused = f"{type(error).__name__}: {error}"

    def _step(self, courier: Courier) -> bool:
        """Send one thing, or wait until there is one; False: all is done, or time is up."""
        with self._news:
            self._heard = False
            ended, stage, keep_still = self._ended, self._stage, self._timing and not self._ended
        lines = [] if keep_still else self._spool.batch()
        if ended and (not lines or self._time_is_up()):
            return False
        if lines:
            self.sent.add(courier.send(lines))
            self._spool.passed(lines[-1])
        elif stage is not None and stage != self._told:
            self._told = stage
            with contextlib.suppress(Rejected):  # only for the eye
                courier.stage(*stage)
        else:
            with self._news:
                self._news.wait_for(lambda: self._heard or self._ended)
        return True

    def _pause(self, seconds: float, *, answers: bool) -> bool:
        """Wait before the next attempt, and say whether there should be one. The end of the run cuts it short."""
        with self._news:
            if not self._ended:
                self._news.wait_for(lambda: self._ended, seconds)
                return True
            if answers and not self._time_is_up():
                time.sleep(min(seconds, 2.0))
                return True
        return False

    def _time_is_up(self) -> bool:
        return self._give_up_at is not None and time.monotonic() > self._give_up_at


def push(where: Server, path: Path, *, pause: Callable[[float], None] = time.sleep) -> tuple[list[str], Sent]:
    """Send a whole journal, plain or gzipped, and return its runs with what became of the records.

    What the server has is not sent again, so a journal that was cut off goes on where it stopped.

    Args:
        pause: waits so many seconds.

    Raises:
        BenchError: the file is no journal; or the server will not have it, or did not answer for a minute.
    """
    sent, runs = Sent(), []
    with where.client() as client:
        for run, lines in _runs(path):
            courier = Courier(client, run)
            runs.append(run.id)
            try:
                _patiently(courier.open, pause)
                for batch in batches(lines):
                    sent.add(_patiently(partial(courier.send, batch), pause))
            except (Away, Rejected) as error:
                raise BenchError(
                    f"{path}: {sent.new} records were sent, then: {error} When that is mended, run the same "
                    "again: it goes on where it stopped."
                ) from None
    return runs, sent


def _patiently(work: Callable[[], T], pause: Callable[[float], None]) -> T:
    for wait_s in WAITS_S[:-1]:
        try:
            return work()
        except Away as error:
            pause(max(wait_s, error.wait_s or 0))
    return work()


def _runs(path: Path) -> Iterator[tuple[Run, Iterator[Spooled]]]:
    """Yield each run of a journal with its lines; they must be taken before the next."""
    lines = enumerate(read(path), 1)
    _, run = next(lines, (1, None))
    if not isinstance(run, Run):
        raise BenchError(f"{path}: does not begin with a run. It is no journal of bench, or its first line was lost.")
    following: list[Run] = [run]

    def of_one() -> Iterator[Spooled]:
        for number, line in lines:
            if isinstance(line, Run):
                following.append(line)
                return
            record = line.id if isinstance(line, Record) else None
            yield Spooled(line.model_dump_json().encode(), number, record=record)

    while following:
        yield following.pop(), of_one()
