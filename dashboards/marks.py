"""Signs, letters and words for outcomes, states and flags: colour is never the only carrier."""

from __future__ import annotations

from dataclasses import dataclass

from harness.record import Flag, Level
from server.schemas import Estimate, Result, RunState, Status


@dataclass(frozen=True)
class Mark:
    """A sign, a letter and words."""

    sign: str
    letter: str
    words: str
    kind: str
    """Its colour: `good`, `warn`, `bad` or `quiet`."""


STATUS = {
    Status.PASS: Mark("✓", "P", "pass", "good"),
    Status.FAIL_ACCURACY: Mark("✕", "A", "accuracy", "bad"),
    Status.FAIL_TO_RUN: Mark("✕", "R", "fails to run", "bad"),
    Status.EAGER_FAIL_TO_RUN: Mark("✕", "E", "eager fails", "bad"),
    Status.EAGER_TWO_RUNS_DIFFER: Mark("?", "D", "eager runs differ", "bad"),
    Status.MODEL_FAIL_TO_LOAD: Mark("✕", "L", "fails to load", "bad"),
    Status.OOM: Mark("✕", "M", "out of memory", "bad"),
    Status.TIMEOUT: Mark("✕", "T", "time limit", "bad"),
    Status.CRASH: Mark("✕", "C", "crash", "bad"),
    Status.SKIPPED: Mark("–", "S", "skipped", "quiet"),
    Status.MISSING: Mark("?", "N", "missing", "bad"),
    Status.UNKNOWN: Mark("?", "U", "not known", "bad"),
    Status.WAITING: Mark("…", "W", "waiting", "quiet"),
    Status.RUNNING: Mark("▸", "G", "going on", "quiet"),
}

VERDICT = {"faster": "▲", "slower": "▼", "same": "≈"}

STATE = {
    RunState.RUNNING: Mark("▸", "", "in progress", "quiet"),
    RunState.FINISHED: Mark("✓", "", "finished", "good"),
    RunState.INTERRUPTED: Mark("–", "", "interrupted", "bad"),
    RunState.LOST: Mark("?", "", "stopped without a word", "bad"),
}

LEVEL = {
    Level.BAD: Mark("✕", "", "bad", "bad"),
    Level.WARNING: Mark("!", "", "warning", "warn"),
    Level.UNKNOWN: Mark("?", "", "unknown", "quiet"),
    Level.NOTE: Mark("•", "", "note", "quiet"),
    Level.GOOD: Mark("✓", "", "good", "good"),
}

DISTURBING = (Level.WARNING, Level.BAD)
"""Levels that a reader of a run's numbers should know of."""

FLAGS = {
    Flag.CORRELATED: "samples depend on each other",
    Flag.DRIFTING: "times drifted",
    Flag.OUTLIERS: "many outliers",
    Flag.IMPRECISE: "wide interval",
    Flag.RECOMPILED: "recompiled while timed",
    Flag.EMULATED: "emulated: this machine has no instructions for it",
    Flag.INSENSITIVE: "a wrong answer could go unnoticed",
    Flag.NOT_COLD: "a cache answered the compiler",
    Flag.NOT_COMPILED: "nothing was compiled",
    Flag.NOT_FINITE: "not finite after timing",
    Flag.NO_REFERENCE: "not checked",
    Flag.THROTTLED: "the clock was below 75 % of what it should be",
    Flag.UNLOCKED: "the clock was held and got lost",
    Flag.SHARED: "others used the device meanwhile",
}

GRAVE = (Flag.NOT_COMPILED, Flag.NO_REFERENCE, Flag.INSENSITIVE, Flag.RECOMPILED, Flag.NOT_FINITE)
"""Flags that make a pass prove little."""

_EDGES = ((1.5, 9), (1.25, 8), (1.1, 7))


def failed(status: Status) -> bool:
    """Whether a planned case ended, or will never end, without a pass."""
    return STATUS[status].kind == "bad"


def step(result: Result) -> int | None:
    """Return the colour step of a result's speedup, 1 slowest to 9 fastest; None where it says nothing.

    Inside its own interval around 1 a result is grey, 5, however far its value; a figure that others state without an
    interval has the step of its value.
    """
    speedup = result.speedup
    if speedup is None or not result.valid:
        return None
    return _step(speedup)


def _step(speedup: Estimate) -> int:
    low, high = speedup.bounds or (speedup.value, speedup.value)
    if low <= 1 <= high:
        return 5
    ratio, up = (speedup.value, True) if speedup.value > 1 else (1 / speedup.value, False)
    found = next((number for edge, number in _EDGES if ratio >= edge), 6)
    return found if up else 10 - found
