"""A/A: how many launches there is time for, what they say of a host, and that a launch is a launch."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest

from harness.doctor import noise
from harness.doctor.noise import COMPARED, LEAST, MOST, Assignment, Launch, Noise, Work, finding, judge, measure, start
from harness.errors import BenchError
from harness.record import DeviceProfile, Level, StopReason, Timing
from harness.stats import NoEstimate, detectable

CPU = DeviceProfile(name="cpu", kind="cpu")


def make_timing(step_s: float, pairs: int = 20, spread: float = 0.0) -> Timing:
    """Return pairs that take `step_s` on both sides, the ratio swinging by `spread` to both sides of 1."""
    swing = [1 + spread * (1 if number % 2 else -1) for number in range(pairs)]
    return Timing(
        eager_s=tuple(step_s * each for each in swing),
        compiled_s=(step_s,) * pairs,
        eager_first=(True,) * pairs,
        inner_loops=1,
        warmup_s=0.5,
        sampling_s=2.0,
        stop_reason=StopReason.TIME_CAP,
    )


def make_launches(compute_s: Sequence[float], memory_s: float = 0.04, **timing: float) -> list[Launch]:
    return [
        {Work.COMPUTE: make_timing(step_s, **timing), Work.MEMORY: make_timing(memory_s, **timing)}
        for step_s in compute_s
    ]


def noise_of(*compute_s: float, **timing: float) -> Noise:
    return judge(make_launches(compute_s, **timing), 60.0)


class Clock:
    """Time that passes when a launch is made."""

    def __init__(self, *costs_s: float) -> None:
        self.now_s, self.costs_s, self.made = 0.0, list(costs_s), list[Assignment]()

    def __call__(self) -> float:
        return self.now_s

    def launch(self, assignment: Assignment) -> Launch:
        self.made.append(assignment)
        self.now_s += self.costs_s.pop(0) if len(self.costs_s) > 1 else self.costs_s[0]
        return make_launches([0.01])[0]


@pytest.mark.parametrize(
    ("seconds", "costs_s", "launches"),
    [(60.0, (10.0,), 6), (60.0, (8.0,), 7), (60.0, (40.0, 8.0), 3), (60.0, (90.0,), LEAST), (60.0, (0.1,), MOST)],
)
def test_launches_fill_the_time(seconds: float, costs_s: tuple[float, ...], launches: int) -> None:
    """Another launch is made while one like the last fits into the time; three at least, thirty at most."""
    clock = Clock(*costs_s)
    found = measure(CPU, seconds, launch=clock.launch, clock=clock)

    assert launches == found.launches == len(clock.made)
    assert found.seconds == pytest.approx(clock.now_s)


def test_each_launch_is_drawn_anew() -> None:
    """Launches differ in their seed and in nothing else."""
    clock = Clock(15.0)
    measure(CPU, 60.0, launch=clock.launch, clock=clock)

    assert [0, 1, 2, 3] == [each.seed for each in clock.made]
    assert [clock.made[0]] * 4 == [each.model_copy(update={"seed": 0}) for each in clock.made]


def test_spread_by_hand() -> None:
    """Launches at 1 and e^0.02 times 10 ms in turn: the log times have a standard deviation of 1.15 % of four."""
    compute = noise_of(0.01, 0.01 * math.exp(0.02), 0.01, 0.01 * math.exp(0.02)).works[0]

    expected = math.sqrt(4 * 0.01**2 / 3)
    assert expected == pytest.approx(compute.spread)
    assert math.expm1(detectable(expected, COMPARED)) == pytest.approx(compute.smallest_change)


def test_scale_changes_nothing() -> None:
    """A machine that is three times as slow sees changes as small."""
    fast, slow = noise_of(0.01, 0.0101, 0.0102), noise_of(0.03, 0.0303, 0.0306)

    assert fast.works[0].smallest_change == pytest.approx(slow.works[0].smallest_change)


def test_half_width_within_a_launch() -> None:
    """The half-width is that of the ratio's own interval: a swing of 3 % to both sides gives about 3 %."""
    compute = noise_of(*[0.01] * 5, spread=0.03).works[0]

    assert 0.03 == pytest.approx(compute.half_width, rel=0.02)
    assert 0.0 == compute.spread


def test_too_few_pairs_have_no_half_width() -> None:
    """Launches with five pairs have no interval, say why, and still a spread between them."""
    compute = noise_of(0.01, 0.0101, 0.0102, pairs=5).works[0]

    assert isinstance(compute.ratios[0], NoEstimate)
    assert compute.half_width is None
    assert compute.spread > 0


STEADY = (0.01, 0.01002, 0.00998, 0.01001, 0.00999)


def scaled(times: float) -> list[float]:
    """Return launches that spread so many times as much."""
    return [0.01 * (each / 0.01) ** times for each in STEADY]


@pytest.mark.parametrize(
    ("times", "spread", "level"),
    [(1, 0.0, Level.GOOD), (1, 0.05, Level.GOOD), (20, 0.0, Level.WARNING), (60, 0.0, Level.BAD), (1, 0.2, Level.BAD)],
)
def test_verdict(times: float, spread: float, level: Level) -> None:
    """A host that sees 2 % between builds is good, one that does not see 10 %, there or within a launch, is bad."""
    assert level == finding(noise_of(*scaled(times), spread=spread)).level


def test_verdict_in_words() -> None:
    """The finding names both sizes, the launches they come from and those they are meant for."""
    found = finding(noise_of(*scaled(20), spread=0.005))

    assert found.value is not None
    assert found.value.endswith(" % between builds, 0.5 % in a launch")
    assert "5 + 5 launches must differ by" in found.sentence
    assert "compute-bound work in 5 launches" in found.sentence
    assert found.remedy


def test_few_launches_are_called_a_guess() -> None:
    """From fewer than five launches no host is good, and the sentence says that it is a guess."""
    found = finding(noise_of(*STEADY[:3]))

    assert Level.NOTE == found.level
    assert "little more than a guess" in found.sentence
    assert "--seconds 120" in (found.remedy or "")


def test_launch() -> None:
    """A real launch times both kinds of work in pairs."""
    found = start(Assignment(profile=CPU, seconds=0.3, seed=1))

    assert {Work.COMPUTE, Work.MEMORY} == set(found)
    assert all(len(timing.eager_s) == len(timing.compiled_s) > 0 for timing in found.values())


def test_hanging_launch(monkeypatch: pytest.MonkeyPatch) -> None:
    """A launch draws its own hash seed, gets the variables of its profile, and may not hang."""
    monkeypatch.setenv("PYTHONHASHSEED", "7")
    profile = CPU.model_copy(update={"environment": {"OMP_PROC_BIND": "true"}})
    seen: dict[str, str] = {}

    def run(command: list[str], *, env: dict[str, str], **rest: object) -> None:
        seen.update(env)
        raise noise.subprocess.TimeoutExpired(command, 1)

    monkeypatch.setattr(noise.subprocess, "run", run)
    with pytest.raises(BenchError, match="no answer within"):
        start(Assignment(profile=profile, seconds=0.3, seed=1))

    assert "true" == seen["OMP_PROC_BIND"]
    assert "PYTHONHASHSEED" not in seen


def test_failed_launch_says_why() -> None:
    """A launch on a device that is not there ends in one sentence with the cause."""
    with pytest.raises(BenchError, match="exit code 1 and said: .*no_such_package"):
        start(Assignment(profile=DeviceProfile(name="x", kind="no_such_package:Device"), seconds=0.1, seed=0))
