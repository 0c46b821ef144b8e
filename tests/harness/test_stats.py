"""What the statistics promise, on published and hand-worked numbers."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.stats import (
    BLOCK_MEDIANS,
    CLUSTER_BOOTSTRAP,
    GEOMETRIC_MEAN,
    ORDER_STATISTICS,
    PLAIN_MEAN,
    STATED,
    Estimate,
    NoEstimate,
    Outliers,
    break_even,
    cluster_interval,
    detectable,
    drifts,
    geometric_mean,
    half_width,
    lag1,
    log_ratios,
    median,
    outliers,
    quartiles,
    rank_test,
    ranks,
    share_at_least_one,
    speedup,
    t_quantile,
    wilson,
)

LOWER_RANKS = {
    6: 1, 7: 1, 8: 1, 9: 2, 10: 2, 11: 2, 12: 3, 13: 3, 14: 3, 15: 4, 16: 4, 17: 5, 18: 5, 19: 5, 20: 6, 21: 6, 22: 6,
    23: 7, 24: 7, 25: 8, 26: 8, 27: 8, 28: 9, 29: 9, 30: 10, 40: 14,
}  # fmt: skip
"""Rank of the lower end of the 95 % interval of a median, as in the tables of textbooks (sign test, two-sided)."""

times = st.floats(1e-6, 1e3)
pairs = st.lists(st.tuples(times, times), min_size=6, max_size=39)


def estimate(answer: Estimate | NoEstimate) -> Estimate:
    assert isinstance(answer, Estimate), answer
    return answer


def sides(pairs: Sequence[tuple[float, float]]) -> tuple[list[float], list[float]]:
    return [eager for eager, _ in pairs], [compiled for _, compiled in pairs]


def noisy(rng: np.random.Generator, n: int, correlation: float = 0.0) -> np.ndarray:
    """Log ratios of spread 2 % around none, each leaning on the one before."""
    noise = rng.normal(0.0, 0.02, n)
    for i in range(1, n):
        noise[i] = correlation * noise[i - 1] + math.sqrt(1 - correlation**2) * noise[i]
    return noise


# -- one run ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "lower"), LOWER_RANKS.items())
def test_ranks(n: int, lower: int) -> None:
    """The interval of a median runs from the k-th smallest to the k-th largest sample, k from the published table."""
    assert (lower, n + 1 - lower) == ranks(n)


@pytest.mark.parametrize("n", range(6))
def test_no_ranks(n: int) -> None:
    """Five samples or fewer have no 95 % interval: even all of them cover only 93.75 %."""
    assert ranks(n) is None


def test_speedup_by_hand() -> None:
    """Ten pairs, ratios 1.1 to 2.0: the median lies midway of 1.5 and 1.6 in logarithms, from the 2nd to the 9th."""
    ratios = [1.4, 2.0, 1.1, 1.7, 1.2, 1.5, 1.9, 1.3, 1.8, 1.6]

    answer = estimate(speedup(ratios, [1.0] * 10))

    assert math.sqrt(1.5 * 1.6) == pytest.approx(answer.value, rel=1e-12)
    assert (1.2, 1.9) == (pytest.approx(answer.low), pytest.approx(answer.high))
    assert (10, ORDER_STATISTICS) == (answer.n, answer.method)


def test_ties() -> None:
    """Tied samples are samples: six equal pairs have an interval of no width."""
    answer = estimate(speedup([3.0] * 6, [2.0] * 6))

    assert 1.5 == pytest.approx(answer.value)
    assert answer.low == answer.value == answer.high


def test_median_of_times() -> None:
    """The median of times has the same interval, in seconds."""
    assert Estimate(4.0, 1.0, 7.0, 7, ORDER_STATISTICS) == median([4.0, 1.0, 7.0, 2.0, 6.0, 3.0, 5.0])


@pytest.mark.parametrize("n", [6, 10, 20, 40, 80])
def test_coverage(n: int) -> None:
    """Over 2,000 seeded draws the interval holds the true speedup in 93.5 to 98 % of them."""
    rng = np.random.default_rng(n)
    covered = 0
    for _ in range(2000):
        answer = estimate(speedup((1.3 * np.exp(rng.normal(0, 0.03, n))).tolist(), [1.0] * n))
        covered += answer.low <= 1.3 <= answer.high

    assert 0.935 <= covered / 2000 <= (0.985 if n in (6, 10) else 0.98)  # exact at 6 and 10: 96.9 and 97.9 %


@pytest.mark.parametrize("correlation", [0.3, 0.5])
def test_coverage_of_correlated_pairs(correlation: float) -> None:
    """Where neighbours are alike, medians of four bring back the coverage that the plain interval loses."""
    rng = np.random.default_rng(7)
    blocked, plain = 0, 0
    low, high = ranks(80) or (0, 0)
    for _ in range(1000):
        noise = noisy(rng, 80, correlation)
        ordered = np.sort(noise)
        plain += ordered[low - 1] <= 0 <= ordered[high - 1]
        answer = estimate(speedup(np.exp(noise).tolist(), [1.0] * 80))
        blocked += answer.low <= 1.0 <= answer.high

    assert plain / 1000 < 0.925
    assert plain / 1000 + 0.01 < blocked / 1000
    assert 0.91 <= blocked / 1000


def test_blocks() -> None:
    """From 40 pairs on, a lag-1 correlation above 0.2 gives the interval of block medians, and its name says so."""
    wave = np.exp(0.01 * np.sin(np.arange(44) / 3)).tolist()

    assert BLOCK_MEDIANS == estimate(speedup(wave, [1.0] * 44)).method
    assert ORDER_STATISTICS == estimate(speedup(wave[:39], [1.0] * 39)).method


def test_blocks_by_hand() -> None:
    """Forty pairs in ten runs of four equal ratios: the interval is the 2nd to the 9th of the ten levels."""
    levels = [1.0, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7, 1.8, 1.9]

    answer = estimate(speedup([level for level in levels for _ in range(4)], [1.0] * 40))

    assert (1.1, 1.8) == (pytest.approx(answer.low), pytest.approx(answer.high))
    assert 40 == answer.n


@given(pairs)
def test_sides_swapped(pairs: list[tuple[float, float]]) -> None:
    """Changing sides inverts the ratio and mirrors the interval."""
    eager_s, compiled_s = sides(pairs)

    there, back = estimate(speedup(eager_s, compiled_s)), estimate(speedup(compiled_s, eager_s))

    assert 1 / there.value == pytest.approx(back.value, rel=1e-15)
    assert (1 / there.high, 1 / there.low) == (pytest.approx(back.low, rel=1e-15), pytest.approx(back.high, rel=1e-15))
    assert (np.asarray(log_ratios(eager_s, compiled_s)) == -np.asarray(log_ratios(compiled_s, eager_s))).all()


@given(pairs, st.floats(1e-3, 1e3))
def test_sides_scaled(pairs: list[tuple[float, float]], factor: float) -> None:
    """A machine any number of times slower on both sides gives the same speedup."""
    eager_s, compiled_s = sides(pairs)

    plain = estimate(speedup(eager_s, compiled_s))
    scaled = estimate(speedup([factor * s for s in eager_s], [factor * s for s in compiled_s]))

    for name in ("value", "low", "high"):
        assert getattr(plain, name) == pytest.approx(getattr(scaled, name), rel=1e-12)


@given(pairs, st.randoms(use_true_random=False))
def test_pairs_permuted(pairs: list[tuple[float, float]], rng) -> None:
    """The order of the pairs does not matter, where they are not correlated."""
    shuffled = rng.sample(pairs, len(pairs))

    assert speedup(*sides(pairs)) == speedup(*sides(shuffled))


def test_shared_drift() -> None:
    """A host that gets slower by 40 % changes nothing for pairs; the unpaired interval swells, and in blocks of one
    side each an unpaired test calls equal code different."""
    rng = np.random.default_rng(3)
    n = 30
    eager, compiled = np.exp(rng.normal(0, 0.005, n)), np.exp(rng.normal(0, 0.005, n))
    weather = np.linspace(1.0, 1.4, 2 * n)

    still = estimate(speedup(eager.tolist(), compiled.tolist()))
    drifted = estimate(speedup((eager * weather[::2]).tolist(), (compiled * weather[::2]).tolist()))
    blocked = scipy.stats.ttest_ind(eager * weather[:n], compiled * weather[n:]).pvalue

    assert still.value == pytest.approx(drifted.value, rel=1e-12)
    assert (still.low, still.high) == (pytest.approx(drifted.low, rel=1e-12), pytest.approx(drifted.high, rel=1e-12))
    assert blocked < 1e-6


@pytest.mark.parametrize("bad", [0.0, -1.0, math.inf, -math.inf, math.nan])
@pytest.mark.parametrize("side", [0, 1])
def test_bad_sample(bad: float, side: int) -> None:
    """One zero, negative, infinite or missing time among good ones: no number, and the reason."""
    given = [[1.0] * 10, [1.0] * 10]
    given[side][4] = bad

    answer = speedup(given[0], given[1])

    assert isinstance(answer, NoEstimate)
    assert "not finite" in answer.reason or "not positive" in answer.reason
    assert isinstance(median(given[side]), NoEstimate)


@pytest.mark.parametrize(("n", "count"), [(0, "0 pairs"), (1, "1 pair"), (2, "2 pairs"), (5, "5 pairs")])
def test_too_few_pairs(n: int, count: str) -> None:
    """Fewer than six pairs: no number, and the reason."""
    assert NoEstimate(f"{count}, at least 6 are needed") == speedup([1.0] * n, [1.0] * n)
    assert isinstance(median([1.0] * n), NoEstimate)


@pytest.mark.parametrize("lengths", [(6, 7), (0, 1), (7, 6)])
def test_unpaired(lengths: tuple[int, int]) -> None:
    """Sides of different lengths are no pairs: a mistake of the caller."""
    with pytest.raises(ValueError, match="cannot be paired"):
        speedup([1.0] * lengths[0], [1.0] * lengths[1])


@given(st.lists(st.floats(), max_size=12))
def test_never_a_bad_number(samples: list[float]) -> None:
    """Whatever the samples, an estimate is finite and positive, and its interval holds its value."""
    answer = median(samples)

    if isinstance(answer, Estimate):
        assert 0 < answer.low <= answer.value <= answer.high < math.inf


def test_half_width() -> None:
    """The half-width is a share of the value."""
    assert 0.1 == pytest.approx(half_width(Estimate(2.0, 1.8, 2.2, 20, ORDER_STATISTICS)))


def test_break_even() -> None:
    """30 s of compiling, 5 ms gained a step: 6,000 steps; nothing gained: never."""
    assert 6000 == pytest.approx(break_even(30.0, 0.015, 0.010))
    assert break_even(30.0, 0.010, 0.010) is None
    assert break_even(30.0, 0.010, 0.015) is None


# -- doubts -----------------------------------------------------------------------------------


def test_lag1() -> None:
    """1, 2, 3, 4, 5: deviations -2 ... 2, neighbours' products 4 of 10; constant or too few: none."""
    assert 0.4 == pytest.approx(lag1([1.0, 2.0, 3.0, 4.0, 5.0]))
    assert -1.0 < lag1([1.0, -1.0] * 10) < -0.9
    assert 0.0 == lag1([2.0] * 9) == lag1([1.0, 2.0]) == lag1([])


