"""Means of many models, over those that are valid on both sides."""

from __future__ import annotations

import math

import pytest

from harness.compare import Comparison, compare
from harness.stats import Estimate, NoEstimate
from tests.harness.points import make_failure, make_point


def cohorts_of(base, head, families=None):
    found = compare(base, head, families=families)
    assert isinstance(found, Comparison)
    return found.cohorts


def test_common_models_alone():
    """A mean is over the models that are valid on both sides; every other one is named with its reason."""
    base = [make_point("a", 2.0), make_point("b", 8.0), make_point("c"), make_point("d"), make_failure("e")]
    head = [make_point("a", 1.0), make_point("b", 4.0), make_failure("c"), make_failure("e"), make_point("f")]
    head.append(make_point("d", valid=False, text="recompiled"))

    (cohort,) = cohorts_of(base, head)

    assert ["a", "b"] == [change.point.model for change in cohort.members]
    assert (4.0, 2.0, 0.5) == pytest.approx(
        [each.value for each in (cohort.these.base, cohort.these.head, cohort.these.ratio)]
    )
    assert {
        "c": "fail_to_run in the head",
        "d": "not valid (recompiled) in the head",
        "e": "fail_to_run on both sides",
        "f": "only in the head",
    } == {left.model: left.why for left in cohort.left_out}


def test_interval_of_these_models():
    """The errors of the ratios are added in squares, each from both its sides: four ends of 1 % over two models."""
    base, head = ([make_point(name, speedup) for name in "ab"] for speedup in (1.4, 1.4))

    (cohort,) = cohorts_of(base, head)

    ratio = cohort.these.ratio
    half = math.sqrt(2 * (math.log(1.01) ** 2 + math.log(0.99) ** 2)) / 2
    assert isinstance(ratio, Estimate)
    assert (1.0, math.exp(-half), math.exp(half)) == pytest.approx((ratio.value, ratio.low, ratio.high))


def test_interval_of_models_like_these():
    """The interval for other models draws whole families; without families there is none, with the reason."""
    names = [f"m{number}" for number in range(24)]
    base = [make_point(name) for name in names]
    head = [make_point(name, 1.4 * (1 + (number % 8) / 50)) for number, name in enumerate(names)]
    each_its_own = {f"toy/{name}": name for name in names}
    eight = {f"toy/{name}": str(number % 8) for number, name in enumerate(names)}
    (alone,), (grouped,), (unknown,) = (cohorts_of(base, head, each) for each in (each_its_own, eight, None))

    assert isinstance(alone.like_these.ratio, Estimate)
    assert isinstance(grouped.like_these.ratio, Estimate)
    wide, narrow = (e.high - e.low for e in (grouped.like_these.ratio, alone.like_these.ratio))
    assert wide > 1.3 * narrow
    assert NoEstimate("the families of these models are not known") == unknown.like_these.ratio


def test_suites_and_configurations_are_not_mixed():
    """Every suite in every configuration has means of its own, in the order of the cases."""
    points = [make_point(), make_point(case_id="2", label="training fp32"), make_point(case_id="3", suite="timm")]

    found = cohorts_of(points, points)

    assert [("toy", "inference fp32"), ("toy", "training fp32"), ("timm", "inference fp32")] == [
        (cohort.suite, cohort.label) for cohort in found
    ]


@pytest.mark.parametrize("gone", ["a", "b"])
def test_removing_a_model_changes_no_other(gone):
    """A model that one side lacks leaves both sides' means; those of the rest are as before, to the digit."""
    names = [name for name in "abcdef" if name != gone]
    base, head = ([make_point(name, 1 + ord(name) % 7 / s) for name in "abcdef"] for s in (4, 5))

    (less,) = cohorts_of(base, [point for point in head if point.model != gone])
    (alone,) = cohorts_of(*([point for point in side if point.model in names] for side in (base, head)))

    assert less.these == alone.these
    assert not less.same_models
    assert alone.same_models
    assert [gone] == [left.model for left in less.left_out]


def test_nothing_is_common():
    """Without a common model there is no mean, and the sides' own means stay apart."""
    (cohort,) = cohorts_of([make_point("a", 2.0)], [make_point("b", 3.0)])

    assert isinstance(cohort.these.ratio, NoEstimate)
    assert (2.0, 3.0) == pytest.approx([each.value for each in cohort.own])
    assert not cohort.same_models
