"""The machine and the profile: `--device auto` looks, planning for another machine is fine, measuring on it is not."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bench import main, run
from bench.options import Selection
from harness.errors import BenchError
from harness.host import cpu, detect
from harness.host.detect import Machine
from harness.host.nvml import Gpu
from harness.journal import replay
from harness.record import DeviceProfile
from harness.worker import environment
from harness.worker.main import Host
from tests.harness.host import hosts


@pytest.fixture
def on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Let the machine be one of `tests/data/hosts`, with these GPUs."""

    def be(host: str, *gpus: str) -> None:
        seen = Machine(
            cpu=cpu.read(hosts.build(tmp_path / host, host)),
            gpus=tuple(Gpu(index=i, name=name) for i, name in enumerate(gpus)),
        )
        monkeypatch.setattr(detect, "look", lambda: seen)

    return be


@pytest.mark.parametrize(
    ("host", "gpus", "name"),
    [
        ("x86-server", [], "cpu-x86"),
        ("graviton3", [], "graviton3"),
        ("x86-desktop", ["NVIDIA GeForce RTX 3090"], "rtx3090"),
    ],
)
def test_auto(on: Any, host: str, gpus: list[str], name: str) -> None:
    """Without `--device` the cases are those of this machine's profile."""
    on(host, *gpus)
    selection = Selection(suite=["toy"])

    assert name == selection.profile().name
    assert {name} == {planned.case.device for planned in selection.plan()}


def test_planning_for_another_machine(on: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """A plan for a device that is not here is printed, with that device's batch sizes."""
    on("x86-server")

    assert 0 == main.run(["plan", "--suite", "toy", "--device", "a100"])
    assert "cases on a100" in capsys.readouterr().out


def test_wrong_product(on: Any, capsys: pytest.CaptureFixture[str], monkeypatch: Any, tmp_path: Path) -> None:
    """A run on another machine than the profile's is refused with what was found, and leaves nothing behind."""
    monkeypatch.chdir(tmp_path)
    on("x86-server", "NVIDIA H200")

    assert 2 == main.run(["run", "--suite", "toy", "--device", "a100"])
    said = capsys.readouterr().err
    assert "Profile a100 asks for an NVIDIA GPU named A100, and found NVIDIA H200." in said
    assert "Use --device auto, which is h200 here." in said
    assert ["x86-server"] == [path.name for path in tmp_path.iterdir()]


def test_contradicting_variable(monkeypatch: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A variable that is set otherwise than the profile asks is refused before a worker starts."""
    (tmp_path / "devices").mkdir()
    (tmp_path / "devices/mine.toml").write_text('kind = "cpu"\nenvironment = { KMP_BLOCKTIME = "0" }')
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BENCH_CONFIGS", str(tmp_path))
    monkeypatch.setenv("KMP_BLOCKTIME", "200")

    assert 2 == main.run(["run", "--suite", "toy", "--device", "mine"])
    assert "Profile mine sets KMP_BLOCKTIME=0, and KMP_BLOCKTIME=200 is set here." in capsys.readouterr().err
    assert not (tmp_path / "runs").exists()


def test_compiler_goes_by_the_kind_of_device(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every CPU, whatever its profile's name, needs a C++ compiler for inductor; a GPU does not."""
    monkeypatch.setenv("CXX", "no-such-compiler")
    found = environment.find(None)
    host = Host(environment=found, backends=("inductor",), compile_modes=("default",), available_memory_bytes=1)
    plan = Selection(suite=["toy"], device="cpu-x86").plan()

    with pytest.raises(BenchError, match=r"needs a C\+\+ compiler"):
        run._check_compiler(plan, DeviceProfile(name="cpu-x86", kind="cpu"), host)
    run._check_compiler(plan, DeviceProfile(name="cpu", kind="cuda"), host)


RUN = """
import os, sys
from bench import main
os.sched_setaffinity(0, [max(os.sched_getaffinity(0))])
sys.exit(main.run(sys.argv[1:]))
"""


MINE = """
kind = "cpu"
pin = true
max_seconds = 3.0
environment = { KMP_BLOCKTIME = "0" }
"""

TELLS = """
import os

def build():
    raise ValueError(f"on {os.sched_getaffinity(0)}, {os.environ['KMP_BLOCKTIME']}")

def inputs():
    return (), {}
"""


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="this system does not pin")
def test_pinned_run(tmp_path: Path) -> None:
    """Children keep to the processors that are recorded, with a thread each, and see the profile's variables."""
    (tmp_path / "configs/devices").mkdir(parents=True)
    (tmp_path / "configs/devices/mine.toml").write_text(MINE)
    (tmp_path / "tell.py").write_text(TELLS)
    arguments = ["run", "--suite", "tell.py", "--mode", "inference", "--backend", "eager", "--device", "mine"]
    done = subprocess.run(
        [sys.executable, "-c", RUN, *arguments], cwd=tmp_path, capture_output=True, text=True, timeout=240
    )

    assert run.NOTHING_PASSED == done.returncode, done.stderr
    history = replay(next((tmp_path / "runs").iterdir()))
    (record,) = history.records.values()
    found = history.run.environment
    assert 1 == len(found.pinned) == found.threads == found.cores_usable
    assert "0" == found.variables["KMP_BLOCKTIME"]
    assert 3.0 == history.run.protocol.max_seconds
    assert f"on {{{found.pinned[0]}}}, 0" in (record.text or "")
