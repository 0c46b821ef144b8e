"""The machine and the profiles: which fits, which is chosen, and what is said of one that does not fit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harness import config
from harness.errors import UsageError
from harness.host import cpu, detect
from harness.host.detect import Machine
from harness.host.nvml import Gpu
from harness.record import DeviceProfile
from tests.harness.host import hosts

GIB = 1 << 30


@pytest.fixture
def committed() -> list[DeviceProfile]:
    return [config.device(name) for name in config.devices()]


def machine(folder: Path, host: str = "x86-server", *gpus: str, **more: Any) -> Machine:
    named = tuple(Gpu(index=i, name=name, uuid=f"GPU-{i}") for i, name in enumerate(gpus))
    return Machine(cpu=cpu.read(hosts.build(folder, host)), gpus=named, **more)


def profile(name: str = "mine", kind: str = "cpu", **more: Any) -> DeviceProfile:
    return DeviceProfile(name=name, kind=kind, **more)


@pytest.mark.parametrize(
    ("host", "gpus", "chosen"),
    [
        ("x86-server", [], "cpu-x86"),
        ("vm", [], "cpu-x86"),
        ("container-v2", [], "cpu-x86"),
        ("graviton3", [], "graviton3"),
        ("graviton2", [], "cpu"),
        ("arm-board", [], "cpu"),
        ("x86-server", ["NVIDIA A100-SXM4-40GB"], "a100"),
        ("x86-server", ["NVIDIA A100 80GB PCIe"] * 8, "a100"),
        ("x86-server", ["NVIDIA RTX A1000"], "cuda"),
        ("x86-desktop", ["NVIDIA GeForce RTX 3090"], "rtx3090"),
        ("x86-desktop", ["NVIDIA GeForce RTX 3090 Ti"], "cuda"),
        ("x86-server", ["NVIDIA H200"], "h200"),
        ("x86-server", ["NVIDIA H200 NVL"], "h200"),
        ("graviton2", ["NVIDIA GH200 480GB"], "cuda"),
        ("x86-server", ["Tesla T4", "NVIDIA H200"], "cuda"),
        ("graviton3", ["NVIDIA T4G"], "cuda"),
    ],
)
def test_auto(tmp_path: Path, committed: list[DeviceProfile], host: str, gpus: list[str], chosen: str) -> None:
    """`auto` finds the profile of the machine: the first GPU before the CPU, and what is named before what is not."""
    assert chosen == detect.choose(committed, machine(tmp_path, host, *gpus)).name


def test_auto_on_a_mac(tmp_path: Path, committed: list[DeviceProfile]) -> None:
    """An Apple chip's GPU goes before its CPU; macOS has another word for the architecture."""
    root = hosts.build(tmp_path, "arm-board", {"proc/sys/kernel/arch": "arm64"})

    assert "mps" == detect.choose(committed, Machine(cpu=cpu.read(root), apple_gpu=True)).name
    assert "cpu" == detect.choose(committed, Machine(cpu=cpu.read(root))).name


@pytest.mark.parametrize(
    ("profiles", "chosen"),
    [
        ([profile("a"), profile("b", architecture="x86_64")], "b"),
        ([profile("a", architecture="x86_64"), profile("b", product="8480+")], "b"),
        ([profile("a", product="Xeon(R)"), profile("b", product="xeon(r) platinum")], "b"),
        ([profile("b"), profile("a")], "a"),
        ([profile("a", product="8480+"), profile("b", "cuda")], "b"),
        ([profile("a", "package.module:Class"), profile("b")], "b"),
        ([profile("a", product="EPYC"), profile("b", architecture="aarch64"), profile("c")], "c"),
    ],
)
def test_most_specific(tmp_path: Path, profiles: list[DeviceProfile], chosen: str) -> None:
    """A product goes before an architecture, a longer before a shorter name; another package's class is never taken."""
    assert chosen == detect.choose(profiles, machine(tmp_path, "x86-server", "Tesla T4")).name


