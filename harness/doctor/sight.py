"""What was seen of a host, as one value that tests can make up. Unknown is None."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from harness.host.detect import Machine
from harness.host.reading import Reading
from harness.record import DeviceProfile, Finding, Level

NAME_LENGTH = 40
"""Most characters of a program's name that are kept."""


@dataclass(frozen=True)
class Tenant:
    """A process that is not ours, and the processors' worth of time that it took."""

    name: str
    pid: int
    cores: float


@dataclass(frozen=True)
class Place:
    """Where files go."""

    purpose: str
    path: Path
    free_bytes: int | None
    writable: bool
    sync_s: float | None = None
    """Of a small synced write; None: not tried."""


@dataclass(frozen=True)
class Watched:
    """What happened on the host within some time, but for what this process and its children did."""

    seconds: float
    busy_cores: float | None = None
    """Processors' worth of time that others took."""
    steal_share: float | None = None
    """Of the time that was wanted, what the hypervisor gave to other machines."""
    tenants: tuple[Tenant, ...] = ()
    swapped_bytes: int | None = None
    throttled: int | None = None
    """Times that a processor was slowed down because it was hot."""


@dataclass(frozen=True)
class GpuSight:
    """The NVIDIA GPU that is measured."""

    name: str
    reading: Reading
    highest_mhz: float | None = None


@dataclass(frozen=True)
class Sight:
    """All that the checks look at."""

    machine: Machine
    watched: Watched
    load_average: float | None = None
    """Of one minute: this process and its children are in it."""
    steal_since_boot: float | None = None
    throttled_since_boot: int | None = None
    limit_mhz: float | None = None
    """Lowest of the clocks that the processors may reach, as set by the system."""
    memory_bytes: int | None = None
    memory_free_bytes: int | None = None
    swap_used_bytes: int | None = None
    places: tuple[Place, ...] = ()
    compiler: str | None = None
    """C++ compiler that inductor calls, with its version."""
    c_compiler: str | None = None
    variables: Mapping[str, str] = field(default_factory=dict)
    root_user: bool = False
    gpu: GpuSight | None = None


Check = Callable[[Sight, DeviceProfile], Finding | None]
"""Answers one question; None: it does not apply to this profile."""


def found(check: str, level: Level, value: str | None, sentence: str, remedy: str | None = None) -> Finding:
    return Finding(check=check, level=level, value=value, sentence=sentence, remedy=remedy)
