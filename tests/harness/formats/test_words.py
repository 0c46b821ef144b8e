"""Status words, both ways."""

from __future__ import annotations

import pytest

from harness.formats import words
from harness.record import Outcome, Side


@pytest.mark.parametrize(
    "word", ["0.0000", "1.5", "infra", "PASS", "", "fail_to_run_at_batch_", "fail_to_run_at_batch_x"]
)
def test_nobody_knows(word: str) -> None:
    """Numbers and words that are in no list mean nothing; nothing is guessed from how they begin."""
    assert words.meaning(word) is None


@pytest.mark.parametrize(
    ("word", "outcome", "side"),
    [
        ("pass_due_to_skip", Outcome.SKIPPED, None),
        ("eager_2nd_run_OOM", Outcome.OOM, Side.EAGER),
        ("OOM", Outcome.OOM, Side.COMPILED),
        ("fail_to_run_at_batch_8", Outcome.FAIL_TO_RUN, Side.COMPILED),
        ("fail_batch_invariance_at_2", Outcome.FAIL_ACCURACY, Side.COMPILED),
        ("not_bitwise_equivalent", Outcome.FAIL_ACCURACY, Side.COMPILED),
        ("infra_error", Outcome.CRASH, None),
    ],
)
def test_meaning(word: str, outcome: Outcome, side: Side | None) -> None:
    """A word says how a case ended, and on which side."""
    found = words.meaning(word)

    assert found is not None
    assert (outcome, side) == (found.outcome, found.side)


@pytest.mark.parametrize(
    "outcome", [each for each in Outcome if each not in (Outcome.MISSING, Outcome.UNKNOWN, Outcome.CRASH)]
)
@pytest.mark.parametrize("side", [None, *Side])
def test_both_ways(outcome: Outcome, side: Side | None) -> None:
    """The word that we write means the outcome that it was written for."""
    word = words.written(outcome, side)

    assert word is not None
    assert outcome == getattr(words.meaning(word), "outcome", None)


def test_no_word() -> None:
    """What never ran and what nobody knows has no word of upstream's; a crash is a failure to run there."""
    assert (None, None) == (words.written(Outcome.MISSING), words.written(Outcome.UNKNOWN))
    assert "fail_to_run" == words.written(Outcome.CRASH)
