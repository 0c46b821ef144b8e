"""Time two callables against each other: warm up, pairs in random order, when to stop. Takes any `Device`."""

from __future__ import annotations

import gc
import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import repeat
from statistics import median
from typing import NamedTuple

from harness import stats
from harness.record import Memory, Side, StopReason, Timing
from harness.worker.device import Device

Step = Callable[[], object]
"""One step. What it returns is kept alive until the device is done."""

Arm = Callable[[int], None]
"""Lays out inputs for the next n steps, for models that write into theirs. Called outside the clock."""

FIRST_LOOK = 20
"""Pairs before the interval is first looked at; then at twice as many each time. With looks at 20, 40, 80 and 160
simulated coverage stays at 94 to 96 %."""

OVERRUN = 3.0
"""To reach the fewest pairs that have an interval, a slow model may exceed its budget this many times."""

WARMUP_STEPS = 5
"""Fewest steps of each side before timing; both were compiled and run by earlier stages."""

WARMUP_S = 0.2
"""Fewest seconds before timing, both sides together."""

WARMUP_SHARE = 0.25
"""Largest share of the budget that warming up may take, but for one step of each side."""

SAMPLE_S = 1e-3
"""Fewest seconds of a sample: far above the cost of reading the clock and of the loop."""

RESOLUTIONS = 1000
"""Fewest ticks of the clock in a sample: rounding then costs 0.1 % at most."""

MAX_INNER = 100_000
"""Most steps in a sample, where a step costs next to nothing."""

DRIFT_LEVEL = 0.01
"""Share of steady series that are called drifting; each costs a second pass at most."""


class SamplingError(Exception):
    """A step failed while it was warmed up or timed. Its cause is the step's own exception.

    Attributes:
        side: whose step it was.
        timing: the samples taken until then; a pair of which one side failed is not among them.
    """

    def __init__(self, side: Side, timing: Timing) -> None:
        super().__init__(f"the {side} step failed after {len(timing.eager_s)} pairs")
        self.side = side
        self.timing = timing


def time_pairs(
    eager: Step,
    compiled: Step,
    device: Device,
    *,
    precision_target: float,
    max_seconds: float,
    max_pairs: int,
    rng: random.Random,
    recompiles: Callable[[], int] = lambda: 0,
    between: Callable[[], None] = lambda: None,
    arm: Arm | None = None,
    max_inner: int = MAX_INNER,
    warmup_s: float = WARMUP_S,
) -> Timing:
    """Time both sides in pairs, order random inside each pair, and return every sample.

    When sampling ends is told by `StopRule`. Where the samples drift, all is done once more after a warm-up twice as
    long, if the budget has room for a pass as long as the first; the first then counts as warm-up.

    Args:
        eager, compiled: one step each; the same callable on both sides shows the error of the method.
        precision_target, max_seconds, max_pairs: see `StopRule`.
        recompiles: how often the compiler has recompiled until now; read before and after the timed region.
        between: called after each pair, outside the clock.
        arm: see `Arm`.
        max_inner: most steps in a sample, and so the most that `arm` is asked for.
        warmup_s: fewest seconds of warming up.

    Raises:
        SamplingError: a step raised; holds its side and the samples so far.
    """
    sampler = _Sampler({Side.EAGER: eager, Side.COMPILED: compiled}, device, arm)
    most_s = WARMUP_SHARE * max_seconds
    try:
        with _collecting_nothing():
            sampler.warm_up(WARMUP_STEPS, warmup_s, most_s)
            sampler.calibrate(max_inner)
            sampler.sample(StopRule(precision_target, max_seconds, max_pairs), rng, recompiles, between)
            left_s = max_seconds - sampler.kept.sampling_s
            if sampler.kept.drifting and left_s >= sampler.kept.sampling_s:
                sampler.warm_up(2 * WARMUP_STEPS, 2 * warmup_s, most_s)
                sampler.sample(StopRule(precision_target, left_s, max_pairs), rng, recompiles, between)
    except _StepError as error:
        raise SamplingError(error.side, sampler.timing()) from error.__cause__
    return sampler.timing()


