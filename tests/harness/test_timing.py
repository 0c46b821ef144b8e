"""How samples are taken, in virtual time; a few facts on the real clock."""

from __future__ import annotations

import gc
import itertools
import random
import statistics
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from harness import stats
from harness.record import Memory, Side, StopReason, Timing
from harness.worker.device import CpuDevice
from harness.worker.timing import SamplingError, StopRule, clock_resolution, measure_memory, time_pairs
from tests.fakes import FakeDevice, FakeStep

MS = 1e-3


def time_fakes(eager: FakeStep, compiled: FakeStep, **options: Any) -> Timing:
    given = {"precision_target": 0.01, "max_seconds": 60.0, "max_pairs": 160, "rng": random.Random(1)}
    return time_pairs(eager, compiled, eager.device, **(given | options))


def steps(device: FakeDevice, eager_s: float, compiled_s: float, **options: Any) -> tuple[FakeStep, FakeStep]:
    return FakeStep(device, "eager", eager_s, **options), FakeStep(device, "compiled", compiled_s, **options)


# -- when to stop -----------------------------------------------------------------------------


def test_precise() -> None:
    """Steady steps are done at the first look, 20 pairs; every sample is kept, in seconds per step."""
    timing = time_fakes(*steps(FakeDevice(), 30 * MS, 20 * MS))

    assert StopReason.PRECISE == timing.stop_reason
    assert 20 == len(timing.eager_s) == len(timing.compiled_s) == len(timing.eager_first)
    assert (30 * MS, 20 * MS) == pytest.approx((timing.eager_s[7], timing.compiled_s[7]))
    assert 20 * 50 * MS == pytest.approx(timing.sampling_s)


@pytest.mark.parametrize(("noise", "pairs"), [(0.005, (20,)), (0.012, (20, 40)), (0.03, (80, 160))])
def test_looks(noise: float, pairs: tuple[int, ...]) -> None:
    """Noisier steps need more pairs, and sampling ends at a look only."""
    timing = time_fakes(*steps(FakeDevice(), 30 * MS, 20 * MS, noise=noise, rng=random.Random(5)))

    assert len(timing.eager_s) in pairs
    answer = stats.speedup(timing.eager_s, timing.compiled_s)
    assert isinstance(answer, stats.Estimate)
    assert (stats.half_width(answer) <= 0.01) == (StopReason.PRECISE == timing.stop_reason)


def test_pair_cap() -> None:
    """Steps that stay noisy end at the cap of pairs, never more."""
    timing = time_fakes(*steps(FakeDevice(), 30 * MS, 20 * MS, noise=0.3, rng=random.Random(5)), max_pairs=50)

    assert (StopReason.PAIR_CAP, 50) == (timing.stop_reason, len(timing.eager_s))


def test_fixed_number_of_pairs() -> None:
    """A target of none takes exactly so many pairs as the cap says, also of steps without any noise at all."""
    timing = time_fakes(*steps(FakeDevice(), 30 * MS, 20 * MS, noise=0.01), precision_target=0.0, max_pairs=20)

    assert (StopReason.PAIR_CAP, 20) == (timing.stop_reason, len(timing.eager_s))


def test_time_cap() -> None:
    """A slow model gets as many pairs as its budget holds, and no pair begins that would exceed it."""
    timing = time_fakes(*steps(FakeDevice(), 3.0, 2.0), max_seconds=51.0)

    assert (StopReason.TIME_CAP, 10) == (timing.stop_reason, len(timing.eager_s))
    assert 50.0 == pytest.approx(timing.sampling_s)


def test_slower_still() -> None:
    """Six pairs are taken up to three times over the budget, so that there is an interval at all."""
    timing = time_fakes(*steps(FakeDevice(), 6.0, 4.0), max_seconds=21.0)

    assert (StopReason.TIME_CAP, 6) == (timing.stop_reason, len(timing.eager_s))
    assert isinstance(stats.speedup(timing.eager_s, timing.compiled_s), stats.Estimate)


