"""Looking at a host: what its files say is what is seen, ourselves left out."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from harness.doctor import look as looking
from harness.doctor.look import Ticks, look, tenants, watch
from harness.doctor.sight import GpuSight
from harness.host.nvml import Gpu
from harness.host.reading import Reading
from tests.harness.host.hosts import build

STAT = "cpu  47258 0 10163 108140 1011 0 107 33 0 0\ncpu0 17204 0 3458 62076 544 0 18 14 0 0\n"
"""Of a virtual machine, some minutes after its start."""


def write(root: Path, path: str, text: str) -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text)


def test_ticks_of_a_recorded_file(tmp_path: Path) -> None:
    """Busy is user, nice, system and interrupts; steal is a share of busy and stolen time, idle left out."""
    write(tmp_path, "proc/stat", STAT)

    ticks = Ticks.read(tmp_path)

    assert Ticks(busy=47258 + 10163 + 107, steal=33) == ticks
    assert 33 / 57561 == pytest.approx(ticks.steal_share)


@pytest.mark.parametrize("text", ["", "cpu  1 2 3\n", "intr 1 2 3 4 5 6 7 8 9 10\n"])
def test_odd_file_is_unknown(tmp_path: Path, text: str) -> None:
    """A kernel that does not tell, or not all, leaves steal and load unknown."""
    write(tmp_path, "proc/stat", text)

    assert Ticks.read(tmp_path) is None
    assert (None, None) == (watch(tmp_path, 0.01).busy_cores, watch(tmp_path, 0.01).steal_share)


def test_watch_takes_the_difference(tmp_path: Path) -> None:
    """Load and steal are those of the time of watching: 100 ticks of 100 Hz in about a second are one processor."""
    write(tmp_path, "proc/stat", STAT)
    write(tmp_path, "sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_count", "4")

    def meanwhile(seconds: float) -> None:
        write(tmp_path, "proc/stat", STAT.replace("47258", "47358").replace(" 33 ", " 58 "))
        write(tmp_path, "sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_count", "6")

    seen = watch(tmp_path, 1.0, spin=meanwhile)

    assert 0.2 == pytest.approx(seen.steal_share)
    assert 2 == seen.throttled
    assert seen.busy_cores is not None
    assert 0 < seen.busy_cores <= 1.0 / seen.seconds


def test_tenants_are_differences() -> None:
    """A process counts with what it took meanwhile, one that began meanwhile with all, a reused number as a new one."""
    before = {(1, 10.0): ("old", 5.0), (2, 10.0): ("idle", 3.0), (3, 10.0): ("gone", 1.0)}
    after = {(1, 10.0): ("old", 5.4), (2, 10.0): ("idle", 3.0), (3, 99.0): ("new\x1b[2J", 0.1)}

    found = tenants(before, after, 0.5)

    assert [("old", 1, 0.8), ("new?[2J", 3, 0.2)] == [(t.name, t.pid, pytest.approx(t.cores)) for t in found]


def test_names_are_bounded() -> None:
    """A process may call itself what it likes; at most 40 characters of it are kept."""
    (found,) = tenants({}, {(1, 1.0): ("x" * 500, 1.0)}, 1.0)

    assert "x" * 40 == found.name


def test_own_children_are_no_tenants() -> None:
    """What this process and its children take is no load of others."""
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as child:
        try:
            seen = watch(seconds=0.3)
        finally:
            child.kill()

    assert not {child.pid, psutil.Process().pid} & {tenant.pid for tenant in seen.tenants}


def test_look_at_a_recorded_host(tmp_path: Path) -> None:
    """Facts come from the host's files, limits of its clocks too; a limit below the highest is seen."""
    files = {"sys/devices/system/cpu/cpu0/cpufreq/scaling_max_freq": "2000000", "proc/stat": STAT}
    root = build(tmp_path / "host", "x86-server", files)
    gpu = Gpu(index=0, name="NVIDIA A100")

    def look_at(each: Gpu) -> GpuSight:
        return GpuSight(each.name, Reading(clock_mhz=210.0, idle=True), 1410.0)

    seen = look({"journals": tmp_path / "runs"}, root=root, watch_s=0.01, gpus=lambda: [gpu], look_at=look_at)

    facts = seen.machine.cpu
    assert ("performance",) == facts.governors
    assert (3800.0, 2000.0) == (facts.max_mhz, seen.limit_mhz)
    assert 33 / 57561 == pytest.approx(seen.steal_since_boot)
    assert seen.throttled_since_boot is None
    assert seen.gpu == GpuSight("NVIDIA A100", Reading(clock_mhz=210.0, idle=True), 1410.0)


def test_place_that_is_to_be_made(tmp_path: Path) -> None:
    """A folder that does not exist yet is judged by the nearest that does, and nothing is left in it."""
    place = looking.place("journals", tmp_path / "a" / "b", timed=True)

    assert (tmp_path, True) == (place.path, place.writable)
    assert place.free_bytes is not None
    assert place.sync_s is not None
    assert [] == list(tmp_path.iterdir())


def test_absent_compilers_are_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No compiler is None; one that is named by CXX and CC is asked for its version."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setenv("CXX", "own-c++")
    absent = look({}, watch_s=0.01)
    (tmp_path / "own-c++").write_text("#!/bin/sh\necho own c++ 1.0\n")
    (tmp_path / "own-c++").chmod(0o755)
    present = look({}, watch_s=0.01)

    assert (None, None) == (absent.compiler, absent.c_compiler)
    assert "own c++ 1.0" == present.compiler
