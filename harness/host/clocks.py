"""Holds a GPU's clock at one frequency during a run, and lets it go however the run ends.

The lock is the business of a guard, a process of its own that takes it, waits for the end of its standard input and
releases it. The kernel closes that pipe when the parent ends in any way, SIGKILL included.

    python -m harness.host.clocks INDEX MEGAHERTZ
"""

from __future__ import annotations

import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from harness.host.nvml import Gpu, Monitor, Refused
from harness.record import ClockLock, Conditions, DeviceProfile

ANSWER_LIMIT_S = 60.0
"""For the guard to start from a cold disk and to hear from the driver."""

RELEASE_LIMIT_S = 10.0

_HELD = "held"


@dataclass(frozen=True)
class Lock:
    """What became of the wish to hold a clock."""

    clock_mhz: int | None = None
    """Where it is held; None: it is not."""
    refused: str | None = None
    """Why it is not."""
    guard: subprocess.Popen[str] | None = None

    @property
    def state(self) -> ClockLock:
        """How it stands now. A guard that is gone guards nothing."""
        if self.clock_mhz is None:
            return ClockLock.REFUSED
        return ClockLock.HELD if self.guard is None or self.guard.poll() is None else ClockLock.LOST


@contextmanager
def held(profile: DeviceProfile, gpu: Gpu | None) -> Iterator[Lock | None]:
    """Hold the clock of `gpu` while the block runs, if the profile asks for it. None: it does not.

    The frequency is the profile's, or what the driver names as its default for applications. A driver that refuses,
    most often for want of permission, is no error: the lock says so. A lock that somebody else took before is taken
    over, and is gone afterwards: no driver tells of it.
    """
    if not profile.lock_clocks:
        yield None
        return
    if gpu is None:
        yield Lock(refused="only clocks of NVIDIA's GPUs can be held here, and none was found")
        return
    clock_mhz = profile.clock_mhz or Monitor(gpu.index).default_clock_mhz
    if clock_mhz is None:
        yield Lock(refused="the driver names no default clock for applications, and the profile gives no clock_mhz")
        return
    command = [sys.executable, "-m", "harness.host.clocks", str(gpu.index), str(int(clock_mhz))]
    guard = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True)
    said = None
    try:
        said = _answer(guard)
        yield Lock(int(clock_mhz), guard=guard) if said == _HELD else Lock(refused=said or "its guard did not start")
    finally:
        if not _dismissed(guard) and said != "":  # it was killed, or hangs: then it is for us to do
            Monitor(gpu.index).release()


def as_held(profile: DeviceProfile, lock: Lock | None) -> DeviceProfile:
    """Return the profile as a child is to see it: its clock is what is really held."""
    clock_mhz = lock.clock_mhz if lock is not None else None
    return profile.model_copy(update={"lock_clocks": clock_mhz is not None, "clock_mhz": clock_mhz})


def judged(conditions: Conditions | None, lock: Lock | None) -> Conditions | None:
    """Return what a child saw, with what it cannot know: that the lock was refused, or that its guard is gone."""
    if conditions is None or lock is None or lock.state == ClockLock.HELD:
        return conditions
    return conditions.model_copy(update={"lock": lock.state})


def _answer(guard: subprocess.Popen[str]) -> str:
    """Return what the guard says first: `held`, or why not; nothing if it died before."""
    assert guard.stdout is not None
    ready, _, _ = select.select([guard.stdout], [], [], ANSWER_LIMIT_S)
    return guard.stdout.readline().strip() if ready else f"no answer from the driver within {ANSWER_LIMIT_S:.0f} s"


def _dismissed(guard: subprocess.Popen[str]) -> bool:
    """Whether the guard has left by itself, its work done."""
    for pipe in (guard.stdin, guard.stdout):
        if pipe is not None:
            pipe.close()
    try:
        return guard.wait(RELEASE_LIMIT_S) == 0
    except subprocess.TimeoutExpired:
        guard.kill()
        guard.wait()
        return False


def main() -> None:
    """Be the guard."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    index, clock_mhz = (int(word) for word in sys.argv[1:3])
    monitor = Monitor(index)
    try:
        monitor.hold(clock_mhz)
    except Refused as refused:
        print(refused, flush=True)
        return
    try:
        print(_HELD, flush=True)
        sys.stdin.read()
    finally:
        monitor.release()


if __name__ == "__main__":
    main()
