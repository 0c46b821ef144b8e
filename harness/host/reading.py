"""What one look at a device shows: its clock, its heat, who else is on it. Unknown is None."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Reading:
    """One look at a device, outside of what is timed."""

    clock_mhz: float | None = None
    idle: bool = False
    """The driver calls the device idle: its clock then says nothing about how fast it works."""
    throttle_reasons: tuple[str, ...] = ()
    """Why the clock is lower than it could be, e.g. `power cap`."""
    temperature_c: float | None = None
    power_w: float | None = None
    foreign_processes: tuple[str, ...] = ()
    """Programs of others on the device."""
