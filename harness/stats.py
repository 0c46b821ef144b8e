"""Numbers in, `Estimate` out. Knows no record, imports no torch.

One run:     `speedup`, `median`, `break_even`; what casts doubt on it: `lag1`, `outliers`, `drifts`.
Launches:    `detectable`: the smallest change that comparing launches would find; `t_quantile`.
Many models: `geometric_mean` (these models), `cluster_interval` (models like these), `wilson`, `quartiles`.

Bad data (too few samples, zero, infinity, NaN) is an observation: the answer is `NoEstimate` with the reason,
never a number. Only a call that makes no sense, such as sides of different lengths, raises.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

LEAST = 6
"""Fewest samples with a 95 % interval of their median: with five, smallest to largest covers only 93.75 %."""

BLOCK = 4
"""Samples in one block where neighbours are correlated; medians of four restore the coverage."""

BLOCKED_FROM = 40
"""Fewest samples that are cut into blocks: ten block medians."""

CORRELATED = 0.2
"""Lag-1 autocorrelation above which the plain interval is too narrow."""

ORDER_STATISTICS = "median, order statistics"
BLOCK_MEDIANS = "median, order statistics of medians of four"
GEOMETRIC_MEAN = "geometric mean, independent errors"
PLAIN_MEAN = "geometric mean, no intervals"
STATED = "stated by others"
CLUSTER_BOOTSTRAP = "geometric mean, cluster bootstrap"
WILSON = "share, Wilson"

_Z95 = 1.959963984540054
"""97.5 % point of the normal distribution."""


@dataclass(frozen=True)
class Estimate:
    """A value with its 95 % interval, the number of samples behind it and the name of the method.

    Interval and number are None where others state the value and nothing more.
    """

    value: float
    low: float | None
    high: float | None
    n: int | None
    method: str

    @property
    def bounds(self) -> tuple[float, float] | None:
        """Lower and upper end of the interval; None without one."""
        return None if self.low is None or self.high is None else (self.low, self.high)


@dataclass(frozen=True)
class NoEstimate:
    """No number, and why."""

    reason: str


# -- one run ----------------------------------------------------------------------------------


def speedup(eager_s: Sequence[float], compiled_s: Sequence[float]) -> Estimate | NoEstimate:
    """Return how many times faster the compiled step is than the eager one.

    Exp of the median paired log ratio; exact 95 % order-statistic interval of that median, from medians of four
    where neighbours are correlated (docs/measuring.md). It covers the spread within one launch only.

    Args:
        eager_s, compiled_s: step times in seconds, paired, in the order taken.

    Returns:
        NoEstimate below six pairs, or where a time is zero, negative, infinite or NaN.

    Raises:
        ValueError: the lengths differ.
    """
    trouble = _trouble(eager_s, "pair") or _trouble(compiled_s, "pair")
    ratios = log_ratios(eager_s, compiled_s)
    if trouble:
        return NoEstimate(trouble)
    logs = _median(ratios)
    assert logs.bounds is not None, "a median of samples has an interval"
    low, high = map(math.exp, logs.bounds)
    return replace(logs, value=math.exp(logs.value), low=low, high=high)


def median(samples: Sequence[float]) -> Estimate | NoEstimate:
    """Return the median of positive samples with its exact 95 % order-statistic interval, as `speedup` does."""
    if trouble := _trouble(samples, "sample"):
        return NoEstimate(trouble)
    return _median(np.asarray(samples, dtype=np.float64))


def log_ratios(eager_s: Sequence[float], compiled_s: Sequence[float]) -> Floats:
    """Return ln(eager) - ln(compiled) of each pair; not finite where a time is not positive.

    Raises:
        ValueError: the lengths differ.
    """
    if len(eager_s) != len(compiled_s):
        raise ValueError(f"{len(eager_s)} eager times cannot be paired with {len(compiled_s)} compiled ones")
    with np.errstate(divide="ignore", invalid="ignore"):
        # A difference of logarithms, not the logarithm of a quotient: changing sides then changes the sign, exactly.
        return np.log(np.asarray(eager_s, dtype=np.float64)) - np.log(np.asarray(compiled_s, dtype=np.float64))


def half_width(estimate: Estimate) -> float:
    """Return half the width of the interval as a share of the value: 0.01 is +-1 %.

    Raises:
        ValueError: there is no interval.
    """
    if estimate.bounds is None:
        raise ValueError(f"{estimate.method}: there is no interval")
    low, high = estimate.bounds
    return (high - low) / (2.0 * estimate.value)


def break_even(compile_s: float, eager_s: float, compiled_s: float) -> float | None:
    """Return the steps after which compiling has paid for itself; None: never."""
    gain_s = eager_s - compiled_s
    return compile_s / gain_s if gain_s > 0 else None


def ranks(n: int) -> tuple[int, int] | None:
    """Return the ranks, from 1, of the samples that bound the median with at least 95 %; None below six samples.

    Of n samples, the number below the median is binomial with one half: the lower rank is the largest k with
    P(fewer than k) <= 2.5 %.
    """
    half = 1 << n
    tail, k = 0, 0
    while True:
        tail += math.comb(n, k)  # now the number of ways to have at most k below
        if 40 * tail > half:
            return (k, n + 1 - k) if k else None
        k += 1


def _median(values: Floats) -> Estimate:
    """The median of six values or more, in the order taken, with its interval."""
    blocked = len(values) >= BLOCKED_FROM and lag1(values) > CORRELATED
    blocks = np.array_split(values, len(values) // BLOCK) if blocked else []
    ordered = np.sort([np.median(block) for block in blocks] if blocked else values)
    bounds = ranks(len(ordered))
    assert bounds is not None, "callers refuse fewer than six values"
    value, low, high = float(np.median(values)), float(ordered[bounds[0] - 1]), float(ordered[bounds[1] - 1])
    # Only in contrived series does the median of all lie outside the interval of block medians; then that grows.
    method = BLOCK_MEDIANS if blocked else ORDER_STATISTICS
    return Estimate(value, min(low, value), max(high, value), len(values), method)


def _trouble(samples: Sequence[float], noun: str) -> str | None:
    """Why these samples have no estimate; None: they have one."""
    if len(samples) < LEAST:
        return f"{len(samples)} {noun}{'s' * (len(samples) != 1)}, at least {LEAST} are needed"
    values = np.asarray(samples, dtype=np.float64)
    if not np.isfinite(values).all():
        return "a sample is not finite"
    if not (values > 0).all():
        return "a sample is not positive"
    return None


# -- what casts doubt on a run ----------------------------------------------------------------


def lag1(samples: Sequence[float] | Floats) -> float:
    """Return the autocorrelation of neighbours, 0 where there is none to speak of (constant, or under three)."""
    values = np.asarray(samples, dtype=np.float64)
    if len(values) < 3:
        return 0.0
    centred = values - values.mean()
    power = float(centred @ centred)
    return float(centred[:-1] @ centred[1:]) / power if power > 0 else 0.0


@dataclass(frozen=True)
class Outliers:
    """How many of n samples lie far from the median. `severe` ones are not counted as `mild` again."""

    mild: int
    severe: int
    n: int

    @property
    def warn(self) -> bool:
        """One severe outlier, or more than 5 % mild ones."""
        return self.severe > 0 or self.mild > 0.05 * self.n


def outliers(samples: Sequence[float] | Floats) -> Outliers:
    """Count samples far from the median; nothing is dropped.

    The distance is taken in standard deviations as the median absolute deviation (MAD) tells them: mild above 3.5
    (Iglewicz and Hoaglin's modified z), severe above 14.8 MAD, which are ten (hyperfine's rule). Where more than
    half of the samples are equal the MAD is zero, and the mean absolute deviation takes its place.
    """
    values = np.asarray(samples, dtype=np.float64)
    if len(values) == 0:
        return Outliers(0, 0, 0)
    distance = np.abs(values - np.median(values))
    deviation = float(np.median(distance)) / 0.6745 or float(distance.mean()) * 1.2533
    if deviation == 0:
        return Outliers(0, 0, len(values))
    severe = int((distance > 14.8 * 0.6745 * deviation).sum())
    return Outliers(int((distance > 3.5 * deviation).sum()) - severe, severe, len(values))


def drifts(samples: Sequence[float] | Floats, level: float = 0.01) -> bool:
    """Return whether first and last third differ, by a two-sided rank test (Mann and Whitney) at `level`."""
    third = len(samples) // 3
    return third > 0 and rank_test(samples[:third], samples[-third:]) < level


def rank_test(first: Sequence[float] | Floats, second: Sequence[float] | Floats) -> float:
    """Return the two-sided p value of Mann and Whitney: exact for ten a side or fewer without ties, else normal.

    Written out because importing `scipy.stats` costs each worker a second; the tests compare the two.
    """
    a, b = len(first), len(second)
    values = np.concatenate([np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)])
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    rank = np.cumsum(counts) - (counts - 1) / 2.0
    u = float(rank[inverse][:a].sum()) - a * (a + 1) / 2.0
    u = min(u, a * b - u)
    if counts.max() == 1 and max(a, b) <= 10:
        ways = _rank_sums(a, b)
        return min(1.0, 2.0 * float(ways[: int(u) + 1].sum()) / float(ways.sum()))
    n = a + b
    variance = a * b / 12.0 * (n + 1 - float((counts**3 - counts).sum()) / (n * (n - 1)))
    if variance <= 0:
        return 1.0
    z = (a * b / 2.0 - u - 0.5) / math.sqrt(variance)
    return min(1.0, math.erfc(z / math.sqrt(2.0)))


@cache
def _rank_sums(a: int, b: int) -> Floats:
    """In how many orders of a and b samples U takes each of its values 0 ... ab: the coefficients of the Gaussian
    binomial, (1 - q^(b+1)) ... (1 - q^(b+a)) / (1 - q) ... (1 - q^a)."""
    ways = np.zeros(a * b + 1)
    ways[0] = 1.0
    for i in range(1, a + 1):
        for u in range(a * b, b + i - 1, -1):
            ways[u] -= ways[u - b - i]
        for u in range(i, a * b + 1):
            ways[u] += ways[u - i]
    return ways


# -- launches ---------------------------------------------------------------------------------


def detectable(deviation: float, launches: int, *, level: float = 0.05, power: float = 0.8) -> float:
    """Return the difference of two means that a two-sided t test finds with probability `power`.

    (t(1 - level/2) + t(power)) * deviation * sqrt(2 / launches), with 2 * launches - 2 degrees of freedom: the usual
    approximation of the noncentral t. Its true power is 0.79 at three launches, 0.80 from five on.

    Args:
        deviation: standard deviation between launches, the same on both sides; of logarithms, for a relative change.
        launches: of each side, two or more.
    """
    freedom = 2 * launches - 2
    quantiles = t_quantile(1.0 - level / 2.0, freedom) + t_quantile(power, freedom)
    return quantiles * deviation * math.sqrt(2.0 / launches)


def t_quantile(share: float, freedom: int) -> float:
    """Return the value below which `share` of Student's t distribution lies; `freedom` is a whole number.

    Bisects its distribution function, which has a closed form then (Abramowitz and Stegun, 26.7.3 and 26.7.4).
    Written out because importing `scipy.stats` costs a second; the tests compare the two.
    """
    if share < 0.5:
        return -t_quantile(1.0 - share, freedom)
    low, high = 0.0, math.pi / 2.0
    for _ in range(60):  # halves a right angle down to the last bit
        middle = (low + high) / 2.0
        low, high = (middle, high) if _t_below(middle, freedom) < share else (low, middle)
    return math.tan(low) * math.sqrt(freedom)


def _t_below(angle: float, freedom: int) -> float:
    """The share of Student's t below tan(angle) * sqrt(freedom), for an angle from zero to a right one."""
    odd = freedom % 2 == 1
    term = math.cos(angle) if odd else 1.0
    terms = 0.0
    for k in range(2 if odd else 1, freedom, 2):
        terms += term
        term *= k / (k + 1) * math.cos(angle) ** 2
    within = 2.0 / math.pi * (angle + math.sin(angle) * terms) if odd else math.sin(angle) * terms
    return 0.5 + within / 2.0


