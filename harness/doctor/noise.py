"""What this host could see: the same step on both sides, in several launches, each a fresh interpreter.

Within a launch the interval of the ratio says how small a speedup can be told from none. Between launches the step
time itself spreads: that is what two builds are compared by (docs/measuring.md).
"""

from __future__ import annotations

import math
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from pydantic import TypeAdapter, ValidationError

from harness import stats
from harness.errors import BenchError
from harness.record import DeviceProfile, Finding, Level, Timing
from suites.spec import Frozen


class Work(StrEnum):
    """What a step is bound by."""

    COMPUTE = "compute"
    MEMORY = "memory"


class Assignment(Frozen):
    """What a launch is to do."""

    profile: DeviceProfile
    seconds: float
    """Of sampling, for each kind of work."""
    seed: int


Launch = Mapping[Work, Timing]
LAUNCH: TypeAdapter[dict[Work, Timing]] = TypeAdapter(dict[Work, Timing])

SAMPLING_S = 2.0
"""For each kind of work in a launch. With the import of torch a launch then takes up to ten seconds, so that a minute
has room for six."""

LEAST = 3
"""Fewest launches; with two, a spread has one degree of freedom and may be off by any factor."""

MOST = 30
"""Most launches: the spread is then known to a third."""

ENOUGH = 5
"""Fewest launches whose spread is worth a verdict: with five its 95 % interval reaches from 0.6 to 2.9 times."""

COMPARED = 5
"""Launches of each build in a comparison: what a change is confirmed with."""

FLOOR = 0.02
"""A change below 2 % is called none (docs/measuring.md), so a host that sees 2 % sees what counts."""

BLIND = 0.10
"""As much as compiling gains on many a model: a host that cannot see it cannot tell faster from slower."""

START_LIMIT_S = 180.0
"""A first import of torch from a cold disk took 85 s."""


@dataclass(frozen=True)
class WorkNoise:
    """One kind of work over all launches. Shares are of the value: 0.01 is 1 %."""

    work: Work
    ratios: tuple[stats.Estimate | stats.NoEstimate, ...]
    """Per launch: one side against the other, which is the same."""
    step_s: tuple[float, ...]
    """Per launch: the median of all its samples."""
    half_width: float | None
    """Median over the launches: the smallest speedup that one launch could tell from none."""
    spread: float
    """Standard deviation of the logarithm of `step_s`."""
    smallest_change: float
    """Between two builds with `COMPARED` launches each, at 5 % two-sided with power 80 %."""


@dataclass(frozen=True)
class Noise:
    launches: int
    seconds: float
    works: tuple[WorkNoise, ...]


def measure(
    profile: DeviceProfile,
    seconds: float,
    *,
    launch: Callable[[Assignment], Launch] | None = None,
    clock: Callable[[], float] = time.monotonic,
    told: Callable[[str], None] = lambda line: None,
) -> Noise:
    """Start launches until the next, if it takes as long as the last, would exceed `seconds`; three at least.

    Args:
        launch: runs one; a fresh interpreter by default.
        told: hears of each launch when it is done.

    Raises:
        BenchError: a launch failed.
    """
    launch = launch or start
    begun_s = clock()
    done: list[Launch] = []
    last_s = 0.0
    while len(done) < LEAST or (clock() - begun_s + last_s <= seconds and len(done) < MOST):
        launched_s = clock()
        done.append(launch(Assignment(profile=profile, seconds=SAMPLING_S, seed=len(done))))
        last_s = clock() - launched_s
        told(f"launch {len(done)}: {last_s:.1f} s")
    return judge(done, clock() - begun_s)


def start(assignment: Assignment) -> Launch:
    """Run one launch in a fresh interpreter, with the variables of its profile and a hash seed of its own."""
    command = [sys.executable, "-m", "harness.worker.noise", assignment.model_dump_json()]
    own = {name: value for name, value in os.environ.items() if name != "PYTHONHASHSEED"}
    limit_s = START_LIMIT_S + 10 * assignment.seconds
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=limit_s, env=own | dict(assignment.profile.environment)
        )
        return LAUNCH.validate_json(done.stdout.strip().rpartition("\n")[2])
    except subprocess.TimeoutExpired:
        raise BenchError(f"a launch gave no answer within {limit_s:.0f} s. Look at the load: `bench doctor`.") from None
    except ValidationError:
        said = (done.stderr.strip().splitlines() or ["nothing"])[-1]
        raise BenchError(
            f"a launch ended with exit code {done.returncode} and said: {said}. Mend that, then measure again."
        ) from None


def judge(launches: Sequence[Launch], seconds: float) -> Noise:
    """Return what two launches or more say of the host. Pure."""
    return Noise(len(launches), seconds, tuple(_work(work, [launch[work] for launch in launches]) for work in Work))


def _work(work: Work, timings: Sequence[Timing]) -> WorkNoise:
    ratios = tuple(stats.speedup(timing.eager_s, timing.compiled_s) for timing in timings)
    widths = [stats.half_width(ratio) for ratio in ratios if isinstance(ratio, stats.Estimate)]
    step_s = tuple(statistics.median((*timing.eager_s, *timing.compiled_s)) for timing in timings)
    spread = statistics.stdev(map(math.log, step_s))
    return WorkNoise(
        work=work,
        ratios=ratios,
        step_s=step_s,
        half_width=statistics.median(widths) if widths else None,
        spread=spread,
        smallest_change=math.expm1(stats.detectable(spread, COMPARED)),
    )


def finding(noise: Noise) -> Finding:
    """Return the verdict on the host, by the kind of work that it sees worse.

    Between builds counts: within a launch a run samples longer than was done here, until its interval is narrow.
    """
    worst = max(noise.works, key=lambda each: each.smallest_change)
    widths = [each.half_width for each in noise.works if each.half_width is not None]
    within = max(widths) if widths else None
    blind = max(worst.smallest_change, within or 0.0) > BLIND
    level = Level.BAD if blind else Level.WARNING if worst.smallest_change > FLOOR else Level.GOOD
    value = f"{_percent(worst.smallest_change)} between builds"
    known = "One launch took too few pairs to know a speedup."
    if within is not None:
        value += f", {_percent(within)} in a launch"
        known = f"One launch of {SAMPLING_S:g} s knows a speedup to {_percent(within)}."
    sentence = (
        f"Two builds with {COMPARED} + {COMPARED} launches must differ by {_percent(worst.smallest_change)} to be told "
        f"apart (t test at 5 %, power 80 %; {worst.work}-bound work in {noise.launches} launches). {known}"
    )
    remedy = None if level == Level.GOOD else "mend what the other findings name, let nothing else run, measure again"
    if noise.launches < ENOUGH:
        level = Level.NOTE if level == Level.GOOD else level
        sentence += f" From fewer than {ENOUGH} launches this is little more than a guess."
        remedy = "bench doctor --noise --seconds 120"
    return Finding(check="noise", level=level, value=value, sentence=sentence, remedy=remedy)


def _percent(share: float) -> str:
    return f"{100 * share:.2g} %" if share < 0.1 else f"{100 * share:.0f} %"
