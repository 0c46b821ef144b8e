"""One metric, judged: better, worse, the same, or not to be told."""

from __future__ import annotations

import math

import numpy as np
import pytest

from harness import stats
from harness.compare_judge import JUDGEMENTS, Ground, Judgement, judge, judge_all
from harness.compare_rules import TRAITS, Metric, Rules
from tests.harness.points import make_failure, make_point

FLOORS = (0.0, 0.005, 0.01, 0.02, 0.05, 0.1)


def judged_one(base, head, metric=Metric.SPEEDUP, rules=None):
    return judge_all([(base, head)], rules or Rules())[metric].at(0, base, head)


def grid():
    """Changes of a logarithm with the half-widths of their 95 % intervals, downwards and upwards."""
    widths = (0.0, 0.0031, 0.0107, 0.0233, 0.0611)
    found = [(log, down, up) for log in np.linspace(-0.1113, 0.1117, 57) for down in widths for up in widths]
    return np.array([*found, (0.0, 0.0, 0.0)]).T


def judged_grid(floor, metric=Metric.SPEEDUP):
    log, down, up = grid()
    base = [np.ones_like(log)] * 3
    head = [np.exp(log), np.exp(log - down), np.exp(log + up)]
    return [JUDGEMENTS[code] for code in judge(metric, base, head, floor).codes]


@pytest.mark.parametrize("floor", FLOORS)
def test_every_interval_has_one_judgement(floor):
    """A change needs a 95 % interval without zero and the size of the floor; the same, a 90 % interval within it."""
    limit, narrower = math.log1p(floor), 1.645 / 1.960
    for judgement, log, down, up in zip(judged_grid(floor), *grid(), strict=True):
        better = log >= limit and log - down > 0
        worse = log <= -limit and log + up < 0
        same = max(abs(log - narrower * down), abs(log + narrower * up)) <= limit
        expected = {Judgement.BETTER: better, Judgement.WORSE: worse, Judgement.SAME: same}
        expected[Judgement.INCONCLUSIVE] = not any(expected.values())

        assert [judgement] == [each for each, holds in expected.items() if holds], (log, down, up)


def test_grid_reaches_every_judgement():
    """Beside a floor of 2 % the grid holds every kind of point."""
    assert {*Judgement} - {Judgement.ABSENT} == {*judged_grid(0.02)}


def test_monotone_in_the_floor():
    """As the floor rises a change becomes inconclusive, then the same, and never comes back or turns round."""
    order = {Judgement.BETTER: 0, Judgement.WORSE: 0, Judgement.INCONCLUSIVE: 1, Judgement.SAME: 2}
    for each in zip(*(judged_grid(floor) for floor in FLOORS), strict=True):
        steps = [order[judgement] for judgement in each]
        assert sorted(steps) == steps, each
        assert not {Judgement.BETTER, Judgement.WORSE} <= {*each}


def test_interval_of_a_change():
    """Half-widths are added in squares, each end by itself: worked by hand."""
    base = make_point(speedup=2.0, speedup_low=1.9, speedup_high=2.2)
    head = make_point(speedup=1.5, speedup_low=1.4, speedup_high=1.55)

    found = judged_one(base, head)

    assert (Judgement.WORSE, Ground.INTERVAL, 2.0, 1.5) == (found.judgement, found.ground, found.base, found.head)
    assert (-0.25, 0.66675 - 1, 0.79708 - 1) == pytest.approx((found.change, found.low, found.high), abs=1e-5)


def test_errors_are_what_they_claim():
    """A true change of zero is called a change in fewer than 5 %, and one of the floor the same in fewer than 6 %."""
    random = np.random.default_rng(7)
    low, high = (rank - 1 for rank in stats.ranks(40))

    def sides(change, n=4000):
        """Speedups of 40 pairs each with a spread of 2 %, with their order-statistic intervals."""
        draws = [np.sort(random.normal(shift, 0.02, (n, 40)), axis=1) for shift in (0.0, change)]
        return [[np.exp(each) for each in (np.median(d, axis=1), d[:, low], d[:, high])] for d in draws]

    without = judge(Metric.SPEEDUP, *sides(0.0), 0.0)
    at_floor = judge(Metric.SPEEDUP, *sides(math.log1p(0.02)), 0.02)
    covered = np.mean((without.low <= 0) & (without.high >= 0))

    assert 0.95 <= covered < 0.99
    assert np.mean(at_floor.codes == JUDGEMENTS.index(Judgement.SAME)) < 0.06


