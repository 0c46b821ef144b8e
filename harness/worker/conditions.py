"""The device and the host while a case is timed: looked at before, between pairs and after, never inside a sample."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from statistics import median

from harness.host.cgroup import text
from harness.host.reading import Reading
from harness.record import ClockLock, Conditions
from harness.worker.device import Device

EVERY_S = 0.25
"""Fewest seconds between two looks at the device: one may take milliseconds, and the device is idle meanwhile."""

SLOW_BELOW = 0.75
"""A clock below this share of the wanted one is slow (statistics.md, 5)."""

ASTRAY = 0.05
"""How far a held clock may be found from where it is held: drivers round to steps of 15 MHz."""


class Watch:
    """Looks at a device from its making to `conditions`.

    Args:
        held_mhz: the clock is held there; None: it is not held.
    """

    def __init__(self, device: Device, held_mhz: float | None = None, stat: Path = Path("/proc/stat")) -> None:
        self._device = device
        self._held_mhz = held_mhz
        self._wanted_mhz = held_mhz or device.highest_clock_mhz()
        self._stat = stat
        self._readings: list[Reading] = []
        self._times = _processor_times(stat)
        self._look()

    def between(self) -> None:
        """Look at the device, unless it was looked at a moment ago."""
        if self._device.clock() - self._looked_s >= EVERY_S:
            self._look()

    def conditions(self) -> Conditions:
        """Look once more, and return what was seen."""
        self._look()
        readings = self._readings
        clocks = [each.clock_mhz for each in readings if each.clock_mhz is not None and not each.idle]
        wanted = self._wanted_mhz
        return Conditions(
            readings=len(readings),
            clock_wanted_mhz=wanted,
            clock_before_mhz=readings[0].clock_mhz,
            clock_median_mhz=median(clocks) if clocks else None,
            clock_lowest_mhz=min(clocks, default=None),
            slow_share=sum(mhz < SLOW_BELOW * wanted for mhz in clocks) / len(clocks) if clocks and wanted else None,
            lock=self._lock(),
            throttle_reasons=_union(each.throttle_reasons for each in readings),
            temperature_c=_highest(each.temperature_c for each in readings),
            power_w=_highest(each.power_w for each in readings),
            foreign_processes=_union(each.foreign_processes for each in readings),
            steal_share=_steal_share(self._times, _processor_times(self._stat)),
        )

    def _look(self) -> None:
        self._readings.append(self._device.read())
        self._looked_s = self._device.clock()

    def _lock(self) -> ClockLock | None:
        """Whether a held clock stayed: lost if it was once found elsewhere, at work and without a reason for it."""
        if self._held_mhz is None:
            return None
        for each in self._readings:
            if each.clock_mhz is None or each.idle or each.throttle_reasons:
                continue
            if abs(each.clock_mhz - self._held_mhz) > ASTRAY * self._held_mhz:
                return ClockLock.LOST
        return ClockLock.HELD


def _highest(seen: Iterable[float | None]) -> float | None:
    return max((value for value in seen if value is not None), default=None)


def _union(seen: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    return tuple(sorted({word for words in seen for word in words}))


def _processor_times(stat: Path) -> tuple[int, int] | None:
    """Return ticks until now that were stolen, and those wanted, of the processors that this process may run on.

    Wanted are those at work and those stolen, as nobody takes an idle one. None where the kernel does not tell
    (proc(5), `/proc/stat`: user nice system idle iowait irq softirq steal ...).
    """
    if not hasattr(os, "sched_getaffinity"):
        return None
    usable = {f"cpu{number}" for number in os.sched_getaffinity(0)}
    rows = [words for line in text(stat).splitlines() if (words := line.split())[:1] and words[0] in usable]
    times = [[int(word) for word in words[1:9]] for words in rows if len(words) >= 9]
    wanted = sum(sum(each) - each[3] - each[4] for each in times)
    return (sum(each[7] for each in times), wanted) if times else None


def _steal_share(first: tuple[int, int] | None, last: tuple[int, int] | None) -> float | None:
    """None also where nobody wanted a tick."""
    if first is None or last is None or last[1] <= first[1]:
        return None
    return (last[0] - first[0]) / (last[1] - first[1])
