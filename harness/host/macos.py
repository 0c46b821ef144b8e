"""The few facts of a Mac's processor that `sysctl` tells. Elsewhere, and where it tells nothing, None."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass

import psutil

FEATURES = {"FEAT_BF16": "bf16", "FEAT_FP16": "asimdhp", "FEAT_I8MM": "i8mm", "FEAT_DotProd": "asimddp"}
"""Apple's names of instruction sets, with Linux's: the rest of the harness speaks Linux."""


@dataclass(frozen=True)
class Told:
    name: str | None = None
    flags: frozenset[str] = frozenset()
    cores_physical: int | None = None
    smt: bool | None = None
    memory_bytes: int | None = None


def sysctl() -> str:
    """Return what `sysctl` prints, a line `name: value` each; empty where it cannot be asked."""
    if sys.platform != "darwin":
        return ""
    try:
        asked = ["sysctl", "machdep.cpu.brand_string", "hw.optional.arm"]
        return subprocess.run(asked, capture_output=True, text=True, timeout=20, check=False).stdout
    except (OSError, subprocess.SubprocessError):
        return ""


def read(ask: Callable[[], str] = sysctl) -> Told:
    told = dict(line.split(": ", 1) for line in ask().splitlines() if ": " in line)
    logical, physical = psutil.cpu_count(logical=True), psutil.cpu_count(logical=False)
    return Told(
        name=told.get("machdep.cpu.brand_string"),
        flags=frozenset(flag for name, flag in FEATURES.items() if told.get(f"hw.optional.arm.{name}") == "1"),
        cores_physical=physical,
        smt=logical > physical if logical and physical else None,
        memory_bytes=psutil.virtual_memory().total,
    )
