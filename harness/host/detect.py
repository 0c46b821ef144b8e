"""The machine as a whole: does a device profile fit it, and which of them fits best?"""

from __future__ import annotations

import platform
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from harness.errors import UsageError
from harness.host import cpu, nvml
from harness.host.cpu import CpuFacts
from harness.host.nvml import Gpu
from harness.record import DeviceProfile

KINDS = ("cuda", "mps", "cpu")
"""What `auto` prefers, the first before the last. Classes of other packages are only taken by name."""

SAME_ARCHITECTURE = {"arm64": "aarch64", "amd64": "x86_64"}
"""macOS and Windows have other words for them."""

VARIANT = r"(?:Ti|SUPER|D|Laptop)\b"
"""Words after a product's number that make it another product: an RTX 3090 Ti is no RTX 3090."""


@dataclass(frozen=True)
class Machine:
    """What there is to measure on.

    Args:
        gpus: NVIDIA's, those that this process may see, the one that is measured first.
        apple_gpu: the GPU of an Apple chip.
    """

    cpu: CpuFacts
    gpus: tuple[Gpu, ...] = ()
    apple_gpu: bool = False


def look(*, cpu_facts: Callable[[], CpuFacts] = cpu.read, gpus: Callable[[], Iterable[Gpu]] = nvml.gpus) -> Machine:
    """Return this machine."""
    apple = sys.platform == "darwin" and platform.machine() == "arm64"
    return Machine(cpu=cpu_facts(), gpus=tuple(gpus()), apple_gpu=apple)


def mismatch(profile: DeviceProfile, machine: Machine) -> str | None:
    """Return what a profile asks for and what was found instead, as a sentence; None: it fits.

    A device class of another package is asked for its product later, where it can be imported: in the worker.
    """
    here = machine.cpu.architecture
    if profile.architecture is not None and _architecture(profile.architecture) != _architecture(here):
        return f"Profile {profile.name} asks for a host with {profile.architecture}, and this one has {here}."
    if profile.kind == "cuda":
        return _gpu_mismatch(profile, machine)
    if profile.kind == "mps" and not machine.apple_gpu:
        return f"Profile {profile.name} asks for the GPU of an Apple chip, and this host is {_host(machine)}."
    if profile.kind in ("cpu", "mps") and not is_product(profile.product, machine.cpu.name):
        return f"Profile {profile.name} asks for a processor named {profile.product}, and found {machine.cpu.name}."
    return None


def choose(profiles: Iterable[DeviceProfile], machine: Machine) -> DeviceProfile:
    """Return the profile that says most about this machine.

    An accelerator before the CPU; then a product before an architecture before neither, the longer
    name of a product before the shorter; then by the profile's name.

    Raises:
        UsageError: none fits.
    """
    fitting = _fitting(profiles, machine)
    if not fitting:
        raise UsageError(
            f"--device auto: no profile fits this host ({_host(machine)}). Add one to configs/devices, "
            "or see `bench list devices`."
        )
    return fitting[0]


def refuse(profile: DeviceProfile, profiles: Sequence[DeviceProfile], machine: Machine) -> None:
    """Raise what is wrong with measuring by this profile here.

    Raises:
        UsageError: the machine is not the one that the profile asks for, or cannot give its threads.
    """
    if found := mismatch(profile, machine):
        best = next(iter(_fitting(profiles, machine)), None)
        hint = f"Use --device auto, which is {best.name} here." if best else "No other profile fits: add one."
        raise UsageError(f"{found} {hint}")
    pinned = cpu.pinning(machine.cpu) if profile.pin else ()
    if pinned and profile.threads is not None and profile.threads > len(pinned):
        raise UsageError(
            f"Profile {profile.name} asks for {profile.threads} threads and to keep them on one NUMA node, where this "
            f"process may use {len(pinned)} cores. Lower threads in its file, or set pin = false."
        )


def is_product(product: str | None, name: str) -> bool:
    """Say whether a machine's name for a device is that of the product: as whole words, in any case of letters."""
    if product is None:
        return True
    return re.search(rf"(?<![a-z0-9]){re.escape(product)}(?![a-z0-9])(?! {VARIANT})", name, re.IGNORECASE) is not None


def _gpu_mismatch(profile: DeviceProfile, machine: Machine) -> str | None:
    wanted = "an NVIDIA GPU" + (f" named {profile.product}" if profile.product else "")
    if not machine.gpus:
        return f"Profile {profile.name} asks for {wanted}, and no NVIDIA GPU was found: no driver, or none visible."
    first = machine.gpus[0]
    if is_product(profile.product, first.name):
        return None
    other = next((each for each in machine.gpus[1:] if is_product(profile.product, each.name)), None)
    hint = f" CUDA_VISIBLE_DEVICES={other.uuid or other.index} puts the right one first." if other else ""
    return f"Profile {profile.name} asks for {wanted}, and found {first.name}.{hint}"


def _fitting(profiles: Iterable[DeviceProfile], machine: Machine) -> list[DeviceProfile]:
    """Those that fit, the most telling first."""
    return sorted((each for each in profiles if each.kind in KINDS and mismatch(each, machine) is None), key=_rank)


def _rank(profile: DeviceProfile) -> tuple[object, ...]:
    return (
        KINDS.index(profile.kind),
        -len(profile.product or ""),
        profile.architecture is None,
        profile.name,
    )


def _architecture(word: str) -> str:
    return SAME_ARCHITECTURE.get(word.lower(), word.lower())


def _host(machine: Machine) -> str:
    return f"{machine.cpu.name}, {machine.cpu.architecture}"
