"""What was seen of a host -> findings: each a level, a sentence and, where there is one, a remedy to type. Pure.

A check answers one question and may have no answer (None): then it does not apply to this profile. What
the host does not tell is `unknown`, never good.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from harness.doctor.processor import clocks, governor, heat, numa, smt, threads, turbo, virtual
from harness.doctor.sight import NAME_LENGTH, Check, Sight, found
from harness.host import detect
from harness.record import DeviceProfile, Finding, Level
from harness.report import printable

GIB = 1 << 30

LOAD_CORES = 0.2
"""Others may take this much of one core: what an idle system's own services add up to."""

LOAD_SHARE = 0.5
"""Beyond this share of the machine others do more than we: that is measuring them."""

TENANT_CORES = 0.2
"""A process is worth naming from a fifth of a core on."""

TENANTS_NAMED = 3

STEAL = 0.03
"""Two ticks of fifty: one may be chance."""

STEAL_MUCH = 0.10
"""A tenth of the time gone at random is more than what most comparisons are about."""

STEAL_SINCE_BOOT = 0.01
"""Over hours chance plays no part; a hundredth lost on average means busy neighbours."""

FREE_BYTES = 5 * GIB
"""A margin for a night: the caches of each case go when it ends, journals and the database stay."""

FREE_BYTES_LEAST = 1 * GIB
"""Below this a single case with its caches may fill the disk."""

SYNC_S = 0.1
"""A journal is synced twice per case: a tenth of a second each is far above what a sound disk takes, and is felt."""

MEMORY_SHARE = 0.5
"""With less of its memory free than this a host runs out with models that ran on it before."""

SWAP_SHARE = 0.01
"""Of the memory: less are pages of services that nobody misses."""

CLOCK_SHARE = 0.75
"""A GPU at work with a clock below this share of its highest is slowed down; records are marked by the same share."""

_ORDER = (Level.BAD, Level.WARNING, Level.UNKNOWN, Level.NOTE, Level.GOOD)


def examine(profile: DeviceProfile, sight: Sight) -> tuple[Finding, ...]:
    """Return what each check has to say, the worst first."""
    return worst_first(finding for check in CHECKS if (finding := check(sight, profile)) is not None)


