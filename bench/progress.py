"""What a terminal shows while a run goes on: a line per result, and below it where the run is.

Redrawn at most every second, and half as often while samples are taken: a display must not cost
what it displays.
"""

from __future__ import annotations

import sys
import time
from datetime import datetime, timedelta

from rich.console import Console
from rich.live import Live
from rich.markup import escape
from rich.table import Table

from harness import report
from harness.record import Outcome, Record, Run, RunEnd, Stage, Start

_REDRAW_S = 1.0
_REDRAW_WHILE_TIMING_S = 2.0


class Progress:
    """A sink that shows. Results go to stdout; the live part only to a terminal."""

    def __init__(self, *, as_json: bool) -> None:
        self._as_json = as_json
        self._console = Console(stderr=as_json or not sys.stdout.isatty(), highlight=False, soft_wrap=True)
        self._live: Live | None = None
        self._plan: dict[str, str] = {}
        self.records: dict[str, Record] = {}
        """The newest record of each case, by case id."""
        self._width = 0
        self._case = self._stage = ""
        self._case_began = self._drawn = 0.0
        self._spent: list[float] = []
        self._reasons: set[str | None] = set()
        """Why cases were skipped so far."""

    def open(self, run: Run) -> None:
        self._plan = {planned.case.id: str(planned.case) for planned in run.plan}
        self._width = report.name_width(run.plan)
        self._print(report.headline(run), run)
        if self._console.is_terminal:
            self._live = Live(console=self._console, auto_refresh=False, transient=True)
            self._live.start()

    def start(self, start: Start) -> None:
        self._case, self._stage, self._case_began = self._plan[start.case_id], "start", time.monotonic()
        self.tick()

    def stage(self, start: Start, stage: Stage) -> None:
        self._stage, self._drawn = stage.value, 0.0
        self.tick()

    def record(self, record: Record) -> None:
        if record.case.id not in self.records and self._case:
            self._spent.append(time.monotonic() - self._case_began)
        self.records[record.case.id] = record
        if record.outcome == Outcome.SKIPPED and not self._as_json:
            if record.text in self._reasons:
                return  # a limit of seconds may skip hundreds; the last words count them
            self._reasons.add(record.text)
        self._print(report.record_line(record, self._width), record)

    def close(self, end: RunEnd) -> None:
        if self._live:
            self._live.stop()
            self._live = None
        if self._as_json:
            self._print("", end)

    def tick(self) -> None:
        """Redraw, if it is time to."""
        patience = _REDRAW_WHILE_TIMING_S if self._stage == Stage.TIME else _REDRAW_S
        if self._live and time.monotonic() - self._drawn >= patience:
            self._drawn = time.monotonic()
            self._live.update(self._table(), refresh=True)

    def say(self, text: str) -> None:
        """Say something beside the results."""
        self._console.print(escape(text)) if self._live else print(text, file=sys.stderr)

    def _print(self, text: str, line: Run | Record | RunEnd) -> None:
        if self._as_json:
            print(line.model_dump_json(), flush=True)
        elif self._live and sys.stdout.isatty():
            self._console.print(escape(text))
        else:
            print(text, flush=True)

    def _table(self) -> Table:
        table = Table(box=None, padding=(0, 2, 0, 0))
        for column in ("case", "stage", "elapsed", "done", "expected finish"):
            table.add_column(column, style="dim")
        elapsed = time.monotonic() - self._case_began if self._case else 0.0
        done = f"{len(self.records)} of {len(self._plan)}"
        table.add_row(escape(self._case), self._stage, f"{elapsed:.0f} s", done, self._expected(elapsed))
        return table

    def _expected(self, elapsed: float) -> str:
        if not self._spent:
            return "after the first case"
        mean = sum(self._spent) / len(self._spent)
        left = len(self._plan) - len(self.records)
        seconds = max(0.0, mean * left - min(elapsed, mean))
        return f"{datetime.now() + timedelta(seconds=seconds):%H:%M:%S}"
