"""What is seen of a device while a case is timed, in virtual time, and what is made of it."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from harness.derive import derive
from harness.host.reading import Reading
from harness.record import ClockLock, Conditions, Flag, Observed, Outcome
from harness.worker.conditions import EVERY_S, Watch
from tests.fakes import FakeDevice

FAST = Reading(clock_mhz=1400.0, temperature_c=50.0, power_w=200.0)


def seen(*readings: Reading, held_mhz: float | None = None, highest_mhz: float | None = 1410.0) -> Conditions:
    """What a watch makes of these looks, one before, one after and the rest between."""
    device = FakeDevice(readings=readings, highest_mhz=highest_mhz)
    watch = Watch(device, held_mhz)
    for _ in readings[1:-1]:
        device.now_s += EVERY_S
        watch.between()
    return watch.conditions()


def flags(conditions: Conditions) -> set[Flag]:
    return set(derive(Outcome.PASS, Observed(), None, None, None, None, conditions).flags)


def test_before_between_and_after() -> None:
    """The device is looked at before, between samples and after: clocks in order, the highest of heat and power."""
    hot = Reading(clock_mhz=1300.0, temperature_c=70.0, power_w=250.0)
    conditions = seen(FAST, hot, replace(FAST, clock_mhz=1350.0))

    assert 3 == conditions.readings
    assert (1400.0, 1350.0, 1300.0) == (
        conditions.clock_before_mhz,
        conditions.clock_median_mhz,
        conditions.clock_lowest_mhz,
    )
    assert (1410.0, 0.0) == (conditions.clock_wanted_mhz, conditions.slow_share)
    assert (70.0, 250.0, None) == (conditions.temperature_c, conditions.power_w, conditions.lock)
    assert set() == flags(conditions)


def test_not_too_often() -> None:
    """However short the samples, the device is looked at four times a second at most."""
    device = FakeDevice(readings=(FAST,))
    watch = Watch(device)
    for _ in range(1000):
        device.now_s += 0.001
        watch.between()

    assert 2 + 3 <= watch.conditions().readings <= 2 + 4


def test_nothing_told() -> None:
    """A device that tells nothing has been looked at, and all is unknown."""
    conditions = seen(Reading(), Reading(), highest_mhz=None)

    unknown = conditions.model_dump(exclude={"readings", "steal_share"}, exclude_defaults=True)
    assert (2, {}) == (conditions.readings, unknown)


@pytest.mark.parametrize(("slow", "throttled"), [(1, False), (2, True)])
def test_throttled(slow: int, throttled: bool) -> None:
    """A result is marked where more than a tenth of the looks found the clock below 75 % of what it could be."""
    slower = replace(FAST, clock_mhz=1000.0, throttle_reasons=("power cap",))
    conditions = seen(*[FAST] * (12 - slow), *[slower] * slow)

    assert slow / 12 == pytest.approx(conditions.slow_share)
    assert ("power cap",) == conditions.throttle_reasons
    assert ({Flag.THROTTLED} if throttled else set()) == flags(conditions)


def test_idle() -> None:
    """The clock of an idle device is no slow clock, nor a lost one."""
    asleep = Reading(clock_mhz=210.0, idle=True)
    conditions = seen(asleep, FAST, replace(FAST, clock_mhz=1410.0), held_mhz=1410.0)

    assert (1400.0, ClockLock.HELD) == (conditions.clock_lowest_mhz, conditions.lock)
    assert set() == flags(conditions)


def test_held() -> None:
    """A clock that is held is held against where it is held, within the driver's steps, not against the highest."""
    steady = replace(FAST, clock_mhz=1110.0)
    conditions = seen(steady, steady, steady, held_mhz=1095.0)

    assert (1095.0, 0.0, ClockLock.HELD) == (conditions.clock_wanted_mhz, conditions.slow_share, conditions.lock)
    assert set() == flags(conditions)


@pytest.mark.parametrize("clock_mhz", [1000.0, 1300.0])
def test_lost(clock_mhz: float) -> None:
    """A held clock that is found elsewhere, higher or lower, without a reason, was lost."""
    steady = replace(FAST, clock_mhz=1095.0)
    conditions = seen(steady, replace(FAST, clock_mhz=clock_mhz), steady, held_mhz=1095.0)

    assert ClockLock.LOST == conditions.lock
    assert {Flag.UNLOCKED} == flags(conditions)


def test_held_and_throttled() -> None:
    """A held clock that a power cap brings down is throttled, not lost."""
    capped = replace(FAST, clock_mhz=700.0, throttle_reasons=("power cap",))
    conditions = seen(capped, capped, held_mhz=1095.0)

    assert ClockLock.HELD == conditions.lock
    assert {Flag.THROTTLED} == flags(conditions)


def test_shared() -> None:
    """Others on the device are named, also those seen only once."""
    conditions = seen(FAST, replace(FAST, foreign_processes=("blender", "python")), FAST)

    assert ("blender", "python") == conditions.foreign_processes
    assert {Flag.SHARED} == flags(conditions)


@pytest.mark.parametrize(("stolen", "flagged"), [(1, False), (3, True)])
def test_stolen_time(tmp_path: Path, stolen: int, flagged: bool) -> None:
    """What a hypervisor gave to others while timing counts as a share of the time that the processors were wanted."""
    stat = tmp_path / "stat"
    mine = min(os.sched_getaffinity(0))

    def write(user: int, steal: int) -> None:
        stat.write_text(
            f"cpu  9 9 9 9 9 9 9 999 0 0\ncpu{mine} {user} 0 0 {user} 7 0 0 {steal} 0 0\ncpu4095 0 0 0 9 0 0 0 9 0 0\n"
        )

    write(100, 50)
    watch = Watch(FakeDevice(readings=(FAST,)), stat=stat)
    write(200 - stolen, 50 + stolen)
    conditions = watch.conditions()

    assert stolen / 100 == pytest.approx(conditions.steal_share)
    assert ({Flag.SHARED} if flagged else set()) == flags(conditions)


def test_kernel_does_not_tell(tmp_path: Path) -> None:
    """Without the kernel's file the stolen share is unknown."""
    assert Watch(FakeDevice(readings=(FAST,)), stat=tmp_path / "absent").conditions().steal_share is None
