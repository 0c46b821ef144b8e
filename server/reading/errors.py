"""What cannot be answered."""

from __future__ import annotations

from harness.errors import BenchError, UsageError


class NotFound(BenchError):
    """There is no such run or record; the message says what there is."""


class BadQuestion(UsageError):
    """The question contradicts itself, goes on from nowhere, or asks for too much at once."""


class NotComparable(UsageError):
    """Both sides are there, and nothing can be said of their difference."""


class NotInstalled(UsageError):
    """What was asked for needs a library that this server does not have."""
