"""What there is to see of a host before it measures, as one value. Unknown is None.

    with facts as they stand -> half a second of watching -> `Sight`

While it watches it keeps one processor busy: a hypervisor takes time only from those who want some.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from harness.doctor.sight import NAME_LENGTH, GpuSight, Place, Sight, Tenant, Watched
from harness.host import cpu, detect, nvml
from harness.host.cgroup import text
from harness.host.nvml import Gpu
from harness.report import printable

WATCH_S = 0.5
"""How long others are watched: fifty ticks of the kernel's clock of 100 Hz."""

SYNC_BYTES = 4096
SYNCS = 3
"""Writes that are timed; the median counts, as the first may wait for what others have written."""

VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OMP_THREAD_LIMIT")
"""Environment variables that decide on threads."""


def gpu_sight(gpu: Gpu) -> GpuSight:
    monitor = nvml.Monitor(gpu.index)
    return GpuSight(gpu.name, monitor.read(), monitor.highest_clock_mhz)


def look(
    places: Mapping[str, Path],
    *,
    root: Path = Path("/"),
    watch_s: float = WATCH_S,
    gpus: Callable[[], Sequence[Gpu]] = nvml.gpus,
    look_at: Callable[[Gpu], GpuSight] = gpu_sight,
) -> Sight:
    """Look at this host; takes `watch_s` and some tens of milliseconds.

    Args:
        places: what for -> the folder or file that it will be written to, e.g. `journals`. The first is where a
            record is synced, so its disk is timed.
        root: where `proc` and `sys` lie.
        gpus, look_at: finds NVIDIA's GPUs, and looks at the first of them.
    """
    machine = detect.look(cpu_facts=lambda: cpu.read(root), gpus=gpus)
    facts = machine.cpu
    memory, swap = psutil.virtual_memory(), psutil.swap_memory()
    ticks = Ticks.read(root)
    free = [memory.available, *([] if facts.cgroup_memory_free_bytes is None else [facts.cgroup_memory_free_bytes])]
    watched = watch(root, watch_s)  # before the disk is made busy
    return Sight(
        machine=machine,
        watched=watched,
        load_average=os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
        steal_since_boot=ticks.steal_share if ticks else None,
        throttled_since_boot=_throttled(root),
        limit_mhz=_limit_mhz(root, facts.usable),
        memory_bytes=facts.cgroup_memory_bytes or facts.memory_bytes or memory.total,
        memory_free_bytes=min(free),
        swap_used_bytes=swap.used,
        places=tuple(place(*item, timed=number == 0) for number, item in enumerate(places.items())),
        compiler=_compiler(),
        c_compiler=_c_compiler(),
        variables={name: os.environ[name] for name in VARIABLES if name in os.environ},
        root_user=hasattr(os, "geteuid") and os.geteuid() == 0,
        gpu=look_at(machine.gpus[0]) if machine.gpus else None,
    )


@dataclass(frozen=True)
class Ticks:
    """The kernel's sums over all processors since boot, in ticks (`man 5 proc_stat`)."""

    busy: int
    steal: int

    @classmethod
    def read(cls, root: Path) -> Ticks | None:
        words = text(root / "proc/stat").partition("\n")[0].split()
        if len(words) < 9 or words[0] != "cpu":
            return None
        user, nice, system, _idle, _wait, irq, softirq, steal = map(int, words[1:9])
        return cls(busy=user + nice + system + irq + softirq, steal=steal)

    def __sub__(self, other: Ticks) -> Ticks:
        return Ticks(self.busy - other.busy, self.steal - other.steal)

    @property
    def steal_share(self) -> float:
        wanted = self.busy + self.steal
        return self.steal / wanted if wanted else 0.0


