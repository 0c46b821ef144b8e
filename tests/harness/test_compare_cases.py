"""Pairs of files from public bug reports, compared: each answers as its `expect.json` asks."""

from __future__ import annotations

import json
import math
from dataclasses import asdict

import pytest

from harness.compare import Comparison, compare
from harness.compare_judge import Judgement
from harness.compare_rules import Metric
from harness.compare_values import change_values, cohort_values, comparison_values
from harness.limits import alarms
from harness.report_compare import Side, lines
from harness.report_markdown import markdown
from tests.harness.points import COLUMNS, expected, side

SIDES = Side("base", "a file"), Side("head", "a file")


def compared(folder: str, base: str = "base") -> Comparison:
    found = compare(side(folder, base), side(folder, "new"))
    assert isinstance(found, Comparison)
    return found


def test_different_model_sets():
    """s37: over the common models nothing changed and nothing alarms; each run's own mean is marked as of others."""
    found, wanted = compared("s37", "old"), expected("s37")
    (cohort,) = found.cohorts
    means = cohort.these

    assert wanted["common"] == len(cohort.members)
    assert (wanted["geomean_common_old"], wanted["geomean_common_new"]) == pytest.approx(
        (means.base.value, means.head.value), abs=1e-6
    )
    assert 1.0 == means.ratio.value
    assert (wanted["geomean_all_old"], wanted["geomean_all_new"]) == pytest.approx(
        [mean.value for mean in cohort.own], abs=1e-6
    )
    assert [5, 3] == [mean.n for mean in cohort.own]
    assert not cohort.same_models
    assert not found.against
    text = "\n".join(lines(found, *SIDES))
    assert "each side over its own models, which are not the same: 1.65x of 5 -> 1.17x of 3" in text
    assert "left out: net_d (only in the base), net_e (only in the base)" in text


def test_zero_or_missing_baseline():
    """s40: a zero that means failed is no baseline; the outcome says what happened, and nothing is NaN or infinite."""
    found = compared("s40")
    verdicts = {each.point.model: (each.verdict, each.outcome, each.against) for each in found.changes}

    words = {
        "unchanged (still failing, no alarm)": ("same", "same", False),
        "fixed": ("status_changed", "better", False),
        "newly failing (alarm)": ("status_changed", "worse", True),
        "missing": ("only_left", "absent", False),
        "new (no alarm)": ("only_right", "absent", False),
        "unchanged": ("same", "same", False),
    }
    assert {model: words[word] for model, word in expected("s40")["verdicts"].items()} == verdicts
    (still,) = (each.why for each in found.changes if each.point.model == "net_zero_zero")
    assert "still fail_to_run" == still
    values = [
        comparison_values(found, *map(asdict, SIDES)),
        *map(change_values, found.changes),
        *map(cohort_values, found.cohorts),
    ]
    shown = "\n".join([json.dumps(values, allow_nan=False), *lines(found, *SIDES), markdown(found, *SIDES)])
    assert not {"nan", "inf", "infinity"} & {*shown.lower().replace("+", " ").replace("-", " ").split()}


def test_which_way_is_better():
    """s41: ratios are better the larger, times and bytes the smaller."""
    (change,) = compared("s41").changes
    found: dict[str, set[str]] = {Judgement.WORSE: set(), Judgement.BETTER: set()}
    for column, (field, _) in COLUMNS.items():
        found[change.judgement(Metric(field))].add(column)

    assert {judgement: {*columns} for judgement, columns in expected("s41").items()} == found


def test_exactly_at_the_limit():
    """s42: at a limit is no alarm, just beyond is one, and a failure that was there before is not new."""
    ours = {"accuracy": "outcome", "speedup": "speedup"}
    ours |= {"compression_ratio": "memory_ratio", "compilation_latency": "compile_wall_s"}
    old = {point.model: point for point in side("s42", "base")}
    found = {head.model: [each.crossed.value for each in alarms(old[head.model], head)] for head in side("s42", "new")}

    assert {model: [ours[word] for word in words] for model, words in expected("s42")["alarms"].items()} == found
    assert all(math.isfinite(a.limit) for head in side("s42", "new") for a in alarms(old[head.model], head) if a.limit)
