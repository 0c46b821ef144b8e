"""What is really here: versions, processor, threads, governor, compiler, commit. Unknown is None."""

from __future__ import annotations

import os
import platform
import shutil
import socket
import subprocess
from collections.abc import Callable, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import psutil
import torch

from harness.host import cgroup, cpu, nvml, settings
from harness.host.cpu import CpuFacts
from harness.host.nvml import Gpu
from harness.record import DeviceProfile, Environment
from harness.worker.cuda import BFLOAT16_FROM
from harness.worker.device import open_device
from harness.worker.observe import emulated_formats

_PACKAGES = ("torch", "torchvision", "timm", "transformers", "effdet", "numpy", "triton", "compile-bench")

_TELLING_FLAGS = (
    *("avx2", "fma", "avx512f", "avx512_vnni", "avx512_bf16", "avx512_fp16"),
    *("amx_tile", "amx_bf16", "amx_fp16", "amx_int8", "hypervisor"),
    *("asimd", "asimdhp", "asimddp", "sve", "sve2", "bf16", "i8mm"),
)
"""CPU flags that decide on number formats and vector width, on x86 and on Arm."""


def find(
    threads: int | None,
    *,
    profile: DeviceProfile | None = None,
    facts: CpuFacts | None = None,
    pinned: tuple[int, ...] = (),
    gpus: Callable[[], Sequence[Gpu]] = nvml.gpus,
) -> Environment:
    """Return the environment of this process, which has torch loaded.

    Args:
        threads: of one operation; None: the processors that this process is kept on, or else its physical cores.
        profile: what was asked for; None: the CPU.
        facts: of the host before this process was pinned; None: they are read now.
        pinned: processors that this process is kept on.

    Raises:
        BenchError: the device is of another package, and is not there or another product.
    """
    facts = facts or cpu.read()
    return Environment(
        host=socket.gethostname(),
        machine_id=_text("/etc/machine-id"),
        system=platform.platform(),
        kernel=platform.release(),
        virtualised=facts.hypervisor,
        cpu=facts.name,
        cores_physical=facts.cores_physical,
        cores_usable=facts.usable_cores,
        memory_bytes=psutil.virtual_memory().total,
        cpu_flags=tuple(flag for flag in _TELLING_FLAGS if flag in facts.flags),
        cpu_capability=torch.backends.cpu.get_cpu_capability(),
        governor=", ".join(facts.governors) or None,
        threads=threads or len(pinned) or facts.physical_cores,
        compiler=_compiler(),
        python=platform.python_version(),
        versions=_versions(),
        torch_commit=torch.version.git_version,
        harness_commit=_commit(),
        load_average=os.getloadavg()[0],
        hash_seed=os.environ.get("PYTHONHASHSEED"),
        sockets=facts.sockets,
        numa_nodes=facts.numa_nodes,
        smt=facts.smt,
        turbo=facts.turbo,
        cgroup_cores=facts.cgroup_cores,
        cgroup_memory_bytes=facts.cgroup_memory_bytes,
        pinned=pinned,
        variables=settings.telling(profile.environment if profile else ()),
        **_device(profile, facts, gpus),
    )


def physical_cores() -> int:
    """Physical cores that this process may use: what one operation gets as its threads."""
    return cpu.read().physical_cores


def available_memory_bytes() -> int:
    """Return what a new process may take: of the host's memory and, where limited, of the control group's."""
    free = int(psutil.virtual_memory().available)
    allowed = cgroup.read().memory_free_bytes
    return free if allowed is None else min(free, allowed)


def _device(profile: DeviceProfile | None, facts: CpuFacts, gpus: Callable[[], Sequence[Gpu]]) -> dict[str, Any]:
    """What is known of the device itself. Of NVIDIA's GPUs the first is measured; an Apple chip's GPU has its name."""
    kind = profile.kind if profile else "cpu"
    if kind == "cpu":
        return {"emulated": emulated_formats(facts.flags, facts.architecture)}
    if kind == "mps":
        return {"product": facts.name, "device_count": 1}
    if profile is not None and kind != "cuda":
        return {"product": open_device(profile).product()}
    found = gpus()
    if not found:
        return {}
    first = found[0]
    return {
        "product": first.name,
        "device_count": len(found),
        "device_memory_bytes": first.memory_bytes,
        "driver": first.driver,
        "emulated": ("bfloat16",) if first.capability is not None and first.capability < BFLOAT16_FROM else (),
    }


def _compiler() -> str | None:
    """The C++ compiler that inductor calls on a CPU, with its version."""
    path = shutil.which(os.environ.get("CXX", "g++"))
    return _first_line([path, "--version"]) if path else None


def _versions() -> dict[str, str]:
    found = {}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def _commit() -> str | None:
    """Commit of the checkout that this code runs from, with `+` when it was changed; None outside a checkout."""
    root = Path(__file__).resolve().parents[2]
    if not (root / ".git").exists():
        return None
    commit = _first_line(["git", "-C", str(root), "rev-parse", "HEAD"])
    changed = _first_line(["git", "-C", str(root), "status", "--porcelain", "--untracked-files=no"])
    return commit and commit + ("+" if changed else "")


def _first_line(command: list[str]) -> str | None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.splitlines()[0].strip() if done.stdout.strip() else None


def _text(path: str) -> str | None:
    try:
        return Path(path).read_text(encoding="utf-8").strip() or None
    except (OSError, UnicodeDecodeError):
        return None
