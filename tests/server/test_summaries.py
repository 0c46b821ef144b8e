"""A summary's row says what `harness.summary` counted."""

from __future__ import annotations

from harness.record import Flag, Outcome
from server.summaries import skipped_record, summary_row
from tests.server import factory


def test_outcomes_add_up_to_the_plan():
    """Every planned case is in exactly one outcome, those without a record in `missing`."""
    run = factory.make_run(4)
    ended = [factory.make_record(run.plan[0].case), factory.make_record(run.plan[1].case, Outcome.TIMEOUT)]

    row = summary_row(run.plan, {record.case.id: record for record in ended})

    assert {"pass": 1, "timeout": 1, "missing": 2} == row["outcomes"]
    assert (4, 1, 2) == (row["planned"], row["passed"], row["missing"])


def test_unchecked_are_counted():
    """A case that was held against nothing is counted beside the passes, not among them."""
    run = factory.make_run(2)
    flags = ([Flag.NO_REFERENCE], [])
    records = [factory.make_record(p.case, flags=f) for p, f in zip(run.plan, flags, strict=True)]

    row = summary_row(run.plan, {record.case.id: record for record in records})

    assert (1, 1) == (row["unchecked"], row["passed"])


def test_models_left_out_are_named():
    """Each planned case outside the geometric mean stands in the list with its reason."""
    run = factory.make_run(3)
    records = [
        factory.make_record(run.plan[0].case),
        factory.make_record(run.plan[1].case, speedup=8.9, emulated=True),
    ]

    row = summary_row(run.plan, {record.case.id: record for record in records})

    assert {"model_1": "bfloat16 is emulated on this machine", "model_2": "missing"} == {
        each["model"]: each["why"] for each in row["left_out"]
    }


def test_case_skipped_by_its_plan_counts_as_skipped():
    """A case that the plan skips is skipped from the first moment, with the plan's reason."""
    run = factory.make_run(1, skip={"model_0": "no such device"})

    record = skipped_record(run.id, run.started_at, run.plan[0])

    assert (Outcome.SKIPPED, "no such device") == (record.outcome, record.text)
