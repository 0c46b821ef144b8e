"""What failures of one cause have in common: their outcome, stage and first line without what differs by chance."""

from __future__ import annotations

import re

from harness.record import Outcome, Stage

LONGEST = 200
"""Characters of a signature; a first line can be a whole graph."""

_NO_FAILURE = (Outcome.PASS, Outcome.SKIPPED, Outcome.MISSING)

_CHANCE = (
    (re.compile(r"\b0x[0-9a-fA-F]+\b"), "0x*"),
    (re.compile(r"(?:[\w.~-]*/)+([\w.-]+)"), r"\1"),
    (re.compile(r"(?<!\w)\d+(?:\.\d+)?(?:e[+-]?\d+)?(?!\w)"), "#"),
    (re.compile(r"#(?:\s*,\s*#)+"), "#, ..."),
    (re.compile(r"\s+"), " "),
)
"""Addresses, folders, numbers, lists of numbers (shapes), runs of blanks."""


def signature(outcome: Outcome, stage: Stage | None, text: str | None) -> str | None:
    """Return a text that is equal for failures of one cause; None for what is no failure.

    Two runs of one fault differ in addresses, temporary folders, sizes and line numbers; those are blanked.
    """
    if outcome in _NO_FAILURE:
        return None
    line = (text or "").strip().partition("\n")[0].strip() or "no cause was given"
    for pattern, blank in _CHANCE:
        line = pattern.sub(blank, line)
    where = f"{outcome} at {stage}" if stage else outcome.value
    return f"{where}: {line}"[:LONGEST]
