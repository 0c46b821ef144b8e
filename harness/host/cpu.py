"""The host's processors, and which of them this process may use: from the kernel's files.

A processor is what the kernel schedules on; a core has one of them, or with SMT several. Numbers of
processors may have gaps, and some may be offline. Odd and missing files never raise: unknown is None.
"""

from __future__ import annotations

import os
import platform
import sys
from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from harness.host import cgroup, cpuinfo, macos, topology
from harness.host.cgroup import text
from harness.host.topology import Processor, number

VIRTUAL_VENDORS = ("QEMU", "KVM", "Amazon EC2", "OpenStack", "VMware", "Xen", "innotek", "Parallels", "Google")
"""Beginnings of the system vendor's name of virtual machines. Needed on Arm, where no flag of the processor says so."""


@dataclass(frozen=True)
class CpuFacts:
    """What is known of the processors of a machine.

    Args:
        architecture: as `uname -m` says it.
        name: product; where only numbers are told, the core's name, e.g. `Neoverse-V1`.
        flags: those that all processors have, as Linux names them.
        sockets, cores_physical: of the processors that are online.
        numa_nodes: those that have processors; one with memory alone does not count.
        smt: a core runs two threads or more at once.
        processors: those online, by number; empty where the system does not tell them apart.
        usable: numbers of the processors that this process may run on, by affinity and cpuset.
        cgroup_cores: processors' worth of time that the control group allows; None: no limit.
        cgroup_memory_bytes: that it allows; None: no limit.
        cgroup_memory_free_bytes: what is left of that.
        memory_bytes: of the machine.
        governors: distinct ones of the usable processors.
        frequency_driver: e.g. `intel_pstate`, whose `powersave` is not slow.
        turbo: the clock may rise above its base.
        max_mhz: highest clock of a usable processor.
        hypervisor: who made the virtual machine, or `hypervisor`; None: none seen.
    """

    architecture: str
    name: str
    flags: frozenset[str] = frozenset()
    sockets: int | None = None
    cores_physical: int | None = None
    numa_nodes: int | None = None
    smt: bool | None = None
    processors: tuple[Processor, ...] = ()
    usable: tuple[int, ...] = ()
    cgroup_cores: float | None = None
    cgroup_memory_bytes: int | None = None
    cgroup_memory_free_bytes: int | None = None
    memory_bytes: int | None = None
    governors: tuple[str, ...] = ()
    frequency_driver: str | None = None
    turbo: bool | None = None
    max_mhz: float | None = None
    hypervisor: str | None = None

    @property
    def usable_cores(self) -> int:
        """Processors' worth of time that this process may use: affinity and, where set, the group's quota.

        A quota of 1.5 counts as 1: a second thread would be stopped for half of each period, and the first
        waits for it at every barrier.
        """
        cores = max(1, len(self.usable))
        return cores if self.cgroup_cores is None else min(cores, max(1, int(self.cgroup_cores)))

    @property
    def physical_cores(self) -> int:
        """Physical cores that this process may use: what one operation gets as its threads."""
        cores = len({each.core for each in self.usable_processors}) or self.cores_physical or self.usable_cores
        return min(cores, self.usable_cores)

    @property
    def usable_processors(self) -> tuple[Processor, ...]:
        return tuple(each for each in self.processors if each.logical in self.usable)


def pinning(facts: CpuFacts) -> tuple[int, ...]:
    """Return the processors to keep a child on; empty where the system does not tell them apart.

    One per physical core, all of the one NUMA node that has most of them (of equals the first), none
    of a slower kind, no more than the group's quota pays for.
    """
    nodes: dict[int | None, dict[int, int]] = defaultdict(dict)
    usable = facts.usable_processors
    for each in [each for each in usable if not each.slower] or usable:
        nodes[each.node].setdefault(each.core, each.logical)
    if not nodes:
        return ()
    best = min(nodes, key=lambda node: (-len(nodes[node]), -1 if node is None else node))
    return tuple(sorted(nodes[best].values())[: facts.usable_cores])


