"""Targets of a forkserver process that misbehave in the ways real models do. Each has the real start of a child."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
from multiprocessing.connection import Connection
from pathlib import Path

from harness.record import CompileReport, Findings, Outcome, Stage
from harness.worker.main import Answer, Assignment, AtStage, _settle, send

FOUND = Findings(outcome=Outcome.PASS)


def _begin(argument: str, pipe: Connection, log: Connection, stage: Stage = Stage.EAGER) -> Assignment:
    assignment = Assignment.model_validate_json(argument)
    _settle(log, assignment.protocol.memory_limit_bytes)
    send(pipe, AtStage(stage=stage, findings=FOUND))
    return assignment


def answers(argument: str, pipe: Connection, log: Connection) -> None:
    _begin(argument, pipe, log)
    send(pipe, Answer(findings=FOUND))


def hangs(argument: str, pipe: Connection, log: Connection) -> None:
    _begin(argument, pipe, log)
    time.sleep(600)


def hangs_deaf(argument: str, pipe: Connection, log: Connection) -> None:
    """Holds the interpreter lock in C and ignores what can be ignored."""
    _begin(argument, pipe, log)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    ctypes.PyDLL(None).sleep(600)


def segfaults(argument: str, pipe: Connection, log: Connection) -> None:
    _begin(argument, pipe, log, Stage.COMPILE)
    ctypes.string_at(0)


def killed(argument: str, pipe: Connection, log: Connection) -> None:
    _begin(argument, pipe, log)
    os.kill(os.getpid(), signal.SIGKILL)


def exits_without_answer(argument: str, pipe: Connection, log: Connection) -> None:
    _begin(argument, pipe, log)
    os._exit(0)


def talks_much(argument: str, pipe: Connection, log: Connection) -> None:
    _begin(argument, pipe, log)
    sys.stdout.write("first words\n")
    for _ in range(1000):
        sys.stdout.write("x" * 9_999 + "\n")
    sys.stdout.write("last words\n")
    sys.stdout.flush()
    send(pipe, Answer(findings=FOUND))


def lingers(argument: str, pipe: Connection, log: Connection) -> None:
    answers(argument, pipe, log)
    time.sleep(600)


def leaves_grandchildren(argument: str, pipe: Connection, log: Connection) -> None:
    """One stays in the process group, one escapes it with a session of its own, twice forked."""
    _begin(argument, pipe, log)
    subprocess.Popen(["sleep", "613"])
    subprocess.Popen(["sh", "-c", "setsid sleep 617 & exit 0"])
    time.sleep(0.3)
    send(pipe, Answer(findings=FOUND))


def writes_nonsense(argument: str, pipe: Connection, log: Connection) -> None:
    _begin(argument, pipe, log)
    pipe.send_bytes(b"\x80not json")
    os._exit(0)


def eats_memory(argument: str, pipe: Connection, log: Connection) -> None:
    _begin(argument, pipe, log)
    try:
        bytearray(8 << 30)
    except MemoryError:
        send(pipe, Answer(findings=Findings(outcome=Outcome.OOM)))


def fails_then_dies(argument: str, pipe: Connection, log: Connection) -> None:
    """Dies in the timing stage after its check had failed."""
    _begin(argument, pipe, log)
    failed = Findings(outcome=Outcome.FAIL_ACCURACY, stage=Stage.CHECK, text="output differs")
    send(pipe, AtStage(stage=Stage.TIME, findings=failed))
    os._exit(7)


def killed_by_the_kernel(argument: str, pipe: Connection, log: Connection) -> None:
    """Joins the memory cgroup that its plan names, and takes more than it may."""
    cgroup = Path(_begin(argument, pipe, log).planned.spec.build_name)
    (cgroup / "cgroup.procs").write_text(str(os.getpid()))
    taken = []
    while True:
        taken.append(b"x" * (16 << 20))


def tells_then_dies(argument: str, pipe: Connection, log: Connection) -> None:
    """Dies in the timing stage after it reported its compilation."""
    _begin(argument, pipe, log)
    report = CompileReport(
        wall_s=1.0, cpu_s=1.0, first_call_s=1.0, graphs=1, operators=2, graph_breaks=0, cold=True, backend="eager"
    )
    send(pipe, AtStage(stage=Stage.TIME, findings=Findings(outcome=Outcome.PASS, compile=report)))
    os._exit(7)
