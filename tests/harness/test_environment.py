"""The environment: what is found here is what other sources say, and what is not there is None."""

from __future__ import annotations

import os
import platform
from pathlib import Path

import psutil
import pytest
import torch

from harness.errors import BenchError
from harness.host import cgroup, cpu
from harness.host.nvml import Gpu
from harness.record import DeviceProfile
from harness.worker import environment
from tests.harness.host import hosts

GIB = 1 << 30


def test_agrees_with_other_sources() -> None:
    """Memory, cores, versions and threads are those that the system and torch report."""
    found = environment.find(None)

    assert found.memory_bytes == psutil.virtual_memory().total
    assert found.versions["torch"].partition("+")[0] == torch.__version__.partition("+")[0]
    assert found.python == platform.python_version()
    assert 1 <= found.threads <= found.cores_usable <= (os.cpu_count() or 1)
    assert set(found.emulated) <= {"bfloat16", "float16"}
    assert (found.product, found.pinned) == (None, ())


def test_threads() -> None:
    """Threads are those asked for, or else one per pinned processor, or else one per physical core."""
    assert environment.find(1).threads == 1
    assert environment.find(1, pinned=(0, 2, 4)).threads == 1
    assert environment.find(None, pinned=(0, 2, 4)).threads == 3
    assert environment.find(None).threads == environment.physical_cores()


def test_facts_of_the_host(tmp_path: Path) -> None:
    """Processor, topology, clocks and what a container may use are the host's own."""
    server = environment.find(None, facts=cpu.read(hosts.build(tmp_path / "server", "x86-server")))
    container = environment.find(None, facts=cpu.read(hosts.build(tmp_path / "container", "container-v2")))

    assert (server.cpu, server.sockets, server.numa_nodes) == ("Intel(R) Xeon(R) Platinum 8480+", 2, 2)
    assert (server.cores_physical, server.cores_usable, server.smt) == (8, 16, True)
    assert (server.governor, server.turbo, server.cgroup_cores) == ("performance", False, None)
    assert {"amx_bf16", "avx512_bf16"} <= set(server.cpu_flags)
    assert (container.cgroup_cores, container.cgroup_memory_bytes) == (1.5, 4 * GIB)
    assert (container.cores_usable, container.threads) == (1, 1)


def test_graviton(tmp_path: Path) -> None:
    """On Graviton the processor has its core's name, its flags and its number formats."""
    found = environment.find(None, facts=cpu.read(hosts.build(tmp_path, "graviton3")))

    assert (found.cpu, found.virtualised, found.emulated) == ("Neoverse-V1", "Amazon EC2", ())
    assert {"sve", "bf16", "i8mm"} <= set(found.cpu_flags)


def test_accelerator() -> None:
    """Of NVIDIA's GPUs the first is the product, whose memory and driver are told; a CPU asks no driver."""
    gpus = [Gpu(index=i, name="NVIDIA H200", memory_bytes=141 * GIB, driver="570.86.15") for i in range(2)]
    found = environment.find(None, profile=DeviceProfile(name="h200", kind="cuda"), gpus=lambda: gpus)
    none = environment.find(None, profile=DeviceProfile(name="cpu", kind="cpu"), gpus=lambda: gpus)
    apple = environment.find(None, profile=DeviceProfile(name="mps", kind="mps"), gpus=lambda: gpus)

    assert (found.product, found.device_count, found.device_memory_bytes) == ("NVIDIA H200", 2, 141 * GIB)
    assert (found.driver, found.emulated) == ("570.86.15", ())
    assert (none.product, none.device_count, none.driver) == (None, None, None)
    assert (apple.product, apple.device_memory_bytes) == (apple.cpu, None)


@pytest.mark.parametrize(("capability", "emulated"), [((7, 5), ("bfloat16",)), ((8, 0), ()), (None, ())])
def test_formats_of_a_gpu(capability: tuple[int, int] | None, emulated: tuple[str, ...]) -> None:
    """What a GPU emulates goes by the GPU and not by its host: bfloat16 came with Ampere."""
    gpu = Gpu(index=0, name="any", capability=capability)

    assert emulated == environment.find(None, profile=DeviceProfile(name="a", kind="cuda"), gpus=lambda: [gpu]).emulated


class Other:
    """A device of another package."""

    def product(self) -> str:
        return "Gaudi 3"

    def limit(self, reserve_bytes: int) -> None: ...


def test_device_of_another_package() -> None:
    """Such a device is asked for its product; another than the profile's is refused."""
    profile = DeviceProfile(name="other", kind="tests.harness.test_environment:Other", product="Gaudi 3")
    found = environment.find(None, profile=profile)

    assert (found.product, found.emulated) == ("Gaudi 3", ())
    with pytest.raises(BenchError, match="Gaudi 2"):
        environment.find(None, profile=profile.model_copy(update={"product": "Gaudi 2"}))


def test_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    """Variables that matter are recorded, and those of the profile whatever their names."""
    monkeypatch.setenv("KMP_BLOCKTIME", "1")
    monkeypatch.setenv("SOMETHING", "else")
    plain = environment.find(None)
    asked = environment.find(None, profile=DeviceProfile(name="a", kind="cpu", environment={"SOMETHING": "else"}))

    assert plain.variables["KMP_BLOCKTIME"] == "1"
    assert dict(plain.variables) | {"SOMETHING": "else"} == dict(asked.variables)
    assert "SOMETHING" not in plain.variables
    assert plain.hard != asked.hard


def test_available_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a control group leaves bounds what a child may take."""
    monkeypatch.setattr(cgroup, "read", lambda: cgroup.Allowance(memory_bytes=3, memory_free_bytes=2))
    assert environment.available_memory_bytes() == 2

    monkeypatch.setattr(cgroup, "read", lambda: cgroup.Allowance())
    assert environment.available_memory_bytes() > GIB // 8


def test_absent_is_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No compiler, no governor, no machine id: None, and no exception."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("CXX", "no-such-compiler")
    monkeypatch.setattr(environment, "_text", lambda path: None)
    found = environment.find(None, facts=cpu.read(tmp_path))

    assert (found.compiler, found.governor, found.machine_id, found.virtualised) == (None, None, None, None)
    assert (found.cores_physical, found.sockets, found.turbo, found.smt) == (None, None, None, None)
