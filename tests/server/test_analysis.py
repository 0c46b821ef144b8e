"""Rows for analysis, on both databases."""

from __future__ import annotations

from datetime import timedelta

import pytest

from harness.record import Outcome
from server.analysis import METRICS, RESULT_COLUMNS, RUN_COLUMNS, TIMED, Analysis, Asked, series_columns
from tests.server import factory

RECORD = factory.make_record(factory.make_case("100%_sure"))


@pytest.fixture
def analysis(store):
    """A run of three cases: one is timed, one failed its check but was timed, one is missing."""
    run = factory.make_run([RECORD.case, factory.make_case("wrong"), factory.make_case("late")])
    store.open(run)
    timed = factory.make_record(run.plan[1].case)
    invalid = timed.derived.model_copy(update={"valid": False, "invalid_why": "it failed its check"})
    store.save([RECORD, timed.model_copy(update={"outcome": Outcome.FAIL_ACCURACY, "derived": invalid})])
    store.close(factory.make_end())
    return Analysis(store._engine)


def as_dict(columns, rows):
    return [dict(zip(columns, row, strict=True)) for row in rows]


def test_run(analysis):
    """A run is a row with the counts that the store keeps."""
    (run,) = as_dict(RUN_COLUMNS, analysis.runs(Asked()))

    assert (factory.RUN_ID, factory.BEGIN, "bench-1", 3, 1) == (
        run["run_id"],
        run["started_at"],
        run["host"],
        run["planned"],
        run["passed"],
    )
    assert run["source"] is None


def test_results(analysis):
    """A planned case is a row in the order of the plan, with its record's numbers or with none."""
    passed, failed, missing = as_dict(RESULT_COLUMNS, analysis.results(Asked()))

    assert (RECORD.id, "pass", True, 1.25) == (
        passed["record_id"],
        passed["status"],
        passed["valid"],
        passed["speedup"],
    )
    assert ("fail_accuracy", False, 1.25) == (failed["status"], failed["valid"], failed["speedup"])
    assert "missing" == missing["status"]
    assert {None} == {value for name, value in missing.items() if [*RESULT_COLUMNS].index(name) > 12}


@pytest.mark.parametrize("metric", METRICS)
def test_series(analysis, metric):
    """Every metric is a series; one that comes from samples has a value only where its times are valid."""
    columns = series_columns(metric)

    passed, failed = as_dict(columns, analysis.series(metric, Asked(words={"suite": ("toy",)})))

    stated = getattr(RECORD.numbers, metric)
    assert getattr(stated, "value", stated) == passed[metric] is not None
    assert (failed[metric] is None) == (metric in TIMED)
    assert (metric in TIMED) == (f"{metric}_low" in columns)
    assert passed["branch"] is None


def test_signs_in_a_name_are_no_pattern(analysis):
    """`*` and `?` are patterns, the signs that the database has for them are not."""
    for word, expected in {"100%_sure": 1, "100%*": 1, "%": 0, "_____": 0, "?????": 1, "WR*": 1}.items():
        assert expected == len([*analysis.series("graphs", Asked(words={"model": (word,)}))]), word


def test_times(analysis):
    """From `since` on, and up to and without `until`."""
    for since, until, expected in ((0, 1, 1), (1, 2, 0), (-1, 0, 0)):
        span = [factory.BEGIN + timedelta(hours=hours) for hours in (since, until)]
        assert expected == len([*analysis.runs(Asked(since=span[0], until=span[1]))])