@dataclass(frozen=True)
class StopRule:
    """When sampling ends, and by which of three reasons.

    `PRECISE` if the half-width of the speedup's interval is at most `precision_target` (a share of the speedup; 0 never
    is) at a look: 20, 40, 80 ... pairs, or `max_pairs`. `PAIR_CAP` at `max_pairs`, 1 or more. `TIME_CAP` if another
    pair would exceed `max_seconds`; the first six pairs, without which there is no interval, may exceed them up to
    three times. One pair is always taken.
    """

    precision_target: float
    max_seconds: float
    max_pairs: int

    def reason(
        self, eager_s: Sequence[float], compiled_s: Sequence[float], spent_s: float, pair_s: float
    ) -> StopReason | None:
        """Return why no further pair is taken; None: take one.

        Args:
            eager_s, compiled_s: the pairs taken.
            spent_s: seconds since sampling began.
            pair_s: what one more pair will cost.
        """
        n = len(eager_s)
        if self.precision_target > 0 and (n >= self.max_pairs or _is_look(n)):
            estimate = stats.speedup(eager_s, compiled_s)
            if isinstance(estimate, stats.Estimate) and stats.half_width(estimate) <= self.precision_target:
                return StopReason.PRECISE
        if n >= self.max_pairs:
            return StopReason.PAIR_CAP
        allowed_s = self.max_seconds * (OVERRUN if n < stats.LEAST else 1.0)
        return StopReason.TIME_CAP if spent_s + pair_s > allowed_s else None


def _is_look(n: int) -> bool:
    """20, 40, 80 ...: the first look times a power of two."""
    times, rest = divmod(n, FIRST_LOOK)
    return n > 0 and rest == 0 and times & (times - 1) == 0


class _Sample(NamedTuple):
    """Seconds per step, by the clock and by the device's own events; None where it has none."""

    seconds: float
    events_s: float | None


class _StepError(Exception):
    """A step of this side raised the cause."""

    def __init__(self, side: Side) -> None:
        super().__init__(side)
        self.side = side


@dataclass
class _Pass:
    """The samples of one pass, and how it ended."""

    eager_s: list[float] = field(default_factory=list)
    compiled_s: list[float] = field(default_factory=list)
    eager_first: list[bool] = field(default_factory=list)
    events_s: dict[Side, list[float]] = field(default_factory=lambda: {side: [] for side in Side})
    warmup_s: float = 0.0
    sampling_s: float = 0.0
    stop_reason: StopReason = StopReason.ERROR
    recompiles: int = 0

    @property
    def drifting(self) -> bool:
        """First and last third differ, on either side or in the ratio; the three tests share one level."""
        series = (self.eager_s, self.compiled_s, stats.log_ratios(self.eager_s, self.compiled_s))
        return any(stats.drifts(samples, DRIFT_LEVEL / len(series)) for samples in series)


