"""Errors carry an exit code and help."""

from __future__ import annotations

from harness.errors import BenchError, UsageError, close_to


def test_exit_codes() -> None:
    """The harness that cannot work exits with 1, wrong usage with 2."""
    assert (BenchError("x").exit_code, UsageError("x").exit_code) == (1, 2)


def test_close_words() -> None:
    """Close words are named, nearest first; far ones are not."""
    assert close_to("resnet50x", ["resnet50", "resnet18", "vgg"]) == " Close: resnet50, resnet18."
    assert close_to("zzz", ["resnet50"]) == ""
