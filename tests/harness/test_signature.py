"""Failures of one cause have one signature."""

from __future__ import annotations

import pytest

from harness.record import Outcome, Stage
from harness.signature import LONGEST, signature


def test_numbers_paths_and_addresses_do_not_tell_failures_apart():
    """The same fault in another folder, at another address, with another shape has the same signature."""
    one = "RuntimeError: /tmp/a1/k.cpp:17: shape [2, 3, 224] at 0x7f01 took 1.5 s"
    other = "RuntimeError: /var/b/k.cpp:99: shape [8, 3] at 0xbeef took 20.25 s"

    found = {signature(Outcome.FAIL_TO_RUN, Stage.COMPILE, text) for text in (one, other)}

    assert {"fail_to_run at compile: RuntimeError: k.cpp:#: shape [#, ...] at 0x* took # s"} == found


@pytest.mark.parametrize("other", [(Outcome.CRASH, Stage.COMPILE, "x"), (Outcome.FAIL_TO_RUN, Stage.TIME, "x")])
def test_outcome_and_stage_tell_failures_apart(other):
    """The same words at another stage, or with another outcome, are another failure."""
    assert signature(Outcome.FAIL_TO_RUN, Stage.COMPILE, "x") != signature(*other)


@pytest.mark.parametrize("outcome", [Outcome.PASS, Outcome.SKIPPED, Outcome.MISSING])
def test_what_is_no_failure_has_none(outcome):
    """A case that passed, was skipped or never ran has no signature."""
    assert signature(outcome, None, "anything") is None


def test_only_the_first_line_counts_and_it_is_bounded():
    """A traceback below, or a first line of a megabyte, makes no signature of a megabyte."""
    assert "crash: no cause was given" == signature(Outcome.CRASH, None, "\n \n")
    assert "crash: a" == signature(Outcome.CRASH, None, "a\nb")
    assert LONGEST == len(signature(Outcome.CRASH, None, "a" * 10_000) or "")
