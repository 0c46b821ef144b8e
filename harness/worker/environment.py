"""What is really here: versions, processor, threads, governor, compiler, commit. Unknown is None."""

from __future__ import annotations

import os
import platform
import shutil
import socket
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import psutil
import torch

from harness.record import Environment
from harness.worker.observe import emulated_formats

_PACKAGES = ("torch", "torchvision", "timm", "transformers", "numpy", "triton", "compile-bench")

_TELLING_FLAGS = (
    *("avx2", "fma", "avx512f", "avx512_vnni", "avx512_bf16", "avx512_fp16"),
    *("amx_tile", "amx_bf16", "amx_fp16", "amx_int8", "hypervisor"),
    *("asimd", "asimdhp", "asimddp", "sve", "sve2", "bf16", "i8mm"),
)
"""CPU flags that decide on number formats and vector width, on x86 and on Arm."""


def find(threads: int | None) -> Environment:
    """Return the environment of this process, which has torch loaded."""
    cpu, flags = _cpu()
    return Environment(
        host=socket.gethostname(),
        machine_id=_text("/etc/machine-id"),
        system=platform.platform(),
        kernel=platform.release(),
        virtualised=_virtualised(flags),
        cpu=cpu,
        cores_physical=psutil.cpu_count(logical=False),
        cores_usable=usable_cores(),
        memory_bytes=psutil.virtual_memory().total,
        cpu_flags=tuple(flag for flag in _TELLING_FLAGS if flag in flags),
        cpu_capability=torch.backends.cpu.get_cpu_capability(),
        governor=_text("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        emulated=emulated_formats(flags, platform.machine()),
        threads=threads or physical_cores(),
        compiler=_compiler(),
        python=platform.python_version(),
        versions=_versions(),
        torch_commit=torch.version.git_version,
        harness_commit=_commit(),
        load_average=os.getloadavg()[0],
        hash_seed=os.environ.get("PYTHONHASHSEED"),
    )


def usable_cores() -> int:
    """Logical processors that this process may run on: affinity and, where set, the cgroup's quota."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quota = _text("/sys/fs/cgroup/cpu.max")
    if quota and not quota.startswith("max"):
        limit, period = (int(word) for word in quota.split())
        cores = min(cores, max(1, limit // period))
    return cores


def physical_cores() -> int:
    """Physical cores that this process may use: what one operation gets as its threads."""
    return max(1, min(psutil.cpu_count(logical=False) or usable_cores(), usable_cores()))


def available_memory_bytes() -> int:
    return int(psutil.virtual_memory().available)


def cpu_flags() -> frozenset[str]:
    """Flags of the processor as the kernel names them; empty where it names none."""
    return _cpu()[1]


def _cpu() -> tuple[str, frozenset[str]]:
    name, flags = platform.processor() or platform.machine(), frozenset[str]()
    for line in (_text("/proc/cpuinfo") or "").splitlines():
        key, _, value = (part.strip() for part in line.partition(":"))
        if key == "model name":
            name = value
        elif key in ("flags", "Features"):
            flags = frozenset(value.split())
            break
    return name, flags


def _virtualised(flags: frozenset[str]) -> str | None:
    if "hypervisor" not in flags:
        return None
    return _text("/sys/class/dmi/id/sys_vendor") or "hypervisor"


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