def test_nothing_fits(tmp_path: Path) -> None:
    """Without a profile for the machine, it is described."""
    with pytest.raises(UsageError, match=r"no profile fits this host \(Neoverse-V1, aarch64\)"):
        detect.choose([profile(architecture="x86_64")], machine(tmp_path, "graviton3"))


@pytest.mark.parametrize(
    ("name", "host", "gpus", "sentence"),
    [
        ("a100", "x86-server", [], "Profile a100 asks for an NVIDIA GPU named A100, and no NVIDIA GPU was found"),
        (
            "a100",
            "x86-server",
            ["NVIDIA H200"],
            "Profile a100 asks for an NVIDIA GPU named A100, and found NVIDIA H200.",
        ),
        ("cuda", "x86-server", [], "Profile cuda asks for an NVIDIA GPU, and no NVIDIA GPU was found"),
        (
            "graviton3",
            "graviton2",
            [],
            "Profile graviton3 asks for a processor named Neoverse-V1, and found Neoverse-N1.",
        ),
        ("cpu-x86", "graviton3", [], "Profile cpu-x86 asks for a host with x86_64, and this one has aarch64."),
        ("mps", "arm-board", [], "Profile mps asks for the GPU of an Apple chip, and this host is Cortex-A53"),
    ],
)
def test_mismatch(
    tmp_path: Path, committed: list[DeviceProfile], name: str, host: str, gpus: list[str], sentence: str
) -> None:
    """What a profile asks for and what was found stand in one sentence."""
    asked = next(each for each in committed if each.name == name)
    said = detect.mismatch(asked, machine(tmp_path, host, *gpus))

    assert said is not None
    assert said.startswith(sentence)


def test_second_gpu(tmp_path: Path) -> None:
    """Where the product is there and not the first, the sentence says how it becomes the first."""
    said = detect.mismatch(
        profile(kind="cuda", product="A100"), machine(tmp_path, "vm", "Tesla T4", "NVIDIA A100-PCIE")
    )

    assert said is not None
    assert said.endswith("found Tesla T4. CUDA_VISIBLE_DEVICES=GPU-1 puts the right one first.")


def test_class_of_another_package(tmp_path: Path) -> None:
    """The product of another package's device is not judged here; the host's architecture is."""
    here = machine(tmp_path)

    assert detect.mismatch(profile(kind="tests.fakes:Other", product="nothing like it"), here) is None
    assert detect.mismatch(profile(kind="tests.fakes:Other", architecture="aarch64"), here) is not None


def test_refuse(tmp_path: Path, committed: list[DeviceProfile]) -> None:
    """A profile that does not fit is refused with one that does; one that fits is not."""
    here = machine(tmp_path, "graviton3")

    with pytest.raises(UsageError, match=r"found\: no driver.* Use --device auto, which is graviton3 here\."):
        detect.refuse(next(each for each in committed if each.name == "h200"), committed, here)
    with pytest.raises(UsageError, match="No other profile fits: add one"):
        detect.refuse(profile(product="Neoverse-V2"), [], here)
    detect.refuse(next(each for each in committed if each.name == "graviton3"), committed, here)


def test_threads_beyond_the_pinned(tmp_path: Path) -> None:
    """More threads than one NUMA node has cores are refused where they are to be kept there, and only there."""
    here = machine(tmp_path)

    with pytest.raises(UsageError, match="asks for 5 threads and to keep them on one NUMA node.* may use 4 cores"):
        detect.refuse(profile(pin=True, threads=5), [], here)
    detect.refuse(profile(pin=True, threads=4), [], here)
    detect.refuse(profile(pin=False, threads=5), [], here)


def test_look(tmp_path: Path) -> None:
    """A look brings together what processors and drivers say; no GPU is made up."""
    gpu = Gpu(index=0, name="NVIDIA H200", memory_bytes=141 * GIB)
    seen = detect.look(cpu_facts=lambda: cpu.read(hosts.build(tmp_path, "graviton3")), gpus=lambda: [gpu])

    assert ("Neoverse-V1", (gpu,), False) == (seen.cpu.name, seen.gpus, seen.apple_gpu)
    assert () == detect.look(gpus=list).gpus