def worst_first(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    return tuple(sorted(findings, key=lambda finding: _ORDER.index(finding.level)))


def device(sight: Sight, profile: DeviceProfile) -> Finding:
    machine = sight.machine
    told = machine.gpus[0].name if profile.kind == "cuda" and machine.gpus else machine.cpu.name
    if wrong := detect.mismatch(profile, machine):
        return found("device", Level.BAD, told, wrong, "bench doctor --device auto, or see `bench list devices`")
    return found("device", Level.GOOD, told, f"The machine is what the profile {profile.name} asks for.")


def load(sight: Sight, profile: DeviceProfile) -> Finding:
    busy = sight.watched.busy_cores
    cores = len(sight.machine.cpu.processors) or sight.machine.cpu.usable_cores
    remedy = "end what else runs, or wait: top -o %CPU"
    if busy is None:
        return found("load", Level.UNKNOWN, None, "The host does not tell how busy its processors are.")
    value = f"{busy:.1f} of {cores} processors"
    if busy > LOAD_SHARE * cores:
        return found("load", Level.BAD, value, "Others take most of this machine: times would be theirs.", remedy)
    if busy > LOAD_CORES:
        sentence = "Others compute: times spread more, and two models may meet different neighbours."
        return found("load", Level.WARNING, value, sentence, remedy)
    if sight.load_average is not None and sight.load_average > LOAD_SHARE * cores:
        sentence = f"Quiet now, but busy within the last minute (load average {sight.load_average:.1f})."
        return found("load", Level.NOTE, value, sentence, "wait a minute and look again")
    return found("load", Level.GOOD, value, "Hardly anybody else computes here.")


def tenants(sight: Sight, profile: DeviceProfile) -> Finding:
    seen = [each for each in sight.watched.tenants if each.cores >= TENANT_CORES]
    if not seen:
        return found("tenants", Level.GOOD, "none", "No other process that can be seen from here is at work.")
    named = _named([f"{each.name} ({each.pid}) {each.cores:.0%}" for each in seen])
    pids = ",".join(str(each.pid) for each in seen[:TENANTS_NAMED])
    verb = "takes" if len(seen) == 1 else "take"
    sentence = f"{len(seen)} other process{'es' * (len(seen) > 1)} {verb} a fifth of a processor or more."
    remedy = f"end them, or wait: ps -o pid,user,etime,args -p {pids}"
    return found("tenants", Level.WARNING, named, sentence, remedy)


def steal(sight: Sight, profile: DeviceProfile) -> Finding:
    now, boot = sight.watched.steal_share, sight.steal_since_boot
    if now is None or boot is None:
        return found("steal", Level.UNKNOWN, None, "The host does not tell what a hypervisor takes from it.")
    value = f"{now:.1%} now, {boot:.2%} since boot"
    remedy = "take an instance with processors of its own, or another hour"
    if now > STEAL_MUCH:
        return found("steal", Level.BAD, value, "The hypervisor gives much of our time to others.", remedy)
    if now > STEAL or boot > STEAL_SINCE_BOOT:
        return found("steal", Level.WARNING, value, "The hypervisor gives some of our time to others.", remedy)
    if boot == 0 and sight.machine.cpu.hypervisor:
        sentence = "None ever: either nobody else is there, or this hypervisor does not tell."
        return found("steal", Level.UNKNOWN, value, sentence)
    return found("steal", Level.GOOD, value, "Time that is wanted is got.")


def memory(sight: Sight, profile: DeviceProfile) -> Finding:
    free, whole = sight.memory_free_bytes, sight.memory_bytes
    if free is None or whole is None:
        return found("memory", Level.UNKNOWN, None, "The host does not tell how much memory is free.")
    value = f"{_gib(free)} of {_gib(whole)} free"
    if free <= profile.memory_reserve_bytes:
        sentence = f"The profile leaves {_gib(profile.memory_reserve_bytes)} to the host: nothing is left for a model."
        return found("memory", Level.BAD, value, sentence, "free some, or lower memory_reserve_bytes in the profile")
    if free < MEMORY_SHARE * whole:
        sentence = "Others hold most of the memory: models may run out that ran here before."
        return found("memory", Level.WARNING, value, sentence, "end what holds it: top -o %MEM")
    return found("memory", Level.GOOD, value, "Most of the memory is free.")


def swap(sight: Sight, profile: DeviceProfile) -> Finding:
    used, moved, whole = sight.swap_used_bytes, sight.watched.swapped_bytes, sight.memory_bytes
    if used is None or whole is None:
        return found("swap", Level.UNKNOWN, None, "The host does not tell about swap.")
    value, remedy = f"{_gib(used)} used", "sudo swapoff -a"
    if moved:
        return found("swap", Level.BAD, value, "Memory is being moved to and from a disk.", remedy)
    if used > SWAP_SHARE * whole:
        return found("swap", Level.NOTE, value, "Pages of somebody lie on a disk and may come back any time.", remedy)
    return found("swap", Level.GOOD, value, "Hardly anything lies on a disk.")


def disk(sight: Sight, profile: DeviceProfile) -> Finding:
    """The worst of the places; their purposes are named."""
    for place in sight.places:
        if not place.writable:
            sentence = f"{place.path}, where {place.purpose} go, cannot be written."
            return found("disk", Level.BAD, place.purpose, sentence, f"sudo chown $USER {place.path}")
    known = [(place.free_bytes, place) for place in sight.places if place.free_bytes is not None]
    if not known:
        return found("disk", Level.UNKNOWN, None, "The host does not tell how much room its disks have.")
    free, least = min(known, key=lambda item: item[0])
    sync_s = next((place.sync_s for place in sight.places if place.sync_s is not None), None)
    value = f"{_gib(free)} free for {least.purpose}" + ("" if sync_s is None else f", sync {1000 * sync_s:.1f} ms")
    remedy = f"make room: du -xh --max-depth=1 {least.path} | sort -h"
    if free < FREE_BYTES_LEAST:
        return found("disk", Level.BAD, value, f"{least.path} is as good as full.", remedy)
    if free < FREE_BYTES:
        return found("disk", Level.WARNING, value, f"{least.path} may fill up during a night.", remedy)
    if sync_s is not None and sync_s > SYNC_S:
        sentence = "The disk is slow to keep what it is given: each record waits for it, between models."
        return found("disk", Level.WARNING, value, sentence, "run in a folder on a local disk")
    return found("disk", Level.GOOD, value, "There is room, and writing is quick enough.")


def compiler(sight: Sight, profile: DeviceProfile) -> Finding | None:
    install = "sudo apt-get install g++, or set CXX"
    if profile.kind == "cpu":
        if sight.compiler:
            return found("compiler", Level.GOOD, sight.compiler, "Inductor has its C++ compiler.")
        sentence = "Inductor compiles C++ on a CPU, and no compiler was found: no model would compile."
        return found("compiler", Level.BAD, "none", sentence, install)
    if profile.kind != "cuda":
        return None
    if not sight.c_compiler:
        sentence = "Triton builds the launchers of its kernels with a C compiler, and none was found."
        return found("compiler", Level.BAD, "none", sentence, "sudo apt-get install gcc, or set CC")
    if not sight.compiler:
        sentence = "Kernels need none in C++; the wrappers in C++ that some options ask for do."
        return found("compiler", Level.NOTE, sight.c_compiler, sentence, install)
    return found("compiler", Level.GOOD, sight.compiler, "Triton and wrappers in C++ have their compilers.")


def gpu_clocks(sight: Sight, profile: DeviceProfile) -> Finding | None:
    if profile.kind != "cuda" or sight.gpu is None:
        return None
    reading, highest = sight.gpu.reading, sight.gpu.highest_mhz
    name = "gpu clocks"
    if reading.throttle_reasons:
        value = ", ".join(reading.throttle_reasons)
        sentence = "The driver says that the GPU is slower than it could be, and why."
        return found(name, Level.WARNING, value, sentence, "nvidia-smi -q -d PERFORMANCE,POWER,TEMPERATURE")
    if reading.clock_mhz is None or highest is None:
        return found(name, Level.UNKNOWN, None, "The driver does not tell the GPU's clock.")
    value = f"{reading.clock_mhz:.0f} of {highest:.0f} MHz" + (", idle" if reading.idle else "")
    if not reading.idle and reading.clock_mhz < CLOCK_SHARE * highest:
        sentence = "The GPU is at work for somebody, and its clock is low."
        return found(name, Level.WARNING, value, sentence, "nvidia-smi -q -d CLOCK,PERFORMANCE")
    if profile.lock_clocks and not sight.root_user:
        sentence = "The profile holds the clock, which most drivers permit to root alone."
        remedy = f"run as root, or once before: sudo nvidia-smi -lgc {profile.clock_mhz or round(highest)}"
        return found(name, Level.WARNING, value, sentence, remedy)
    if profile.lock_clocks:
        return found(name, Level.GOOD, value, "The clock will be held during a run.")
    sentence = "The clock is free: it depends on heat and load, and records are marked where it was low."
    return found(name, Level.NOTE, value, sentence, f"lock_clocks = true in configs/devices/{profile.name}.toml")


def gpu_tenants(sight: Sight, profile: DeviceProfile) -> Finding | None:
    if profile.kind != "cuda" or sight.gpu is None:
        return None
    others = sight.gpu.reading.foreign_processes
    if others:
        value = _named([printable(name)[:NAME_LENGTH] for name in others])
        sentence = "Programs of others are on the GPU: they take its time and its memory."
        return found("gpu tenants", Level.WARNING, value, sentence, "end them, or wait: nvidia-smi")
    return found("gpu tenants", Level.GOOD, "none", "Nobody else that the driver tells of is on the GPU.")


CHECKS: tuple[Check, ...] = (
    device,
    governor,
    turbo,
    clocks,
    smt,
    numa,
    virtual,
    load,
    tenants,
    steal,
    heat,
    threads,
    memory,
    swap,
    disk,
    compiler,
    gpu_clocks,
    gpu_tenants,
)


def _named(names: Sequence[str]) -> str:
    more = f" and {len(names) - TENANTS_NAMED} more" if len(names) > TENANTS_NAMED else ""
    return ", ".join(names[:TENANTS_NAMED]) + more


def _gib(count: int) -> str:
    return f"{count / GIB:.1f} GiB"