# -- many models ------------------------------------------------------------------------------


def geometric_mean(estimates: Sequence[Estimate]) -> Estimate | NoEstimate:
    """Return the geometric mean of these models with the interval of its measurement.

    The errors of the models are independent, so that their half-widths add in squares, in logarithms and for each
    end by itself (inverting all values then mirrors the interval). It answers "did these models move?"; what other
    models should expect is told by `cluster_interval`. Where one value has no interval, the mean has none.
    """
    bounded = all(estimate.bounds is not None for estimate in estimates)
    return geometric_mean_of([(e.value, *(e.bounds or (e.value, e.value))) for e in estimates], bounded)


def geometric_mean_of(numbers: Sequence[tuple[float, float, float]] | Floats, bounded: bool) -> Estimate | NoEstimate:
    """Return the same of values with the ends of their intervals, `(models, 3)`.

    Args:
        bounded: whether all of them have an interval; if not, the mean has none.
    """
    n = len(numbers)
    if n == 0:
        return NoEstimate("no model has an estimate")
    found = np.asarray(numbers, dtype=np.float64)
    if not (np.isfinite(found) & (found > 0)).all():
        return NoEstimate("a value or an end of its interval is not positive and finite")
    value, low, high = np.log(found).T
    mean = float(value.mean())
    if not bounded:
        return Estimate(math.exp(mean), None, None, n, PLAIN_MEAN)
    down = math.sqrt(float(((value - low) ** 2).sum())) / n
    up = math.sqrt(float(((high - value) ** 2).sum())) / n
    return Estimate(math.exp(mean), math.exp(mean - down), math.exp(mean + up), n, GEOMETRIC_MEAN)


