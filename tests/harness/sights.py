"""Hosts as the checks see them: a quiet server made up, and what was really seen of a busy virtual machine."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from harness.doctor.sight import GpuSight, Place, Sight, Tenant, Watched
from harness.host.cpu import CpuFacts
from harness.host.detect import Machine
from harness.host.nvml import Gpu
from harness.host.reading import Reading
from harness.host.topology import Processor
from harness.record import DeviceProfile

GIB = 1 << 30

CPU = DeviceProfile(name="cpu", kind="cpu")
PINNED = DeviceProfile(name="cpu-x86", kind="cpu", pin=True)
CUDA = DeviceProfile(name="cuda", kind="cuda")
LOCKED = DeviceProfile(name="a100", kind="cuda", lock_clocks=True, clock_mhz=1410)
MPS = DeviceProfile(name="mps", kind="mps")

SERVER = CpuFacts(
    architecture="x86_64",
    name="Intel(R) Xeon(R) Platinum 8480+",
    sockets=1,
    cores_physical=4,
    numa_nodes=1,
    smt=False,
    processors=tuple(Processor(logical=number, core=number, socket=0, node=0) for number in range(4)),
    usable=(0, 1, 2, 3),
    memory_bytes=64 * GIB,
    governors=("performance",),
    frequency_driver="intel_pstate",
    turbo=False,
    max_mhz=3800.0,
)
"""Nothing to complain of."""

SMT = replace(
    SERVER,
    smt=True,
    processors=tuple(Processor(logical=number, core=number % 4, socket=0, node=0) for number in range(8)),
    usable=tuple(range(8)),
)
TWO_NODES = replace(
    SERVER,
    numa_nodes=2,
    processors=tuple(Processor(logical=number, core=number, socket=0, node=number // 2) for number in range(4)),
)

QUIET = Watched(seconds=0.5, busy_cores=0.02, steal_share=0.0, swapped_bytes=0, throttled=0)

DISK = Place("journals", Path("/data/runs"), 200 * GIB, writable=True, sync_s=0.002)


def make_sight(cpu: CpuFacts = SERVER, watched: Watched = QUIET, **fields: Any) -> Sight:
    """Return a quiet server, with what is named changed."""
    values = {
        "machine": Machine(cpu=cpu),
        "load_average": 0.1,
        "steal_since_boot": 0.0,
        "throttled_since_boot": 0,
        "limit_mhz": 3800.0,
        "memory_bytes": 64 * GIB,
        "memory_free_bytes": 60 * GIB,
        "swap_used_bytes": 0,
        "places": (DISK,),
        "compiler": "g++ (Debian 12.2.0-14) 12.2.0",
        "c_compiler": "/usr/bin/gcc",
        "root_user": True,
    }
    return Sight(**{**values, "watched": watched, **fields})


def with_gpu(reading: Reading, *, highest_mhz: float | None = 1410.0, **fields: Any) -> Sight:
    gpu = Gpu(index=0, name="NVIDIA A100-SXM4-80GB")
    machine = Machine(cpu=SERVER, gpus=(gpu,))
    return make_sight(machine=machine, gpu=GpuSight(gpu.name, reading, highest_mhz), **fields)


VIRTUAL = CpuFacts(
    architecture="x86_64",
    name="Intel(R) Xeon(R) Processor",
    sockets=1,
    cores_physical=2,
    numa_nodes=1,
    smt=False,
    processors=tuple(Processor(logical=number, core=number, socket=0, node=0) for number in range(2)),
    usable=(0, 1),
    memory_bytes=25_276_190_720,
    hypervisor="hypervisor",
)

BUSY_VM = Sight(
    machine=Machine(cpu=VIRTUAL),
    watched=Watched(
        seconds=0.52,
        busy_cores=1.36,
        steal_share=0.0,
        tenants=(Tenant("python", 10317, 0.74), Tenant("python", 16484, 0.62), Tenant("kworker/1:1", 40, 0.02)),
        swapped_bytes=0,
    ),
    load_average=1.53,
    steal_since_boot=0.0008,
    memory_bytes=25_276_190_720,
    memory_free_bytes=22_011_707_392,
    swap_used_bytes=0,
    places=(Place("journals", Path("/root"), 78_168_195_891, writable=True, sync_s=0.0073),),
    compiler="g++ (Debian 12.2.0-14+deb12u1) 12.2.0",
    c_compiler="/usr/bin/gcc",
    root_user=True,
)
"""Seen on a virtual machine of two processors while two other programs computed."""
