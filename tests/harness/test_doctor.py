"""The checks: what was seen of a host, and what is said of it. A row of a table is one fact."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from harness.doctor.checks import CHECKS, examine
from harness.doctor.sight import Place, Sight, Tenant
from harness.host.reading import Reading
from harness.record import DeviceProfile, Finding, Level
from tests.harness.sights import (
    BUSY_VM,
    CPU,
    CUDA,
    DISK,
    GIB,
    LOCKED,
    MPS,
    PINNED,
    QUIET,
    SERVER,
    SMT,
    TWO_NODES,
    VIRTUAL,
    make_sight,
    with_gpu,
)

GOOD, UNKNOWN, NOTE, WARNING, BAD = Level.GOOD, Level.UNKNOWN, Level.NOTE, Level.WARNING, Level.BAD


def find(check: str, profile: DeviceProfile, sight: Sight) -> Finding | None:
    return next((finding for finding in examine(profile, sight) if finding.check == check), None)


def governed(*governors: str, driver: str = "acpi-cpufreq") -> Sight:
    return make_sight(replace(SERVER, governors=governors, frequency_driver=driver))


def watched(**fields: object) -> Sight:
    return make_sight(watched=replace(QUIET, **fields))


def tenants(*cores: float) -> Sight:
    return watched(tenants=tuple(Tenant(f"job{number}", 100 + number, each) for number, each in enumerate(cores)))


def stolen(now: float | None, boot: float | None, cpu=SERVER) -> Sight:
    return make_sight(cpu, replace(QUIET, steal_share=now), steal_since_boot=boot)


def threaded(profile: DeviceProfile, cpu=SERVER, **variables: str) -> tuple[DeviceProfile, Sight]:
    return profile, make_sight(cpu, variables=variables)


def threads(number: int) -> DeviceProfile:
    return DeviceProfile(name="own", kind="cpu", threads=number)


def disk(**fields: object) -> Sight:
    return make_sight(places=(replace(DISK, **fields),))


TABLE: dict[str, list[tuple[DeviceProfile, Sight, Level, str | None]]] = {
    "device": [
        (CPU, make_sight(), GOOD, SERVER.name),
        (DeviceProfile(name="graviton", kind="cpu", architecture="aarch64"), make_sight(), BAD, SERVER.name),
        (CUDA, make_sight(), BAD, SERVER.name),
        (CUDA, with_gpu(Reading()), GOOD, "NVIDIA A100-SXM4-80GB"),
    ],
    "governor": [
        (CPU, governed("performance"), GOOD, "performance"),
        (CPU, governed("powersave", driver="intel_pstate"), NOTE, "powersave"),
        (CPU, governed("powersave", driver="amd-pstate-epp"), NOTE, "powersave"),
        (CPU, governed("powersave"), BAD, "powersave"),
        (CPU, governed("performance", "powersave"), BAD, "performance, powersave"),
        (CPU, governed("schedutil"), WARNING, "schedutil"),
        (CPU, governed("ondemand", "performance"), WARNING, "ondemand, performance"),
        (CPU, governed(), UNKNOWN, None),
        (CPU, make_sight(VIRTUAL), UNKNOWN, None),
    ],
    "turbo": [
        (CPU, make_sight(), GOOD, "off"),
        (CPU, make_sight(replace(SERVER, turbo=True)), NOTE, "on"),
        (CPU, make_sight(VIRTUAL), UNKNOWN, None),
    ],
    "clocks": [
        (CPU, make_sight(), GOOD, "3800 of 3800 MHz"),
        (CPU, make_sight(limit_mhz=2000.0), NOTE, "2000 of 3800 MHz"),
        (CPU, make_sight(limit_mhz=None), UNKNOWN, None),
        (CPU, make_sight(VIRTUAL), UNKNOWN, None),
    ],
    "smt": [
        (CPU, make_sight(), GOOD, "off"),
        (CPU, make_sight(SMT), NOTE, "on"),
        (PINNED, make_sight(SMT), GOOD, "on"),
        (CPU, make_sight(VIRTUAL), UNKNOWN, "none seen"),
        (CPU, make_sight(replace(SERVER, smt=None)), UNKNOWN, None),
    ],
    "numa": [
        (CPU, make_sight(), GOOD, "1 of 1 nodes"),
        (CPU, make_sight(TWO_NODES), WARNING, "2 of 2 nodes"),
        (PINNED, make_sight(TWO_NODES), GOOD, "1 of 2 nodes"),
        (CPU, make_sight(replace(TWO_NODES, usable=(0, 1))), GOOD, "1 of 2 nodes"),
        (CPU, make_sight(replace(SERVER, numa_nodes=None)), UNKNOWN, None),
    ],
    "virtual": [
        (CPU, make_sight(), GOOD, "no"),
        (CPU, make_sight(VIRTUAL), NOTE, "hypervisor"),
    ],
    "load": [
        (CPU, make_sight(), GOOD, "0.0 of 4 processors"),
        (CPU, watched(busy_cores=0.2), GOOD, "0.2 of 4 processors"),
        (CPU, watched(busy_cores=0.5), WARNING, "0.5 of 4 processors"),
        (CPU, watched(busy_cores=2.0), WARNING, "2.0 of 4 processors"),
        (CPU, watched(busy_cores=2.1), BAD, "2.1 of 4 processors"),
        (CPU, make_sight(load_average=2.5), NOTE, "0.0 of 4 processors"),
        (CPU, watched(busy_cores=None), UNKNOWN, None),
    ],
    "tenants": [
        (CPU, make_sight(), GOOD, "none"),
        (CPU, tenants(0.19), GOOD, "none"),
        (CPU, tenants(0.2), WARNING, "job0 (100) 20%"),
        (CPU, tenants(0.9, 0.8, 0.5, 0.4, 0.1), WARNING, "job0 (100) 90%, job1 (101) 80%, job2 (102) 50% and 1 more"),
    ],
    "steal": [
        (CPU, stolen(0.0, 0.0), GOOD, "0.0% now, 0.00% since boot"),
        (CPU, stolen(0.02, 0.005, VIRTUAL), GOOD, "2.0% now, 0.50% since boot"),
        (CPU, stolen(0.04, 0.001, VIRTUAL), WARNING, "4.0% now, 0.10% since boot"),
        (CPU, stolen(0.0, 0.02, VIRTUAL), WARNING, "0.0% now, 2.00% since boot"),
        (CPU, stolen(0.2, 0.02, VIRTUAL), BAD, "20.0% now, 2.00% since boot"),
        (CPU, stolen(0.0, 0.0, VIRTUAL), UNKNOWN, "0.0% now, 0.00% since boot"),
        (CPU, stolen(None, None), UNKNOWN, None),
    ],
    "heat": [
        (CPU, make_sight(), GOOD, "never"),
        (CPU, make_sight(throttled_since_boot=7), NOTE, "7 times since boot"),
        (CPU, make_sight(watched=replace(QUIET, throttled=3), throttled_since_boot=7), WARNING, "3 times now"),
        (CPU, make_sight(throttled_since_boot=None), UNKNOWN, None),
    ],
    "threads": [
        (*threaded(CPU), GOOD, "4 of 4 cores"),
        (*threaded(PINNED, SMT), GOOD, "4 of 4 cores"),
        (*threaded(CPU, OMP_NUM_THREADS="4"), GOOD, "4 of 4 cores"),
        (*threaded(CPU, OMP_NUM_THREADS="1"), NOTE, "4 of 4 cores"),
        (*threaded(CPU, MKL_NUM_THREADS="2"), NOTE, "4 of 4 cores"),
        (*threaded(CPU, OMP_THREAD_LIMIT="2"), BAD, "4 of 4 cores"),
        (*threaded(CPU, replace(SERVER, cgroup_cores=2.5)), NOTE, "2 of 2 cores"),
        (*threaded(threads(4), replace(SERVER, cgroup_cores=2.5)), BAD, "4 of 2 cores"),
        (*threaded(threads(4), replace(SERVER, usable=(0, 1))), BAD, "4 of 2 cores"),
        (*threaded(threads(8), SMT), WARNING, "8 of 4 cores"),
    ],
    "memory": [
        (CPU, make_sight(), GOOD, "60.0 GiB of 64.0 GiB free"),
        (CPU, make_sight(memory_free_bytes=31 * GIB), WARNING, "31.0 GiB of 64.0 GiB free"),
        (CPU, make_sight(memory_free_bytes=2 * GIB), BAD, "2.0 GiB of 64.0 GiB free"),
        (CPU, make_sight(memory_free_bytes=None), UNKNOWN, None),
    ],
    "swap": [
        (CPU, make_sight(), GOOD, "0.0 GiB used"),
        (CPU, make_sight(swap_used_bytes=GIB), NOTE, "1.0 GiB used"),
        (CPU, watched(swapped_bytes=4096), BAD, "0.0 GiB used"),
        (CPU, make_sight(swap_used_bytes=None), UNKNOWN, None),
    ],
    "disk": [
        (CPU, make_sight(), GOOD, "200.0 GiB free for journals, sync 2.0 ms"),
        (CPU, disk(sync_s=None), GOOD, "200.0 GiB free for journals"),
        (CPU, disk(sync_s=0.2), WARNING, "200.0 GiB free for journals, sync 200.0 ms"),
        (CPU, disk(free_bytes=4 * GIB), WARNING, "4.0 GiB free for journals, sync 2.0 ms"),
        (CPU, disk(free_bytes=GIB // 2), BAD, "0.5 GiB free for journals, sync 2.0 ms"),
        (CPU, disk(writable=False), BAD, "journals"),
        (CPU, disk(free_bytes=None), UNKNOWN, None),
        (
            CPU,
            make_sight(places=(DISK, Place("temporary files", Path("/tmp"), 2 * GIB, writable=True))),
            WARNING,
            "2.0 GiB free for temporary files, sync 2.0 ms",
        ),
    ],
    "compiler": [
        (CPU, make_sight(), GOOD, "g++ (Debian 12.2.0-14) 12.2.0"),
        (CPU, make_sight(compiler=None), BAD, "none"),
        (CUDA, with_gpu(Reading()), GOOD, "g++ (Debian 12.2.0-14) 12.2.0"),
        (CUDA, with_gpu(Reading(), compiler=None), NOTE, "/usr/bin/gcc"),
        (CUDA, with_gpu(Reading(), compiler=None, c_compiler=None), BAD, "none"),
    ],
    "gpu clocks": [
        (CUDA, with_gpu(Reading(clock_mhz=210.0, idle=True)), NOTE, "210 of 1410 MHz, idle"),
        (CUDA, with_gpu(Reading(clock_mhz=1410.0)), NOTE, "1410 of 1410 MHz"),
        (CUDA, with_gpu(Reading(clock_mhz=1000.0)), WARNING, "1000 of 1410 MHz"),
        (CUDA, with_gpu(Reading(clock_mhz=1410.0, throttle_reasons=("power cap",))), WARNING, "power cap"),
        (CUDA, with_gpu(Reading()), UNKNOWN, None),
        (LOCKED, with_gpu(Reading(clock_mhz=210.0, idle=True)), GOOD, "210 of 1410 MHz, idle"),
        (LOCKED, with_gpu(Reading(clock_mhz=210.0, idle=True), root_user=False), WARNING, "210 of 1410 MHz, idle"),
    ],
    "gpu tenants": [
        (CUDA, with_gpu(Reading()), GOOD, "none"),
        (CUDA, with_gpu(Reading(foreign_processes=("Xorg", "python"))), WARNING, "Xorg, python"),
    ],
}
ROWS = [pytest.param(check, *row, id=f"{check}-{number}") for check in TABLE for number, row in enumerate(TABLE[check])]


@pytest.mark.parametrize(("check", "profile", "sight", "level", "value"), ROWS)
def test_check(check: str, profile: DeviceProfile, sight: Sight, level: Level, value: str | None) -> None:
    """Each row of the table: seen so, a check says this level and shows this value."""
    finding = find(check, profile, sight)

    assert finding is not None
    assert (level, value) == (finding.level, finding.value)


def test_every_check_is_walked() -> None:
    """No check is without rows, and each has one that is not good."""
    assert [check.__name__.replace("_", " ") for check in CHECKS] == list(TABLE)
    assert all(any(row[2] != GOOD for row in rows) for rows in TABLE.values())


@pytest.mark.parametrize(("check", "profile", "sight", "level", "value"), ROWS)
def test_what_disturbs_has_a_remedy(
    check: str, profile: DeviceProfile, sight: Sight, level: Level, value: str | None
) -> None:
    """A warning or worse says what to do, what is good says nothing; each is one sentence."""
    finding = find(check, profile, sight)
    assert finding is not None

    assert finding.remedy or level not in (WARNING, BAD)
    assert finding.remedy is None or level != GOOD
    assert finding.sentence.endswith(".")
    assert "\n" not in finding.sentence


def test_quiet_server_is_fit() -> None:
    """A server on which nothing disturbs gets nothing but good findings."""
    assert {GOOD} == {finding.level for finding in examine(CPU, make_sight())}


def test_recorded_virtual_machine() -> None:
    """A busy virtual machine as it was seen: the load is bad, who causes it is named, what it hides is unknown."""
    found = {finding.check: finding for finding in examine(PINNED, BUSY_VM)}

    assert (BAD, "1.4 of 2 processors") == (found["load"].level, found["load"].value)
    assert "python (10317) 74%, python (16484) 62%" == found["tenants"].value
    assert {"governor", "turbo", "clocks", "smt", "heat"} == {name for name, f in found.items() if f.level == UNKNOWN}
    assert (GOOD, "0.0% now, 0.08% since boot") == (found["steal"].level, found["steal"].value)


def test_worst_comes_first() -> None:
    """Findings are in the order bad, warning, unknown, note, good."""
    levels = [finding.level for finding in examine(CPU, BUSY_VM)]

    assert [BAD, WARNING, UNKNOWN, NOTE, GOOD] == list(dict.fromkeys(levels))


def test_checks_of_a_gpu_are_for_gpus() -> None:
    """On a CPU nothing is said about GPUs, and what needs no compiler is not asked for one."""
    assert not [finding for finding in examine(CPU, make_sight()) if finding.check.startswith("gpu")]
    assert find("compiler", MPS, make_sight(compiler=None)) is None


REMEDIES: dict[str, tuple[Callable[[], Finding | None], str]] = {
    "governor": (lambda: find("governor", CPU, governed("schedutil")), "cpupower frequency-set -g performance"),
    "turbo of Intel": (
        lambda: find("turbo", CPU, make_sight(replace(SERVER, turbo=True))),
        "echo 1 | sudo tee /sys/devices/system/cpu/intel_pstate/no_turbo",
    ),
    "turbo of others": (
        lambda: find("turbo", CPU, make_sight(replace(SERVER, turbo=True, frequency_driver="acpi-cpufreq"))),
        "echo 0 | sudo tee /sys/devices/system/cpu/cpufreq/boost",
    ),
    "quota": (lambda: find("threads", *threaded(threads(4), replace(SERVER, cgroup_cores=2.5))), "threads = 2"),
    "tenants": (lambda: find("tenants", CPU, tenants(0.9, 0.8)), "ps -o pid,user,etime,args -p 100,101"),
    "lock": (lambda: find("gpu clocks", LOCKED, with_gpu(Reading(clock_mhz=210.0), root_user=False)), "-d CLOCK"),
    "lock refused": (
        lambda: find("gpu clocks", LOCKED, with_gpu(Reading(clock_mhz=210.0, idle=True), root_user=False)),
        "sudo nvidia-smi -lgc 1410",
    ),
}


@pytest.mark.parametrize(("ask", "command"), REMEDIES.values(), ids=REMEDIES)
def test_remedy_can_be_typed(ask: Callable[[], Finding | None], command: str) -> None:
    """A remedy holds the command with the host's own numbers in it."""
    finding = ask()

    assert finding is not None
    assert command in (finding.remedy or "")