def read(root: Path = Path("/"), *, affinity: Collection[int] | None = None) -> CpuFacts:
    """Return the facts of this machine, or of one whose `proc` and `sys` lie below `root`.

    Args:
        affinity: processors that this process may run on; None: as the system says.
    """
    if root == Path("/") and sys.platform != "linux":
        return _elsewhere()
    allowed = cgroup.read(root)
    blocks = cpuinfo.blocks(text(root / "proc/cpuinfo"))
    processors = topology.processors(root, blocks)
    logical = {each.logical for each in processors}
    if affinity is None:
        affinity = os.sched_getaffinity(0) if root == Path("/") else topology.allowed(root)
    usable = tuple(sorted(logical & set(affinity) or logical))
    flags = cpuinfo.flags(blocks)
    known = topology.tells_cores(root, processors, blocks)
    cores = {each.core for each in processors}
    return CpuFacts(
        architecture=text(root / "proc/sys/kernel/arch") or platform.machine(),
        name=cpuinfo.names(blocks) or platform.processor() or platform.machine(),
        flags=flags,
        sockets=len({each.socket for each in processors if each.socket is not None}) or None,
        cores_physical=len(cores) if known else None,
        numa_nodes=len({each.node for each in processors if each.node is not None}) or None,
        smt=len(cores) < len(processors) if known else None,
        processors=processors,
        usable=usable,
        cgroup_cores=allowed.cores,
        cgroup_memory_bytes=allowed.memory_bytes,
        cgroup_memory_free_bytes=allowed.memory_free_bytes,
        memory_bytes=_memory_bytes(root),
        governors=tuple(sorted(set(_clocks(root, usable, "scaling_governor")))),
        frequency_driver=next(iter(_clocks(root, usable, "scaling_driver")), None),
        turbo=_turbo(root, usable),
        max_mhz=_max_mhz(root, usable),
        hypervisor=_hypervisor(root, flags),
    )


def _elsewhere() -> CpuFacts:
    """Where there is no `/proc`: what can be had, and no way to tell processors apart."""
    told = macos.read()
    return CpuFacts(
        architecture=platform.machine(),
        name=told.name or platform.processor() or platform.machine(),
        flags=told.flags,
        cores_physical=told.cores_physical,
        smt=told.smt,
        usable=tuple(range(os.cpu_count() or 1)),
        memory_bytes=told.memory_bytes,
    )


def _memory_bytes(root: Path) -> int | None:
    for line in text(root / "proc/meminfo").splitlines():
        words = line.split()
        if words[:1] == ["MemTotal:"] and len(words) > 1 and words[1].isdecimal():
            return int(words[1]) * 1024
    return None


def _clocks(root: Path, usable: Collection[int], name: str) -> list[str]:
    """What the usable processors say in a file about their clocks; nothing of those that have none."""
    said = (text(topology.folder(root, each) / "cpufreq" / name) for each in usable)
    return [word for word in said if word]


def _turbo(root: Path, usable: Collection[int]) -> bool | None:
    system = root / "sys/devices/system/cpu"
    if (off := text(system / "intel_pstate/no_turbo")) in ("0", "1"):
        return off == "0"
    said = {text(system / "cpufreq/boost"), *_clocks(root, usable, "boost")} & {"0", "1"}
    return "1" in said if said else None


def _max_mhz(root: Path, usable: Collection[int]) -> float | None:
    told = (number(word) for word in _clocks(root, usable, "cpuinfo_max_freq"))
    return max((khz / 1000 for khz in told if khz), default=None)


def _hypervisor(root: Path, flags: Collection[str]) -> str | None:
    identity = root / "sys/class/dmi/id"
    vendor = text(identity / "sys_vendor")
    if "hypervisor" in flags:
        return vendor or "hypervisor"
    product = text(identity / "product_name")
    if product == "Virtual Machine" or (vendor.startswith(VIRTUAL_VENDORS) and not product.endswith("metal")):
        return vendor
    return text(root / "sys/hypervisor/type") or None
