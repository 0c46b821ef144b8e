"""The child: one assignment in, stage events and one answer out on its own pipe.

Answers are JSON, not pickles: nothing a model raises can keep an answer from arriving.
"""

from __future__ import annotations

import ctypes
import faulthandler
import multiprocessing
import os
import resource
import signal
import threading
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, TypeAdapter

from harness.errors import BenchError
from harness.host import cpu
from harness.host.cpu import CpuFacts
from harness.record import DeviceProfile, Environment, Findings, Planned, Protocol, Stage
from suites.spec import Frozen


class Assignment(Frozen):
    """All that a child needs to measure one case."""

    planned: Planned
    protocol: Protocol
    profile: DeviceProfile
    folder: str
    """An empty folder for the compiler's caches and the model's temporary files; the parent removes it."""


class AtStage(Frozen):
    """The child begins a stage; `findings` is what is known so far, should it not come back."""

    type: Literal["stage"] = "stage"
    stage: Stage
    findings: Findings


class Answer(Frozen):
    type: Literal["answer"] = "answer"
    findings: Findings


class Host(Frozen):
    """What a probe found: the environment, and what torch can do here."""

    type: Literal["host"] = "host"
    environment: Environment
    backends: tuple[str, ...]
    compile_modes: tuple[str, ...]
    available_memory_bytes: int


class Problem(Frozen):
    """The harness itself cannot work; no record can be trusted."""

    type: Literal["problem"] = "problem"
    text: str


Message = Annotated[AtStage | Answer | Host | Problem, Field(discriminator="type")]
MESSAGE: TypeAdapter[AtStage | Answer | Host | Problem] = TypeAdapter(Message)


def send(pipe: Connection, message: AtStage | Answer | Host | Problem) -> None:
    pipe.send_bytes(message.model_dump_json().encode())


def measure_case(assignment_json: str, pipe: Connection, log: Connection) -> None:
    """Run one case to its answer. Target of a forkserver process."""
    assignment = Assignment.model_validate_json(assignment_json)
    _settle(log, assignment.protocol.memory_limit_bytes)
    if assignment.profile.pin:
        pin(cpu.read())
    os.environ["TMPDIR"] = assignment.folder
    if not _healthy(pipe):
        return
    from harness.worker import measure  # the only import that touches torch; here it is already loaded
    from harness.worker.compiled import fresh_caches

    fresh_caches(Path(assignment.folder))
    try:
        findings = measure.measure(
            assignment.planned,
            assignment.protocol,
            assignment.profile,
            lambda stage, findings: send(pipe, AtStage(stage=stage, findings=findings)),
        )
    except BenchError as error:  # the device is not there, or another one: no model's fault
        send(pipe, Problem(text=str(error)))
        return
    send(pipe, Answer(findings=findings))


class Look(Frozen):
    """What a probe is to do."""

    threads: int | None = None
    inductor: bool = False
    """Cases will compile with inductor: make what it makes once per machine."""
    profile: DeviceProfile | None = None
    """The device asked for; None: the CPU, and not pinned."""


def find_host(look_json: str, pipe: Connection, log: Connection) -> None:
    """Look at the host and at torch. Target of a forkserver process."""
    look = Look.model_validate_json(look_json)
    _settle(log, None)
    facts = cpu.read()  # before pinning, which would hide what this process may use
    pinned = pin(facts) if look.profile is not None and look.profile.pin else ()
    if not _healthy(pipe):
        return
    from harness.worker import compiled, environment

    try:
        found = environment.find(look.threads, profile=look.profile, facts=facts, pinned=pinned)
    except BenchError as error:  # the device of another package, which only a worker can look at
        send(pipe, Problem(text=str(error)))
        return
    if look.inductor and found.compiler:
        compiled.compile_once()
    send(
        pipe,
        Host(
            environment=found,
            backends=tuple(compiled.backends()),
            compile_modes=tuple(compiled.compile_modes()),
            available_memory_bytes=environment.available_memory_bytes(),
        ),
    )


def pin(facts: CpuFacts) -> tuple[int, ...]:
    """Keep this process, and all it will start, on the processors of `harness.host.cpu.pinning`.

    To be called before the first tensor operation, which starts threads that are not moved any more.

    Returns:
        the processors it is kept on; empty where the system does not do it.
    """
    if not hasattr(os, "sched_setaffinity") or not (wanted := cpu.pinning(facts)):
        return ()
    try:
        os.sched_setaffinity(0, wanted)
    except OSError:  # not permitted, or one of them went offline just now
        return ()
    return tuple(sorted(os.sched_getaffinity(0)))


def _healthy(pipe: Connection) -> bool:
    from harness.worker import preload

    if preload.PROBLEM:
        send(pipe, Problem(text=preload.PROBLEM))
    return preload.PROBLEM is None


def _settle(log: Connection, memory_limit_bytes: int | None) -> None:
    """Become the leader of an own process group that ends with the parent, prints into `log`, and has limits."""
    os.setsid()
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    os.dup2(log.fileno(), 1)
    os.dup2(log.fileno(), 2)
    faulthandler.enable(file=2, all_threads=False)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if memory_limit_bytes is not None:
        # DATA, not AS: address space also counts the libraries' mappings, and CUDA reserves far more than it uses.
        resource.setrlimit(resource.RLIMIT_DATA, (memory_limit_bytes, memory_limit_bytes))
    _end_with_parent()


def _end_with_parent() -> None:
    """A killed parent cannot end its children: they watch it, and the kernel watches the forkserver between."""
    parent = multiprocessing.parent_process()
    if parent is None:
        return

    def watch() -> None:
        wait([parent.sentinel])
        os.killpg(0, signal.SIGKILL)

    threading.Thread(target=watch, name="parent watch", daemon=True).start()
    try:
        set_parent_death_signal = ctypes.CDLL(None).prctl
    except (AttributeError, OSError):
        return  # not Linux: the thread alone must do
    set_parent_death_signal(1, signal.SIGKILL)  # PR_SET_PDEATHSIG, for a child that holds the GIL for ever