def test_outliers_by_hand() -> None:
    """1 ... 9 and two far values: median 6, MAD 3; 25 is 6.3 MAD away (mild), 60 is 18 (severe)."""
    assert Outliers(mild=1, severe=1, n=11) == outliers([1.0, 2, 3, 4, 5, 6, 7, 8, 9, 25, 60])


def test_outliers_of_equal_samples() -> None:
    """More than half equal, so the MAD is zero: the mean deviation judges, and equal samples hold no outlier."""
    assert Outliers(0, 0, 20) == outliers([1.0] * 20)
    assert outliers([1.0] * 39 + [2.0]).severe == 1
    assert Outliers(0, 0, 0) == outliers([])


@pytest.mark.parametrize(
    ("counted", "warn"),
    [(Outliers(1, 0, 20), False), (Outliers(2, 0, 20), True), (Outliers(0, 1, 160), True), (Outliers(0, 0, 6), False)],
)
def test_outlier_warning(counted: Outliers, warn: bool) -> None:
    """More than 5 % mild outliers or a severe one call for a warning."""
    assert warn is counted.warn


def test_outliers_are_rare() -> None:
    """Of clean normal series of 20, few carry a warning."""
    rng = np.random.default_rng(0)
    warned = sum(outliers(rng.normal(size=20)).warn for _ in range(1000))

    assert warned < 60


