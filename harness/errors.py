"""What the operator must mend. Shown without traceback: where, what, what to do.

    BenchError            exit code 1: the harness could not do its work
    └── UsageError        exit code 2: what was asked for does not exist or does not fit

A failing model is no error: it is an `Outcome` in a record.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


class BenchError(Exception):
    """The harness could not do its work; the message is a sentence with the remedy."""

    exit_code = 1


class UsageError(BenchError):
    """What was asked for is unknown, contradicts itself, or cannot be had on this machine."""

    exit_code = 2


def close_to(word: str, known: Iterable[str]) -> str:
    """Return ` Close: a, b.` for the known words nearest to `word`, or an empty string."""
    near = get_close_matches(word, list(known), n=3, cutoff=0.5)
    return f" Close: {', '.join(near)}." if near else ""