@pytest.mark.parametrize(("max_seconds", "pairs"), [(10.0, 3), (1.0, 1)])
def test_far_too_slow(max_seconds: float, pairs: int) -> None:
    """Beyond three times the budget fewer than six pairs are honest, and one is always taken: no estimate of them."""
    timing = time_fakes(*steps(FakeDevice(), 6.0, 4.0), max_seconds=max_seconds)

    assert (StopReason.TIME_CAP, pairs) == (timing.stop_reason, len(timing.eager_s))
    assert isinstance(stats.speedup(timing.eager_s, timing.compiled_s), stats.NoEstimate)


@pytest.mark.parametrize("side", list(Side))
def test_error(side: Side) -> None:
    """A step that fails while timed ends it: the error says which side, holds the pairs before, and its cause."""
    eager, compiled = steps(FakeDevice(), 30 * MS, 20 * MS)
    {Side.EAGER: eager, Side.COMPILED: compiled}[side].fails_at = 17

    with pytest.raises(SamplingError) as caught:
        time_fakes(eager, compiled)

    assert (side, StopReason.ERROR) == (caught.value.side, caught.value.timing.stop_reason)
    assert isinstance(caught.value.__cause__, RuntimeError)
    assert 0 < len(caught.value.timing.eager_s) == len(caught.value.timing.compiled_s) < 17
    assert gc.isenabled()


def test_error_in_warm_up() -> None:
    """A step that fails at once leaves no sample."""
    eager, compiled = steps(FakeDevice(), 30 * MS, 20 * MS)
    compiled.fails_at = 1

    with pytest.raises(SamplingError) as caught:
        time_fakes(eager, compiled)

    assert (Side.COMPILED, ()) == (caught.value.side, caught.value.timing.eager_s)


@pytest.mark.parametrize("n", range(1, 170))
def test_rule(n: int) -> None:
    """Of precise pairs, the rule ends sampling at 20, 40, 80 and 160 and at the cap, and nowhere else."""
    rule = StopRule(precision_target=0.01, max_seconds=60.0, max_pairs=165)

    reason = rule.reason([2.0] * n, [1.0] * n, spent_s=1.0, pair_s=0.1)

    assert (reason == StopReason.PRECISE) == (n in (20, 40, 80, 160) or n >= 165)
    assert reason in (None, StopReason.PRECISE)


def test_deterministic() -> None:
    """The same seed and the same steps give the same samples in the same order; another seed, another order."""

    def once(seed: int) -> Timing:
        eager, compiled = steps(FakeDevice(), 30 * MS, 20 * MS, noise=0.05)
        return time_fakes(eager, compiled, rng=random.Random(seed))

    assert once(1) == once(1)
    assert once(1).eager_first != once(2).eager_first


# -- how a sample is taken --------------------------------------------------------------------


def test_order() -> None:
    """Who goes first in a pair is a coin flip: both orders occur, and not in turn."""
    first = time_fakes(*steps(FakeDevice(), 30 * MS, 20 * MS), precision_target=0.0).eager_first

    assert 60 < sum(first) < 100
    assert 60 < sum(a == b for a, b in itertools.pairwise(first)) < 100


def test_lazy_work() -> None:
    """Work that only synchronizing pays for is paid inside the sample it belongs to."""
    timing = time_fakes(*steps(FakeDevice(), 30 * MS, 20 * MS, lazy=True))

    assert {30 * MS} == {round(s, 9) for s in timing.eager_s}
    assert {20 * MS} == {round(s, 9) for s in timing.compiled_s}


def test_inner_loops() -> None:
    """Short steps are repeated, as often on either side, until the faster one's sample is a millisecond long."""
    timing = time_fakes(*steps(FakeDevice(), 30e-6, 10e-6))

    assert 100 <= timing.inner_loops <= 130
    assert (30e-6, 10e-6) == pytest.approx((timing.eager_s[0], timing.compiled_s[0]))


@pytest.mark.parametrize("seconds", [1e-5, 1e-4, 1e-3, 0.2])
def test_coarse_clock(seconds: float) -> None:
    """On a clock that ticks, a sample is a thousand ticks long, whatever a step costs."""

    class Ticking(FakeDevice):
        def clock(self) -> float:
            self.now_s += 1e-7  # reading it takes time, so that it is seen to tick
            return super().clock()

    device = Ticking(tick_s=1e-5)
    timing = time_fakes(*steps(device, seconds, seconds), precision_target=0.0, max_pairs=6)

    assert 1e-5 == pytest.approx(clock_resolution(device))
    assert timing.inner_loops * seconds >= 0.0099