LEAST_FAMILIES = 6
"""Fewest families to resample: with fewer the bootstrap's interval is far too narrow."""


def cluster_interval(
    values: Sequence[float], families: Sequence[Hashable], *, seed: int = 1337, draws: int = 10_000
) -> Estimate | NoEstimate:
    """Return the geometric mean with the interval that models like these should expect.

    Families (one architecture in several sizes) are drawn with replacement, `draws` times, and the 2.5 % and 97.5 %
    points of the geometric mean taken. The same values in the same families give the same interval.

    Args:
        values: one positive number per model, e.g. its speedup.
        families: the family of each model.

    Raises:
        ValueError: the lengths differ.
    """
    if len(values) != len(families):
        raise ValueError(f"{len(values)} values cannot belong to {len(families)} families")
    numbers = np.asarray(values, dtype=np.float64)
    if not (np.isfinite(numbers) & (numbers > 0)).all():
        return NoEstimate("a value is not positive and finite")
    members: dict[Hashable, list[float]] = {}
    for family, log in zip(families, np.log(numbers).tolist(), strict=True):
        members.setdefault(family, []).append(log)
    if len(members) < LEAST_FAMILIES:
        return NoEstimate(f"{len(members)} families, at least {LEAST_FAMILIES} are needed")
    # Sorted, so that the order of the models cannot change what the seed draws.
    sums, sizes = np.array(sorted((math.fsum(logs), len(logs)) for logs in members.values())).T
    drawn = np.random.default_rng(seed).integers(0, len(sums), size=(draws, len(sums)))
    means = sums[drawn].sum(axis=1) / sizes[drawn].sum(axis=1)
    low, high = np.quantile(means, [0.025, 0.975])
    mean = float(sums.sum() / sizes.sum())
    return Estimate(math.exp(mean), math.exp(low), math.exp(high), len(numbers), CLUSTER_BOOTSTRAP)


