"""What the control groups of this process allow it, version 1 and 2.

A limit of any group above counts as well. Inside a container the path in `/proc/self/cgroup` may be
that of the host and name nothing here; the group mounted at the top is then the container's own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

UNLIMITED_BYTES = 1 << 62
"""Version 1 says "no limit" as the largest multiple of a page below 2**63."""


@dataclass(frozen=True)
class Allowance:
    """The tightest limits; None: no limit, or unknown.

    Args:
        cores: processors' worth of time, e.g. 1.5.
        memory_free_bytes: what is left of the memory, where files that can be dropped count as free.
    """

    cores: float | None = None
    memory_bytes: int | None = None
    memory_free_bytes: int | None = None


def read(root: Path = Path("/")) -> Allowance:
    """Return what this process is allowed. Missing and odd files count as no limit."""
    cores: list[float] = []
    memory: list[int] = []
    free: list[int] = []
    for folder in _groups(root):
        if (quota := _cores(folder)) is not None:
            cores.append(quota)
        if (limit := _limit(folder, "memory.max", "memory.limit_in_bytes")) is not None:
            memory.append(limit)
            if (used := _limit(folder, "memory.current", "memory.usage_in_bytes")) is not None:
                free.append(max(0, limit - used + _droppable(folder)))
    return Allowance(
        cores=min(cores, default=None),
        memory_bytes=min(memory, default=None),
        memory_free_bytes=min(free, default=None),
    )


def _groups(root: Path) -> Iterator[Path]:
    """The folders of this process's groups and of all groups above them, each hierarchy where it is mounted."""
    mounted = root / "sys/fs/cgroup"
    for line in text(root / "proc/self/cgroup").splitlines():
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        names = ["", "unified"] if number == "0" else [controllers, *controllers.split(",")]
        top = next((mounted / name for name in names if (mounted / name).is_dir()), None)
        if top is None:
            continue
        below = [part for part in path.split("/") if part not in ("", "..")]
        for depth in range(len(below) + 1):
            yield top.joinpath(*below[:depth])


def _cores(folder: Path) -> float | None:
    words = text(folder / "cpu.max").split() or [
        *text(folder / "cpu.cfs_quota_us").split(),
        *text(folder / "cpu.cfs_period_us").split(),
    ]
    try:
        quota, period = (int(word) for word in words)
    except ValueError:  # "max", or a file that is not there
        return None
    return quota / period if quota > 0 and period > 0 else None


def _limit(folder: Path, *names: str) -> int | None:
    for name in names:
        word = text(folder / name)
        if word.isdecimal():
            return int(word) if int(word) < UNLIMITED_BYTES else None
    return None


def _droppable(folder: Path) -> int:
    """Bytes of files in memory that were not used lately: the kernel gives them up before it kills."""
    fields = dict(line.split(maxsplit=1) for line in text(folder / "memory.stat").splitlines() if " " in line)
    word = fields.get("total_inactive_file", fields.get("inactive_file", "0"))
    return int(word) if word.isdecimal() else 0


def text(path: Path) -> str:
    """Return what a file of the kernel says, or an empty string where it says nothing."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""
