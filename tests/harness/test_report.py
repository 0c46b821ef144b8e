"""Text: what a terminal shows of a result, and nothing that could steer the terminal."""

from __future__ import annotations

import pytest

from harness import report
from harness.record import Accuracy, EndReason, Leaf, Outcome, Reference
from harness.stats import Estimate
from harness.summary import summarise
from tests.server.factory import make_case, make_record, make_run


def test_pass_line() -> None:
    """A pass shows speedup with interval, both times, and compile seconds."""
    line = report.record_line(make_record(make_case("mlp"), speedup=1.42))

    assert line.startswith("  toy/mlp inference fp32   1.42x [")
    assert " -> " in line
    assert "compile" in line


@pytest.mark.parametrize(
    ("eager_s", "compiled_s", "text"),
    [(3.114e-3, 2.19e-3, "3.11 -> 2.19 ms"), (1.5, 0.5, "1.50 -> 0.50 s"), (12.34e-6, 120e-6, "12.3 -> 120 us")],
)
def test_times_share_a_unit(eager_s: float, compiled_s: float, text: str) -> None:
    """Both times are in the unit that suits eager, with three significant digits."""
    assert report.times(eager_s, compiled_s) == text


def test_failure_names_leaf_and_numbers() -> None:
    """A failed check names the leaf, its error and what was allowed."""
    record = make_record(make_case(), Outcome.FAIL_ACCURACY)
    leaf = Leaf(name="gradient.fc.weight", error=0.031, allowed=0.01)
    accuracy = Accuracy(reference=Reference.FLOAT64, tolerance=0.01, leaves=9, failed_count=1, failed=(leaf,))

    assert report.cause(record.model_copy(update={"accuracy": accuracy})) == (
        "gradient.fc.weight: error 0.031, allowed 0.01"
    )


def test_escapes_are_inert() -> None:
    """Control characters in a model's words do not reach the terminal, and only one line does."""
    record = make_record(make_case(), Outcome.CRASH).model_copy(update={"text": "bad \x1b[2J\x07 news\nsecond line"})

    assert report.cause(record) == "bad ?[2J? news"


def test_summary_names_pass_rate_mean_and_left_out() -> None:
    """The last lines give pass rate, geometric mean with interval, left-out models, and what stands beside it."""
    run = make_run(3)
    a, b, _ = (planned.case for planned in run.plan)
    records = {r.case.id: r for r in (make_record(a, speedup=2.0), make_record(b, Outcome.CRASH))}
    lines = report.summary_lines(run, records, summarise(run.plan, records), EndReason.INTERRUPTED, "runs/x.jsonl")
    text = "\n".join(lines)

    assert "1 of 3 passed (33%); 1 crash, 1 missing" in text
    assert "geometric mean: 2.00x [" in text
    assert f"left out: {b.model} (crash)" in text
    assert "skipped 0, missing 1, crashed 1. Records: runs/x.jsonl" in text
    assert f"--resume {run.id}" in text


def test_no_mean_says_why() -> None:
    """Where every row is emulated the mean is none, with their number."""
    run = make_run([make_case("a", precision="amp")])
    records = {run.plan[0].case.id: make_record(run.plan[0].case, emulated=True)}
    lines = report.summary_lines(run, records, summarise(run.plan, records), EndReason.FINISHED, "x")

    assert "  geometric mean: none (1 emulated)" in lines


def test_speedup_text() -> None:
    """A speedup is written with its interval."""
    assert report.speedup(Estimate(1.424, 1.38, 1.4699, 40, "m")) == "1.42x [1.38, 1.47]"