def test_most_inner_loops() -> None:
    """A model that is given fresh inputs is asked for no more than they have room for."""
    laid_out: list[int] = []

    timing = time_fakes(*steps(FakeDevice(), 1e-6, 1e-6), arm=laid_out.append, max_inner=8)

    assert (8, 8) == (timing.inner_loops, max(laid_out))


def test_fresh_inputs() -> None:
    """Inputs are laid out before each sample, one per step, outside the clock."""
    device = FakeDevice()
    eager, compiled = steps(device, 0.3 * MS, 0.3 * MS)
    laid_out = 0

    def arm(n: int) -> None:
        nonlocal laid_out
        laid_out += n
        device.now_s += 5.0 * MS

    timing = time_fakes(eager, compiled, arm=arm)

    assert laid_out == eager.calls + compiled.calls
    assert 0.3 * MS == pytest.approx(timing.eager_s[0])


def test_output_is_kept() -> None:
    """What a step returns lives until the device is done, as a caller's would, and not into the next sample."""
    device, alive, seen = FakeDevice(), 0, []

    class Output:
        def __init__(self) -> None:
            nonlocal alive
            alive += 1

        def __del__(self) -> None:
            nonlocal alive
            alive -= 1

    class Watching(FakeDevice):
        def synchronize(self) -> None:
            seen.append(alive)

    device = Watching()

    def step() -> Output:
        device.now_s += 2 * MS
        return Output()

    time_pairs(
        step, step, device, precision_target=0.0, max_seconds=60.0, max_pairs=6, rng=random.Random(0), warmup_s=0.0
    )

    assert [0, 1] * (len(seen) // 2) == seen


def test_garbage() -> None:
    """Python's collector is off while samples are taken, and as before afterwards."""
    device, seen = FakeDevice(), set()

    def step() -> None:
        seen.add(gc.isenabled())
        device.now_s += 2 * MS

    time_pairs(step, step, device, precision_target=0.01, max_seconds=60.0, max_pairs=20, rng=random.Random(0))

    assert {False} == seen
    assert gc.isenabled()


def test_warm_up() -> None:
    """Slow first steps are not in the samples: at least five of each side run before, and 0.2 s."""
    eager, compiled = steps(FakeDevice(), 2 * MS, 2 * MS, first=(9.0 * MS, 9.0 * MS, 9.0 * MS))

    timing = time_fakes(eager, compiled)

    assert 2 * MS == pytest.approx(max(timing.eager_s))
    assert 0.2 <= timing.warmup_s < 0.23


def test_warm_up_of_a_slow_model() -> None:
    """Warming up takes a quarter of the budget at most, but for one step of each side."""
    eager, compiled = steps(FakeDevice(), 2.0, 2.0)

    timing = time_fakes(eager, compiled, max_seconds=24.0)

    assert 8.0 == pytest.approx(timing.warmup_s)


def test_recompiles() -> None:
    """The compiler's counter is read before and after: only what recompiled while timed counts."""
    eager, compiled = steps(FakeDevice(), 30 * MS, 20 * MS)

    during_warm_up = time_fakes(eager, compiled, recompiles=lambda: min(3, compiled.calls))
    while_timed = time_fakes(eager, compiled, recompiles=lambda: compiled.calls // 20)

    assert 0 == during_warm_up.recompiles
    assert 1 == while_timed.recompiles


# -- what the samples tell --------------------------------------------------------------------


def test_drift_once() -> None:
    """A model that is slow to warm up is timed once more; the first pass then counts as warm-up."""
    eager, compiled = steps(FakeDevice(), 20 * MS, 20 * MS, first=tuple((40 - 0.5 * i) * MS for i in range(35)))

    timing = time_fakes(eager, compiled)

    assert not timing.drifting
    assert 20 * MS == pytest.approx(max(timing.eager_s))
    assert timing.warmup_s > 20 * 40 * MS


def test_drift_that_stays() -> None:
    """A host that gets slower all the time: flagged, after one more try; the pairs cancel it all the same."""
    device = FakeDevice(weather=lambda now_s: 1.0 + 0.01 * now_s)

    timing = time_fakes(*steps(device, 30 * MS, 20 * MS))

    assert timing.drifting
    answer = stats.speedup(timing.eager_s, timing.compiled_s)
    assert isinstance(answer, stats.Estimate)
    assert 1.5 == pytest.approx(answer.value, rel=1e-3)


def test_drift_without_time_left() -> None:
    """Where the budget has no room for a second pass as long as the first, the first stays and the flag with it."""
    device = FakeDevice(weather=lambda now_s: 1.0 + 0.01 * now_s)

    timing = time_fakes(*steps(device, 0.3, 0.2), max_seconds=12.0)

    assert timing.drifting
    assert timing.warmup_s < 4.0


def test_spikes() -> None:
    """One eager step in seven takes five times as long: nothing is dropped, the speedup does not care, the count
    tells."""
    eager, compiled = steps(FakeDevice(), 30 * MS, 20 * MS, noise=0.003, rng=random.Random(2))
    eager.spike, eager.spike_every = 5.0, 7

    timing = time_fakes(eager, compiled, max_pairs=80)

    answer = stats.speedup(timing.eager_s, timing.compiled_s)
    assert isinstance(answer, stats.Estimate)
    assert 1.5 == pytest.approx(answer.value, rel=0.01)
    assert max(timing.eager_s) > 100 * MS
    assert stats.outliers(stats.log_ratios(timing.eager_s, timing.compiled_s)).warn


@pytest.fixture
def young_heap() -> Iterator[None]:
    """Let full collections, one per trial, look at what the trials make and not at all of the test session."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


def restless(seed: int) -> FakeDevice:
    """A host whose speed wanders by about a percent within a trial, by another way with each seed."""
    rng = random.Random(seed)
    levels = [1.0]
    for _ in range(400):
        levels.append(levels[-1] * (1.0 + 0.003 * rng.gauss()))
    return FakeDevice(weather=lambda now_s: levels[min(400, int(now_s / 0.02))])


def excludes_one(answer: stats.Estimate | stats.NoEstimate) -> bool:
    assert isinstance(answer, stats.Estimate)
    return not answer.low <= 1.0 <= answer.high


def equal_steps(seed: int) -> tuple[FakeStep, FakeStep]:
    """The same work twice, which costs 0.5 % more after the other one has run."""
    return steps(restless(seed), 10 * MS, 10 * MS, noise=0.01, after_other=1.005, rng=random.Random(seed))


def test_equal_sides_in_random_order(young_heap: None) -> None:
    """The same work on both sides of 600 trials: in random order fewer than 7 % of the intervals exclude 1."""
    alarms = 0
    for seed in range(600):
        timing = time_fakes(
            *equal_steps(seed), precision_target=0.0, max_pairs=20, rng=random.Random(seed), warmup_s=0.0
        )
        alarms += excludes_one(stats.speedup(timing.eager_s, timing.compiled_s))

    assert alarms / 600 < 0.07


def test_equal_sides_in_blocks() -> None:
    """The same trials with all of one side before the other: more than 20 % exclude 1, so the test above can fail."""
    alarms = 0
    for seed in range(600):
        eager, compiled = equal_steps(seed)
        device = eager.device

        def block(step: Callable[[], object], device: FakeDevice = device) -> list[float]:
            samples = []
            for _ in range(20):
                begun_s = device.clock()
                step()
                samples.append(device.clock() - begun_s)
            return samples

        alarms += excludes_one(stats.speedup(block(eager), block(compiled)))

    assert alarms / 600 > 0.2


# -- memory -----------------------------------------------------------------------------------


def test_memory() -> None:
    """The peak of one step of each side above its own baseline; what one side left is trimmed before the other."""
    device = FakeDevice()
    eager, compiled = FakeStep(device, "eager", MS, bytes=300), FakeStep(device, "compiled", MS, bytes=200)

    assert Memory(eager_peak_bytes=300, compiled_peak_bytes=200) == measure_memory(eager, compiled, device)


def test_memory_that_stays() -> None:
    """Gradients that a step leaves until the next one belong to both baselines, not to the side measured first."""
    device = FakeDevice()
    gradients = 0

    def step() -> None:
        nonlocal gradients
        device.in_use, gradients = device.in_use - gradients, 0
        device.hold(100)
        device.in_use, gradients = device.in_use + 50, 50
        device.peak = max(device.peak, device.in_use)

    memory = measure_memory(step, step, device)

    assert memory.eager_peak_bytes == memory.compiled_peak_bytes == 100


def test_memory_refused() -> None:
    """Where the kernel refuses to reset the peak, there is no number, for neither side."""
    device = FakeDevice(refuses_reset=True)

    memory = measure_memory(FakeStep(device, "eager", MS, bytes=300), FakeStep(device, "compiled", MS), device)

    assert Memory(eager_peak_bytes=None, compiled_peak_bytes=None) == memory


def test_memory_of_fresh_inputs() -> None:
    """Inputs are laid out before the baseline is read."""
    device = FakeDevice()
    step = FakeStep(device, "step", MS, bytes=100)

    def arm(n: int) -> None:
        device.hold(10_000 * n)

    assert Memory(eager_peak_bytes=100, compiled_peak_bytes=100) == measure_memory(step, step, device, arm=arm)


# -- the real clock ---------------------------------------------------------------------------


def test_real_clock() -> None:
    """On the real clock a sample is far longer than a tick, and the loop around the steps costs next to nothing."""
    device = CpuDevice()

    timing = time_pairs(
        lambda: None,
        lambda: None,
        device,
        precision_target=0.0,
        max_seconds=5.0,
        max_pairs=6,
        rng=random.Random(0),
        warmup_s=0.01,
    )

    assert 0 < clock_resolution(device) < 1e-4
    assert statistics.median(timing.eager_s) < 2e-6
    assert timing.inner_loops * statistics.median(timing.eager_s) > 0.3 * MS


# -- the device's own events ------------------------------------------------------------------


def test_events() -> None:
    """A device with events gives each sample a second time: of the work, without what synchronizing costs the host."""
    device = FakeDevice(has_events=True, synchronize_s=1 * MS)
    timing = time_fakes(*steps(device, 30 * MS, 20 * MS, lazy=True))

    assert len(timing.eager_s) == len(timing.eager_events_s) == len(timing.compiled_events_s)
    assert (31 * MS, 21 * MS) == pytest.approx((timing.eager_s[3], timing.compiled_s[3]))
    assert (30 * MS, 20 * MS) == pytest.approx((timing.eager_events_s[3], timing.compiled_events_s[3]))


def test_events_per_step() -> None:
    """The events of a sample of many steps are divided by their count, like its seconds."""
    device = FakeDevice(has_events=True)
    timing = time_fakes(*steps(device, 0.3 * MS, 0.1 * MS, lazy=True))

    assert timing.inner_loops > 1
    assert (0.3 * MS, 0.1 * MS) == pytest.approx((timing.eager_events_s[0], timing.compiled_events_s[0]))


def test_events_are_read_outside() -> None:
    """Events are recorded between the two synchronizations, and read after the second."""
    device = FakeDevice(has_events=True)
    time_fakes(*steps(device, 30 * MS, 20 * MS), max_pairs=1)

    assert ["synchronize", "start", "stop", "synchronize", "seconds"] * (len(device.calls) // 5) == device.calls


def test_no_events() -> None:
    """A device without events has none in its record."""
    timing = time_fakes(*steps(FakeDevice(), 30 * MS, 20 * MS))

    assert ((), ()) == (timing.eager_events_s, timing.compiled_events_s)


def test_between() -> None:
    """What is done between pairs, however long it takes, is in no sample."""
    device = FakeDevice()

    def look() -> None:
        device.calls.append("look")
        device.now_s += 5 * MS

    timing = time_fakes(*steps(device, 30 * MS, 20 * MS), between=look)

    assert len(timing.eager_s) == device.calls.count("look")
    assert (30 * MS, 20 * MS) == pytest.approx((max(timing.eager_s), max(timing.compiled_s)))