@pytest.mark.parametrize(
    ("metric", "more"),
    [
        (Metric.SPEEDUP, Judgement.BETTER),
        (Metric.MEMORY_RATIO, Judgement.BETTER),
        (Metric.EAGER_TIME, Judgement.WORSE),
        (Metric.COMPILED_TIME, Judgement.WORSE),
        (Metric.COMPILE_TIME, Judgement.WORSE),
        (Metric.PEAK_MEMORY, Judgement.WORSE),
        (Metric.GRAPH_BREAKS, Judgement.WORSE),
    ],
)
def test_which_way_is_better(metric, more):
    """More is better for ratios, worse for times, bytes and breaks."""
    ends = dict.fromkeys(TRAITS[metric].ends or ())
    low, high = (make_point(**{metric.value: value, **ends}) for value in (2, 6))

    assert (more, more.mirrored) == (judged_one(low, high, metric).judgement, judged_one(high, low, metric).judgement)


def test_stated_figures():
    """Without an interval on both sides the figures are taken as they are, which is said: the floor itself counts."""
    base = make_point(speedup=2.00, speedup_low=None, speedup_high=None)
    at, below = make_point(speedup=2.04), make_point(speedup=2.0399)

    found, less = judged_one(base, at), judged_one(base, below)

    assert (Judgement.BETTER, Ground.STATED, None, None) == (found.judgement, found.ground, found.low, found.high)
    assert (Judgement.SAME, Ground.STATED) == (less.judgement, less.ground)


@pytest.mark.parametrize(("base", "head", "judgement"), [(0, 1, "worse"), (3, 0, "better"), (0, 0, "same")])
def test_counts(base, head, judgement):
    """Graph breaks are compared as they are: one more is worse, zero is a number, and nothing is divided by it."""
    found = judged_one(make_point(graph_breaks=base), make_point(graph_breaks=head), Metric.GRAPH_BREAKS)

    assert (judgement, Ground.COUNTED, base, head) == (found.judgement, found.ground, found.base, found.head)
    assert found.change is None


@pytest.mark.parametrize(
    ("base", "head", "why"),
    [
        (make_failure(), make_failure(), "neither side has one"),
        (make_point(), make_failure(), "the head has none"),
        (make_point(speedup=math.nan), make_point(), "the base has none"),
        (make_point(speedup=math.inf), make_point(), "the base has none"),
        (make_point(speedup=0.0), make_point(), "the base has 0, which has no ratio"),
        (make_point(), make_point(valid=False, text="recompiled"), "the head is not valid: recompiled"),
    ],
)
def test_absent(base, head, why):
    """Where a number is missing, zero, not finite or not valid there is no judgement, but the reason; never NaN."""
    found = judged_one(base, head)

    assert (Judgement.ABSENT, None, None, None, why) == (
        found.judgement,
        found.change,
        found.low,
        found.ground,
        found.why,
    )
    assert all(value is None or math.isfinite(value) for value in (found.base, found.head))


def test_floors_can_be_chosen():
    """A floor of one's own is used and said."""
    base, head = make_point(speedup=1.4, width=0.001), make_point(speedup=1.36, width=0.001)

    assert (Judgement.WORSE, 0.02) == (judged_one(base, head).judgement, judged_one(base, head).floor)
    wide = judged_one(base, head, rules=Rules(floors={Metric.SPEEDUP: 0.05}))
    assert (Judgement.SAME, 0.05) == (wide.judgement, wide.floor)


@pytest.mark.parametrize(
    "rules", [{"floors": {Metric.SPEEDUP: -0.1}}, {"floors": {Metric.SPEEDUP: math.nan}}, {"deciding": ()}]
)
def test_rules_that_make_no_sense(rules):
    """A floor below zero, or nothing that decides, is refused."""
    with pytest.raises(ValueError, match="floor|decide"):
        Rules(**rules)