def watch(root: Path = Path("/"), seconds: float = WATCH_S, *, spin: Callable[[float], None] | None = None) -> Watched:
    """Keep one processor busy for so long and see who else took time."""
    begun_s = time.monotonic()
    ticks, times = Ticks.read(root), _process_times()
    own_s, swap, throttled = _own_seconds(), psutil.swap_memory(), _throttled(root)
    (spin or _spin)(seconds)
    spent_s = time.monotonic() - begun_s
    passed = later - ticks if ticks and (later := Ticks.read(root)) else None
    own_s = _own_seconds() - own_s
    swap_later, throttled_later = psutil.swap_memory(), _throttled(root)
    busy_s = passed.busy / os.sysconf("SC_CLK_TCK") - own_s if passed else None
    return Watched(
        seconds=spent_s,
        busy_cores=None if busy_s is None else max(0.0, busy_s / spent_s),
        steal_share=passed.steal_share if passed else None,
        tenants=tenants(times, _process_times(), spent_s),
        swapped_bytes=swap_later.sin + swap_later.sout - swap.sin - swap.sout,
        throttled=None if throttled is None or throttled_later is None else throttled_later - throttled,
    )


def _spin(seconds: float) -> None:
    until_s = time.monotonic() + seconds
    while time.monotonic() < until_s:
        pass


def _family() -> list[psutil.Process]:
    own = psutil.Process()
    return [own, *own.children(recursive=True)]


def _own_seconds() -> float:
    total_s = 0.0
    for process in _family():
        with contextlib.suppress(psutil.Error):
            spent = process.cpu_times()
            total_s += spent.user + spent.system
    return total_s


def _process_times() -> dict[tuple[int, float], tuple[str, float]]:
    """Name and seconds of each process of others. The time of its start tells reused ids apart."""
    ours = {process.pid for process in _family()}
    found = {}
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.pid not in ours:
                spent = process.cpu_times()
                found[process.pid, process.create_time()] = (process.name(), spent.user + spent.system)
    return found


def tenants(
    before: Mapping[tuple[int, float], tuple[str, float]],
    after: Mapping[tuple[int, float], tuple[str, float]],
    seconds: float,
) -> tuple[Tenant, ...]:
    """Return who took time, most first. One that began meanwhile counts with all it took."""
    found = []
    for (pid, begun), (name, spent_s) in after.items():
        cores = (spent_s - before.get((pid, begun), (name, 0.0))[1]) / seconds
        if cores > 0:
            found.append(Tenant(printable(name)[:NAME_LENGTH], pid, cores))
    return tuple(sorted(found, key=lambda tenant: -tenant.cores))


def _throttled(root: Path) -> int | None:
    """Times that cores were slowed down for heat since boot; None where the kernel keeps no such count."""
    folders = (root / "sys/devices/system/cpu").glob("cpu[0-9]*/thermal_throttle")
    counts = [text(folder / "core_throttle_count") for folder in folders]
    told = [int(count) for count in counts if count.isdigit()]
    return sum(told) if told else None


def _limit_mhz(root: Path, logicals: Sequence[int]) -> float | None:
    system = root / "sys/devices/system/cpu"
    limits = [text(system / f"cpu{logical}/cpufreq/scaling_max_freq") for logical in logicals]
    return min((int(khz) / 1000 for khz in limits if khz.isdigit()), default=None)


def place(purpose: str, path: Path, *, timed: bool) -> Place:
    """What there is to say of a folder that may not exist yet: then it will be made in the nearest one that does."""
    folder = path.absolute()
    while not folder.is_dir() and folder != folder.parent:
        folder = folder.parent
    try:
        free_bytes = shutil.disk_usage(folder).free
    except OSError:
        free_bytes = None
    writable = os.access(folder, os.W_OK)
    return Place(purpose, folder, free_bytes, writable, _sync_s(folder) if timed and writable else None)


def _sync_s(folder: Path) -> float | None:
    """Median seconds of a small write until the disk has it; None where it cannot be tried."""
    taken_s = []
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            for _ in range(SYNCS):
                begun_s = time.perf_counter()
                file.write(b"\0" * SYNC_BYTES)
                file.flush()
                os.fsync(file.fileno())
                taken_s.append(time.perf_counter() - begun_s)
    except OSError:
        return None
    return sorted(taken_s)[SYNCS // 2]


def _compiler() -> str | None:
    path = shutil.which(os.environ.get("CXX", "g++"))
    try:
        done = subprocess.run([path or "", "--version"], capture_output=True, text=True, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return printable(done.stdout) or path


def _c_compiler() -> str | None:
    """What Triton looks for: `CC`, then gcc, then clang."""
    own = os.environ.get("CC")
    return shutil.which(own) if own else shutil.which("gcc") or shutil.which("clang")
