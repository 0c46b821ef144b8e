"""A held clock is let go on every way out. The driver is a file, and the guard a real process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

from harness.host import nvml
from harness.host.clocks import Lock, as_held, held, judged
from harness.record import ClockLock, Conditions, DeviceProfile
from tests.fakes import Driver

PROFILE = DeviceProfile(name="a100", kind="cuda", lock_clocks=True)

PARENT = """
import signal, time
from harness.host import nvml
from harness.host.clocks import held
from harness.record import DeviceProfile

# As at a terminal: whoever started the tests may have had signals ignored, as nohup does.
signal.signal(signal.SIGINT, signal.default_int_handler)
for number in (signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, signal.SIG_DFL)

with held(DeviceProfile(name="a100", kind="cuda", lock_clocks=True), nvml.gpus()[0]) as lock:
    print(lock.clock_mhz, flush=True)
    time.sleep(600)
"""


@pytest.fixture
def gpu(driver: Driver) -> nvml.Gpu:
    return nvml.gpus()[0]


def released(driver: Driver, within_s: float = 1.0) -> bool:
    end = time.monotonic() + within_s
    while driver.locked is not None and time.monotonic() < end:
        time.sleep(0.02)
    return driver.locked is None


def test_normal_end(driver: Driver, gpu: nvml.Gpu) -> None:
    """The clock is held at the driver's default while the block runs, and let go once when it ends."""
    with held(PROFILE, gpu) as lock:
        assert lock is not None
        assert (ClockLock.HELD, 1095) == (lock.state, lock.clock_mhz)
        assert [1095, 1095] == driver.locked

    assert [[1095, 1095], None] == driver.history


def test_frequency_of_the_profile(driver: Driver, gpu: nvml.Gpu) -> None:
    """A profile may say where to hold it."""
    with held(PROFILE.model_copy(update={"clock_mhz": 1200}), gpu):
        assert [1200, 1200] == driver.locked


def test_exception(driver: Driver, gpu: nvml.Gpu) -> None:
    """An exception lets it go, and comes out as it was."""
    with pytest.raises(ZeroDivisionError), held(PROFILE, gpu):
        raise ZeroDivisionError

    assert driver.locked is None


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_signal(driver: Driver, number: signal.Signals) -> None:
    """A parent that is ended by a signal, also one that nobody can catch, leaves the clock free within a second."""
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    assert parent.stdout is not None
    assert "1095\n" == parent.stdout.readline()
    assert [1095, 1095] == driver.locked

    parent.send_signal(number)
    parent.wait(30)

    assert released(driver)


def test_signal_to_the_group(driver: Driver) -> None:
    """Ctrl-C reaches all processes of a terminal, but not the guard: it still lets go after its parent."""
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    assert parent.stdout is not None
    parent.stdout.readline()

    os.killpg(parent.pid, signal.SIGINT)
    parent.wait(30)

    assert released(driver)


def test_guard_killed(driver: Driver, gpu: nvml.Gpu) -> None:
    """A guard that is killed leaves a lock that counts as lost; its parent lets the clock go in its place."""
    with held(PROFILE, gpu) as lock:
        assert lock is not None
        assert lock.guard is not None
        lock.guard.kill()
        lock.guard.wait()
        assert [1095, 1095] == driver.locked
        assert ClockLock.LOST == lock.state

    assert driver.locked is None


def test_deaf_guard(driver: Driver, gpu: nvml.Gpu) -> None:
    """A guard does not go for SIGTERM or SIGINT: only its parent's end counts."""
    with held(PROFILE, gpu) as lock:
        assert lock is not None
        assert lock.guard is not None
        lock.guard.send_signal(signal.SIGTERM)
        lock.guard.send_signal(signal.SIGINT)
        time.sleep(0.2)
        assert (ClockLock.HELD, [1095, 1095]) == (lock.state, driver.locked)

    assert driver.locked is None


def test_no_permission(driver: Driver, gpu: nvml.Gpu) -> None:
    """A driver that refuses is no error: the lock says so, and why."""
    driver.change(refuses={"nvmlDeviceSetGpuLockedClocks": 4})

    with held(PROFILE, gpu) as lock:
        assert lock is not None
        assert (ClockLock.REFUSED, None, "Insufficient Permissions") == (lock.state, lock.clock_mhz, lock.refused)

    assert [] == driver.history


def test_guard_does_not_start(driver: Driver, gpu: nvml.Gpu, monkeypatch: pytest.MonkeyPatch) -> None:
    """A guard that dies before it holds anything is a refusal, and a lock of somebody else's is left alone."""
    driver.change(locked=[900, 900])
    monkeypatch.setattr(sys, "executable", "/bin/false")

    with held(PROFILE, gpu) as lock:
        assert lock is not None
        assert (ClockLock.REFUSED, "its guard did not start") == (lock.state, lock.refused)

    assert [900, 900] == driver.locked


def test_no_default(driver: Driver, gpu: nvml.Gpu) -> None:
    """Where neither driver nor profile names a frequency, nothing is held."""
    driver.change(default=None)

    with held(PROFILE, gpu) as lock:
        assert lock is not None
        assert (ClockLock.REFUSED, True) == (lock.state, "clock_mhz" in (lock.refused or ""))


def test_not_asked_for(driver: Driver, gpu: nvml.Gpu) -> None:
    """A profile that does not ask starts no guard."""
    with held(DeviceProfile(name="cuda", kind="cuda"), gpu) as lock:
        assert lock is None

    assert [] == driver.history


def test_no_gpu() -> None:
    """A device that is no GPU of NVIDIA's cannot be held."""
    with held(PROFILE, None) as lock:
        assert lock is not None
        assert ClockLock.REFUSED == lock.state


def test_as_held() -> None:
    """A child is told of the clock only what is really held."""
    profile = DeviceProfile(name="a100", kind="cuda", lock_clocks=True, clock_mhz=1200)
    seen = [as_held(profile, lock) for lock in (Lock(clock_mhz=1095), Lock(refused="no"), None)]

    assert [(True, 1095), (False, None), (False, None)] == [(each.lock_clocks, each.clock_mhz) for each in seen]


def test_judged() -> None:
    """What a child saw stands, but where the lock was refused or its guard is gone."""
    seen = Conditions(readings=3, lock=ClockLock.LOST)

    assert judged(seen, Lock(clock_mhz=1095)) == seen
    assert judged(seen, None) == seen
    assert judged(None, Lock(refused="no")) is None
    assert judged(Conditions(readings=3), Lock(refused="no")) == Conditions(readings=3, lock=ClockLock.REFUSED)