@pytest.mark.parametrize(("a", "b"), [(2, 2), (6, 6), (3, 9), (10, 7), (13, 13), (53, 53)])
@pytest.mark.parametrize("tied", [False, True])
def test_rank_test(a: int, b: int, tied: bool) -> None:
    """The rank test agrees with scipy's, exact and normal, with and without ties."""
    rng = np.random.default_rng(a * b)
    method = "exact" if max(a, b) <= 10 and not tied else "asymptotic"
    for _ in range(20):
        first, second = rng.normal(size=a), rng.normal(0.8, size=b)
        if tied:
            first, second = first.round(), second.round()
            if len({*first, *second}) == a + b:
                continue

        theirs = scipy.stats.mannwhitneyu(first, second, method=method).pvalue

        assert theirs == pytest.approx(rank_test(first, second), abs=1e-12)


def test_rank_test_of_equal_samples() -> None:
    """All samples equal: nothing speaks against equality."""
    assert 1.0 == rank_test([1.0] * 6, [1.0] * 6)


def test_drift() -> None:
    """A series that climbs drifts; one that only jitters seldom does; a short one cannot."""
    rng = np.random.default_rng(1)

    assert drifts(np.linspace(1.0, 1.1, 20))
    assert not drifts([1.0] * 20)
    assert not drifts([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    assert sum(drifts(rng.normal(size=60)) for _ in range(1000)) <= 20
    assert not drifts([])


# -- launches ---------------------------------------------------------------------------------


@pytest.mark.parametrize("freedom", [1, 2, 3, 4, 8, 9, 38, 199])
def test_t_quantile_against_scipy(freedom: int) -> None:
    """Points of Student's t agree with scipy's, in both tails, for even and odd degrees of freedom."""
    shares = [0.001, 0.025, 0.2, 0.5, 0.8, 0.975, 0.9995]

    expected = pytest.approx(scipy.stats.t.ppf(shares, freedom), rel=1e-10, abs=1e-10)
    assert expected == [t_quantile(share, freedom) for share in shares]


def test_detectable_by_hand() -> None:
    """Five launches a side, spread 1 %: (2.306 + 0.889) * 1 % * sqrt(2/5) = 2.02 %."""
    assert 0.0202 == pytest.approx(detectable(0.01, 5), abs=5e-5)


@pytest.mark.parametrize("launches", [3, 5, 10, 30])
def test_detectable_has_its_power(launches: int) -> None:
    """A change of the size named is found with 80 %, as the exact noncentral distribution has it, to 1 %."""
    freedom = 2 * launches - 2
    critical, shift = scipy.stats.t.ppf(0.975, freedom), detectable(0.03, launches) / (0.03 * math.sqrt(2 / launches))

    found = scipy.stats.nct.sf(critical, freedom, shift) + scipy.stats.nct.cdf(-critical, freedom, shift)

    assert 0.8 == pytest.approx(found, abs=0.01)


def test_more_launches_see_smaller_changes() -> None:
    """What can be seen shrinks with the number of launches and grows with their spread in proportion."""
    assert detectable(0.01, 10) < detectable(0.01, 5) < detectable(0.01, 2)
    assert 2 * detectable(0.01, 5) == pytest.approx(detectable(0.02, 5))


# -- many models ------------------------------------------------------------------------------


def test_geometric_mean_by_hand() -> None:
    """1.0 and 4.0, both known to a factor of 1.1: mean 2.0, known to 1.1 to the power 1 / sqrt(2)."""
    models = [Estimate(1.0, 1 / 1.1, 1.1, 20, ORDER_STATISTICS), Estimate(4.0, 4 / 1.1, 4.4, 20, ORDER_STATISTICS)]

    answer = estimate(geometric_mean(models))

    factor = 1.1 ** (1 / math.sqrt(2))
    assert (2.0, 2.0 / factor, 2.0 * factor) == pytest.approx((answer.value, answer.low, answer.high))
    assert (2, GEOMETRIC_MEAN) == (answer.n, answer.method)


def test_geometric_mean_of_one() -> None:
    """The mean of one model is the model."""
    model = Estimate(1.25, 1.23, 1.27, 40, ORDER_STATISTICS)

    answer = estimate(geometric_mean([model]))

    assert (1.25, 1.23, 1.27) == pytest.approx((answer.value, answer.low, answer.high))


@given(st.lists(st.tuples(st.floats(0.1, 10), st.floats(1, 1.5), st.floats(1, 1.5)), min_size=1, max_size=20))
def test_geometric_mean_inverted(models: list[tuple[float, float, float]]) -> None:
    """Inverting every model inverts the mean and mirrors its interval."""
    there = estimate(geometric_mean([Estimate(v, v / down, v * up, 20, "") for v, down, up in models]))
    back = estimate(geometric_mean([Estimate(1 / v, 1 / v / up, 1 / v * down, 20, "") for v, down, up in models]))

    assert (1 / there.value, 1 / there.high, 1 / there.low) == pytest.approx((back.value, back.low, back.high))


@pytest.mark.parametrize("bad", [0.0, -1.0, math.inf, math.nan])
def test_geometric_mean_of_bad_values(bad: float) -> None:
    """One value that is not positive and finite: no mean."""
    assert isinstance(geometric_mean([Estimate(bad, bad, bad, 20, "")]), NoEstimate)
    assert isinstance(geometric_mean([]), NoEstimate)


def test_geometric_mean_covers() -> None:
    """Of 300 sets of 30 measured models, the mean's interval holds the true mean in 93 % or more."""
    rng = np.random.default_rng(11)
    covered = 0
    for _ in range(300):
        ratios = np.exp(rng.normal(0, 0.03, (30, 20)))
        answer = estimate(geometric_mean([estimate(speedup(row.tolist(), [1.0] * 20)) for row in ratios]))
        covered += answer.low <= 1.0 <= answer.high

    assert 0.93 <= covered / 300


def test_cluster_interval() -> None:
    """Twenty families of one to five like models: the value is the plain geometric mean, the interval is wide."""
    rng = np.random.default_rng(5)
    families = [family for family in range(20) for _ in range(1 + family % 5)]
    level = np.exp(rng.normal(0.2, 0.25, 20))
    values = [float(level[family] * math.exp(rng.normal(0, 0.02))) for family in families]

    clustered = estimate(cluster_interval(values, families))
    single = estimate(cluster_interval(values, range(len(values))))

    assert math.exp(np.log(values).mean()) == pytest.approx(clustered.value)
    assert clustered.low < clustered.value < clustered.high
    assert half_width(single) < half_width(clustered)
    assert (60, CLUSTER_BOOTSTRAP) == (clustered.n, clustered.method)


def test_cluster_interval_is_deterministic() -> None:
    """The same models in any order give the same interval."""
    models = [(1.0 + i / 10, f"family {i % 7}") for i in range(21)]
    answers = {cluster_interval(*zip(*order, strict=True)) for order in (models, models[::-1], models[5:] + models[:5])}

    assert 1 == len(answers)


def test_cluster_interval_covers() -> None:
    """With 25 families the interval holds the mean of all such models in about 90 % of draws or more."""
    rng = np.random.default_rng(6)
    covered = 0
    for _ in range(300):
        answer = estimate(cluster_interval(np.exp(rng.normal(0, 0.3, 25)).tolist(), range(25), draws=1000))
        covered += answer.low <= 1.0 <= answer.high

    assert 0.9 <= covered / 300


def test_cluster_interval_refuses() -> None:
    """Too few families or a bad value: no interval; a family missing: a mistake of the caller."""
    assert isinstance(cluster_interval([1.0] * 9, ["a", "b", "c"] * 3), NoEstimate)
    assert isinstance(cluster_interval([1.0] * 8 + [0.0], range(9)), NoEstimate)
    assert isinstance(cluster_interval([], []), NoEstimate)
    with pytest.raises(ValueError, match="cannot belong"):
        cluster_interval([1.0, 2.0], ["a"])


def test_wilson() -> None:
    """155 of 163, from the published interval .906 to .975; none and all keep an interval inside 0 to 1."""
    answer, none, all_ = estimate(wilson(155, 163)), estimate(wilson(0, 10)), estimate(wilson(10, 10))

    assert (0.906, 0.975) == (round(answer.low, 3), round(answer.high, 3))
    assert (0.0, 0.278) == (none.low, round(none.high, 3))
    assert (0.722, 1.0) == (round(all_.low, 3), all_.high)
    assert NoEstimate("nothing was counted") == wilson(0, 0)
    with pytest.raises(ValueError, match="cannot have passed"):
        wilson(2, 1)


@settings(max_examples=30)
@given(st.integers(1, 500), st.data())
def test_wilson_agrees(n: int, data: st.DataObject) -> None:
    """Wilson's interval is scipy's, which has no opinion on the ends at none and all."""
    passed = data.draw(st.integers(0, n))

    answer = estimate(wilson(passed, n))

    theirs = scipy.stats.binomtest(passed, n).proportion_ci(method="wilson")
    assert (answer.low, answer.high) == (pytest.approx(theirs.low, abs=1e-9), pytest.approx(theirs.high, abs=1e-9))


def test_spread_of_models() -> None:
    """Quartiles are interpolated; 1.0 itself counts as not slower, and nothing is rounded before it is compared."""
    assert (2.0, 3.0, 4.0) == quartiles([5.0, 1.0, 4.0, 2.0, 3.0])
    assert 0.5 == share_at_least_one([1.0, 0.9999999, 1.5, 0.5])
    assert quartiles([]) is share_at_least_one([]) is None


@pytest.mark.parametrize("n", [6, 9])
def test_exactness(n: int) -> None:
    """Counted over all 2^n ways for samples to fall on either side of the median, the interval misses 5 % at most, and
    the next narrower one more."""
    low, high = ranks(n) or (0, 0)

    def misses(low: int, high: int) -> float:
        below = [sum(way) for way in itertools.product((0, 1), repeat=n)]
        return sum(count < low or count >= high for count in below) / len(below)

    assert misses(low, high) <= 0.05 < misses(low + 1, high - 1)


def test_mean_of_stated_figures() -> None:
    """Where one of the values comes without an interval the geometric mean has none, and says so."""
    stated = Estimate(2.0, None, None, None, STATED)
    measured = Estimate(0.5, 0.4, 0.6, 30, ORDER_STATISTICS)

    assert Estimate(pytest.approx(1.0), None, None, 2, PLAIN_MEAN) == geometric_mean([stated, measured])
    assert isinstance(geometric_mean([stated, replace(stated, value=0.0)]), NoEstimate)


def test_no_width_of_no_interval() -> None:
    """A figure of others has no half width, not one of zero."""
    with pytest.raises(ValueError, match="no interval"):
        half_width(Estimate(2.0, None, None, None, STATED))
