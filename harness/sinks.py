"""Where a run's lines go as they happen: the journal first, then each sink.

A sink may fail; the journal does not, and `bench import` replays it. The database is a sink
that `bench` wires in: the harness opens none itself.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Protocol

from harness.record import Record, Run, RunEnd, Stage, Start


class Sink(Protocol):
    """Takes what a run has to say. Every call may be repeated with the same content."""

    def open(self, run: Run) -> None: ...

    def start(self, start: Start) -> None: ...

    def stage(self, start: Start, stage: Stage) -> None:
        """Where the case in hand is now. Kept only for the eye: may be lost."""

    def record(self, record: Record) -> None: ...

    def close(self, end: RunEnd) -> None: ...


class Forwarder:
    """Hands calls on to a sink that may fail; what failed is tried again before anything newer.

    The stage calls are not kept: a late one would be wrong.
    """

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._waiting: list[Callable[[], None]] = []
        self.trouble: Exception | None = None
        """The last failure, None when all was delivered."""

    def open(self, run: Run) -> None:
        self._deliver(lambda: self._sink.open(run))

    def start(self, start: Start) -> None:
        self._deliver(lambda: self._sink.start(start))

    def stage(self, start: Start, stage: Stage) -> None:
        if not self._waiting:
            with contextlib.suppress(Exception):
                self._sink.stage(start, stage)

    def record(self, record: Record) -> None:
        self._deliver(lambda: self._sink.record(record))

    def close(self, end: RunEnd) -> None:
        self._deliver(lambda: self._sink.close(end))

    def _deliver(self, call: Callable[[], None]) -> None:
        self._waiting.append(call)
        try:
            while self._waiting:
                self._waiting[0]()
                self._waiting.pop(0)
            self.trouble = None
        except Exception as error:  # whatever a sink raises, the run goes on
            self.trouble = error