class _Sampler:
    """Takes samples of both sides. `kept` is the latest pass."""

    def __init__(self, steps: Mapping[Side, Step], device: Device, arm: Arm | None) -> None:
        self._steps = steps
        self._device = device
        self._arm = arm
        self._watch = device.stopwatch()
        self._inner = 1
        self._shortest_s = 0.0
        self._begun_s = device.clock()
        self.kept = _Pass()

    def warm_up(self, steps: int, seconds: float, most_s: float) -> None:
        """Take single steps in turn: at least so many of each side and so many seconds, unless `most_s` are over."""
        begun_s = self._device.clock()
        done, spent_s = 0, 0.0
        while done == 0 or (spent_s < most_s and (done < steps or spent_s < seconds)):
            self._shortest_s = min(self._take(side, 1).seconds for side in self._steps)
            done += 1
            spent_s = self._device.clock() - begun_s

    def calibrate(self, max_inner: int) -> None:
        """Find the steps per sample, the same for both sides, with which the faster one's sample is long enough."""
        enough_s = max(SAMPLE_S, RESOLUTIONS * clock_resolution(self._device))
        while self._inner * self._shortest_s < enough_s and self._inner < max_inner:
            wanted = 1.2 * enough_s / self._shortest_s if self._shortest_s > 0 else 10.0 * self._inner
            self._inner = min(max_inner, max(self._inner + 1, math.ceil(wanted)))
            self._shortest_s = min(self._take(side, self._inner).seconds for side in self._steps)

    def sample(
        self, rule: StopRule, rng: random.Random, recompiles: Callable[[], int], between: Callable[[], None]
    ) -> None:
        """Take pairs until the rule ends it."""
        clock = self._device.clock
        begun_s = clock()
        self.kept = kept = _Pass(warmup_s=begun_s - self._begun_s)
        recompiles_before = recompiles()
        costs_s: list[float] = []
        reason = None
        try:
            while reason is None:
                pair_begun_s = clock()
                eager_first = rng.random() < 0.5
                sides = (Side.EAGER, Side.COMPILED) if eager_first else (Side.COMPILED, Side.EAGER)
                taken = {side: self._take(side, self._inner) for side in sides}
                kept.eager_s.append(taken[Side.EAGER].seconds)
                kept.compiled_s.append(taken[Side.COMPILED].seconds)
                kept.eager_first.append(eager_first)
                for side, sample in taken.items():
                    kept.events_s[side] += [] if sample.events_s is None else [sample.events_s]
                costs_s.append(clock() - pair_begun_s)
                between()
                reason = rule.reason(kept.eager_s, kept.compiled_s, clock() - begun_s, median(costs_s))
            kept.stop_reason = reason
        finally:
            kept.sampling_s = clock() - begun_s
            kept.recompiles = recompiles() - recompiles_before

    def timing(self) -> Timing:
        kept = self.kept
        return Timing(
            eager_s=tuple(kept.eager_s),
            compiled_s=tuple(kept.compiled_s),
            eager_first=tuple(kept.eager_first),
            inner_loops=self._inner,
            warmup_s=kept.warmup_s,
            sampling_s=kept.sampling_s,
            stop_reason=kept.stop_reason,
            recompiles=kept.recompiles,
            drifting=kept.drifting,
            eager_events_s=tuple(kept.events_s[Side.EAGER]),
            compiled_events_s=tuple(kept.events_s[Side.COMPILED]),
        )

    def _take(self, side: Side, inner: int) -> _Sample:
        """Take one sample: from an idle device until it is idle again.

        The device's events lie just inside the clock's readings, and are read when the clock has stopped.
        """
        step, device, watch = self._steps[side], self._device, self._watch
        try:
            if self._arm is not None:
                self._arm(inner)
            gc.collect(0)  # cycles of the steps before would hold their tensors; costs microseconds
            device.synchronize()
            begun_s = device.clock()
            if watch is not None:
                watch.start()
            for _ in repeat(None, inner):
                kept = step()
            if watch is not None:
                watch.stop()
            device.synchronize()
            seconds = device.clock() - begun_s
            events_s = None if watch is None else watch.seconds() / inner
        except Exception as error:
            raise _StepError(side) from error
        del kept
        return _Sample(seconds / inner, events_s)


@contextmanager
def _collecting_nothing() -> Iterator[None]:
    """Keep Python's garbage collector, whose pauses fall on whoever runs just then, out of the timed region."""
    enabled = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def clock_resolution(device: Device) -> float:
    """Return the shortest step seen between readings of the device's clock; 0 where it does not move by itself."""
    steps: list[float] = []
    last_s = device.clock()
    for _ in range(20_000):  # a clock that ticks every millisecond moves once or twice in as many readings
        now_s = device.clock()
        if now_s > last_s:
            steps.append(now_s - last_s)
        last_s = now_s
        if len(steps) == 20:
            break
    return min(steps, default=0.0)


def measure_memory(eager: Step, compiled: Step, device: Device, *, arm: Arm | None = None) -> Memory:
    """Return the peak of one step of each side above what was in use before it; both warmed up.

    Each phase starts trimmed and after one step of its own, so that gradients and workspaces that stay from step to
    step are part of both baselines. None for both where the device refuses to reset the peak.
    """
    eager_peak_bytes = _peak(eager, device, arm)
    compiled_peak_bytes = _peak(compiled, device, arm)
    if eager_peak_bytes is None or compiled_peak_bytes is None:
        return Memory(eager_peak_bytes=None, compiled_peak_bytes=None)
    return Memory(eager_peak_bytes=eager_peak_bytes, compiled_peak_bytes=compiled_peak_bytes)


def _peak(step: Step, device: Device, arm: Arm | None) -> int | None:
    if arm is not None:
        arm(1)
    step()
    device.synchronize()
    if arm is not None:
        arm(1)
    device.trim()
    if not device.reset_peak():
        return None
    baseline = device.memory_bytes()
    kept = step()
    device.synchronize()
    peak = device.peak_bytes()
    del kept
    return None if peak is None or baseline is None else peak - baseline