def wilson(passed: int, n: int) -> Estimate | NoEstimate:
    """Return the share passed of n with Wilson's 95 % interval.

    Raises:
        ValueError: `passed` is not between 0 and n.
    """
    if not 0 <= passed <= n:
        raise ValueError(f"{passed} of {n} cannot have passed")
    if n == 0:
        return NoEstimate("nothing was counted")
    share, z2 = passed / n, _Z95**2
    centre = (share + z2 / (2 * n)) / (1 + z2 / n)
    half = _Z95 / (1 + z2 / n) * math.sqrt(share * (1 - share) / n + z2 / (4 * n * n))
    low = 0.0 if passed == 0 else max(0.0, centre - half)
    high = 1.0 if passed == n else min(1.0, centre + half)
    return Estimate(share, low, high, n, WILSON)


def quartiles(values: Sequence[float]) -> tuple[float, float, float] | None:
    """Return lower quartile, median and upper quartile, interpolated; None of nothing."""
    if len(values) == 0:
        return None
    low, middle, high = np.quantile(np.asarray(values, dtype=np.float64), [0.25, 0.5, 0.75]).tolist()
    return low, middle, high


def share_at_least_one(values: Sequence[float]) -> float | None:
    """Return the share of values that are 1 or more: models that did not get slower; None of nothing."""
    return sum(value >= 1.0 for value in values) / len(values) if len(values) else None
