"""A child is pinned before its first tensor operation, and one that cannot be is not said to be."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from harness import config
from harness.host.cpu import CpuFacts
from harness.record import Measure
from harness.worker import main
from harness.worker.main import Assignment
from tests.harness.host import hosts
from tests.harness.runs import make_run

SPEC = next(each for each in config.suite("toy").models if each.name == "mlp")

CODE = """
import os, sys
from multiprocessing import Pipe
from pathlib import Path
from harness.host import cpu
from harness.worker import main
from harness.worker.main import MESSAGE, Answer, Host

facts = cpu.read(Path(sys.argv[1]))
cpu.read = lambda: facts
ours, pipe = Pipe(duplex=False)
log, log_end = Pipe(duplex=False)
out = os.dup(1)
getattr(main, sys.argv[2])(sys.stdin.read(), pipe, log_end)
message = None
while not isinstance(message, Answer | Host):
    message = MESSAGE.validate_json(ours.recv_bytes())
kept = sorted(os.sched_getaffinity(0))
if isinstance(message, Host):
    said = f"{kept} {message.environment.threads} {list(message.environment.pinned)}"
else:
    said = f"{kept} {message.findings.observed.threads} {message.findings.outcome} {message.findings.text}"
os.write(out, said.encode())
"""

needs_two = pytest.mark.skipif(
    not hasattr(os, "sched_getaffinity") or len(os.sched_getaffinity(0)) < 2, reason="needs two processors"
)


@pytest.fixture
def one_core(tmp_path: Path) -> Path:
    """A machine with one core of two threads, which are this machine's first two processors."""
    first, second = sorted(os.sched_getaffinity(0))[:2]
    core = {
        f"sys/devices/system/cpu/cpu{each}/topology/core_cpus_list": f"{first},{second}" for each in (first, second)
    }
    online = {"sys/devices/system/cpu/online": f"{first},{second}"}
    return hosts.build(tmp_path, "vm", {**core, **online, "proc/self/status": f"Cpus_allowed_list:\t{first},{second}"})


def child(target: str, argument: str, root: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-c", CODE, str(root), target], input=argument, capture_output=True, text=True, timeout=120
    )
    assert 0 == done.returncode, done.stderr
    return done.stdout


@needs_two
@pytest.mark.parametrize("pin", [True, False])
def test_case(one_core: Path, tmp_path: Path, pin: bool) -> None:
    """A case of a profile with `pin` keeps to one processor of each core, with a thread each; another does not."""
    run = make_run()
    planned = run.plan[0].model_copy(update={"spec": SPEC})
    profile = run.profile.model_copy(update={"pin": pin})
    protocol = run.protocol.model_copy(update={"measure": Measure.ACCURACY, "memory_limit_bytes": None})
    assignment = Assignment(planned=planned, protocol=protocol, profile=profile, folder=str(tmp_path))
    usable = sorted(os.sched_getaffinity(0))

    said = child("measure_case", assignment.model_dump_json(), one_core)

    assert said == f"{usable[:1] if pin else usable} 1 pass None"


@needs_two
@pytest.mark.parametrize("pin", [True, False])
def test_probe(one_core: Path, pin: bool) -> None:
    """The probe is pinned as the cases will be, and says so."""
    look = main.Look(profile=make_run().profile.model_copy(update={"pin": pin}))
    usable = sorted(os.sched_getaffinity(0))

    said = child("find_host", look.model_dump_json(), one_core)

    assert said == (f"[{usable[0]}] 1 [{usable[0]}]" if pin else f"{usable} 1 []")


def test_not_permitted(one_core: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the system refuses, or cannot do it, or does not tell processors apart, nothing is pinned."""
    from harness.host import cpu

    def refuse(pid: int, processors: object) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "sched_setaffinity", refuse)
    assert main.pin(cpu.read(one_core)) == ()
    assert main.pin(CpuFacts(architecture="arm64", name="Apple M2", usable=(0, 1))) == ()
    monkeypatch.delattr(os, "sched_setaffinity")
    assert main.pin(cpu.read(one_core)) == ()
