"""A stored summary says what `harness.summary` counts."""

from __future__ import annotations

import json

from harness.record import Flag, Outcome
from tests.server import factory
from tests.server.reading import rows


def test_outcomes_add_up_to_the_plan(store, url):
    """Every planned case is in exactly one outcome, those without a record in `missing`."""
    run = factory.make_run(4)
    store.open(run)

    store.save([factory.make_record(run.plan[0].case), factory.make_record(run.plan[1].case, Outcome.TIMEOUT)])

    ((outcomes, planned, passed, missing),) = rows(
        url, "SELECT CAST(outcomes AS TEXT), planned, passed, missing FROM summary"
    )
    assert {"pass": 1, "timeout": 1, "missing": 2} == json.loads(outcomes)
    assert (4, 1, 2) == (planned, passed, missing)


def test_unchecked_are_counted(store, url):
    """A case that was held against nothing is counted beside the passes, not among them."""
    run = factory.make_run(2)
    store.open(run)

    store.save(
        [factory.make_record(run.plan[0].case, flags=[Flag.NO_REFERENCE]), factory.make_record(run.plan[1].case)]
    )

    assert [(1, 1)] == rows(url, "SELECT unchecked, passed FROM summary")


def test_models_left_out_are_named(store, url):
    """Each planned case outside the geometric mean stands in the list with its reason."""
    run = factory.make_run(4, skip={"model_3": "no such device"})
    store.open(run)

    emulated = factory.make_record(run.plan[1].case, speedup=8.9, emulated=True)
    store.save([factory.make_record(run.plan[0].case), emulated])

    ((left_out,),) = rows(url, "SELECT CAST(left_out AS TEXT) FROM summary")
    assert {
        "model_1": "bfloat16 is emulated on this machine",
        "model_2": "missing",
        "model_3": "no such device",
    } == {each["model"]: each["why"] for each in json.loads(left_out)}


def test_case_skipped_by_its_plan_counts_as_skipped(store, url):
    """A case that the plan skips is skipped from the first moment, in the summary and in the run's counts."""
    store.open(factory.make_run(2, skip={"model_0": "no such device"}))

    assert [(2, 1, 1)] == rows(url, "SELECT planned, skipped, missing FROM summary")
    assert [(2, 1, 1)] == rows(url, "SELECT planned, skipped, missing FROM run")
