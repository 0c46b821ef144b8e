"""Children and their ends: fork one, read what it says and prints, and leave nothing of it behind.

The forkserver has torch and the suites' libraries imported; a child is at work after 0.05 s
instead of 10 s. A child leads its own process group, so that its compilers die with it.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import multiprocessing
import multiprocessing.forkserver
import multiprocessing.resource_tracker
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

import psutil

from harness.errors import BenchError
from harness.record import DeviceProfile, Log
from harness.worker.main import MESSAGE, Answer, AtStage, Host, Look, Problem, find_host

START_LIMIT_S = 180.0
"""A first import of torch from a cold disk took 85 s."""

EXIT_GRACE_S = 2.0
"""How long a child may take to leave once its answer is here."""

LOG_HALF_BYTES = 16 * 1024
"""Of what a child prints, this much of its beginning and of its end is kept."""

POLL_S = 0.2


class Stop:
    """Ctrl-C once: finish the record in hand. Twice: now."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, _signal: int = 0, _frame: object = None) -> None:
        self.count += 1

    @property
    def soon(self) -> bool:
        return self.count >= 1

    @property
    def now(self) -> bool:
        return self.count >= 2

    def wait(self) -> None:
        """Return at the next Ctrl-C."""
        while not self.soon:
            time.sleep(POLL_S)

    @contextlib.contextmanager
    def listening(self) -> Iterator[Stop]:
        """Take SIGINT and SIGTERM while the block runs."""
        old = {number: signal.signal(number, self) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield self
        finally:
            for number, handler in old.items():
                signal.signal(number, handler)


@dataclass(frozen=True)
class Ending:
    """How a child ended: with an answer, or with what was last heard of it."""

    answer: Answer | None
    last: AtStage | None
    exit_code: int | None
    timed_out: bool
    interrupted: bool
    out_of_memory_kills: int
    log: Log


class Workers:
    """The forkserver of a run.

    Args:
        modules: what children need imported, e.g. `suites.timm`.
    """

    def __init__(self, modules: Sequence[str]) -> None:
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload(["harness.worker.preload"])
        os.environ["BENCH_PRELOAD"] = ",".join(modules)
        # A killed child leaves semaphores behind; the standard library's tracker removes them and need not complain.
        sys.warnoptions.append("ignore:resource_tracker:UserWarning")
        _adopt_orphans()
        atexit.unregister(_end_helpers)  # once is enough, however many runs a process makes
        atexit.register(_end_helpers)

    def host(self, threads: int | None, *, inductor: bool = False, profile: DeviceProfile | None = None) -> Host:
        """Start the forkserver and return what a first child finds here.

        Args:
            threads: of one operation; None: as many as there are physical cores.
            inductor: cases will compile with inductor; what it makes once per machine is made now.
            profile: the device asked for; None: the CPU, and not pinned.

        Raises:
            BenchError: the children of this forkserver could not be trusted, or it does not start.
        """
        look = Look(threads=threads, inductor=inductor, profile=profile)
        child = _Child(self._context, find_host, look.model_dump_json())
        deadline = time.monotonic() + START_LIMIT_S
        message = None
        try:
            while message is None and not child.gone and time.monotonic() < deadline:
                message = child.hear(POLL_S)
            child.process.join(EXIT_GRACE_S if message else 0)  # one that is killed leaves its semaphores behind
        finally:
            child.end()
        if isinstance(message, Host):
            return message
        if isinstance(message, Problem):
            raise BenchError(message.text)
        printed = child.log().head.strip() or "nothing"
        raise BenchError(f"no worker became ready within {START_LIMIT_S:.0f} s; the first one printed:\n{printed}")

    def attend(
        self,
        target: Callable[..., None],
        argument: str,
        *,
        timeout_s: float,
        stop: Stop,
        at_stage: Callable[[AtStage], None],
        tick: Callable[[], None] = lambda: None,
    ) -> Ending:
        """Run one child to its end, which comes within `timeout_s` and a grace.

        Raises:
            BenchError: the child says that the harness cannot work.
        """
        kills = _kernel_kills()
        deadline = time.monotonic() + timeout_s
        child = _Child(self._context, target, argument)
        answer: Answer | None = None
        last: AtStage | None = None
        timed_out = interrupted = False
        try:
            while answer is None:
                message = child.hear(POLL_S)
                if isinstance(message, AtStage):
                    last = message
                    at_stage(message)
                elif isinstance(message, Answer):
                    answer = message
                elif isinstance(message, Problem):
                    raise BenchError(message.text)
                elif child.gone:
                    break
                elif stop.now:
                    interrupted = True
                    break
                elif time.monotonic() > deadline:
                    timed_out = True
                    break
                tick()
            if answer is not None:
                child.process.join(EXIT_GRACE_S)
        finally:
            child.end()
        return Ending(
            answer=answer,
            last=last,
            exit_code=child.process.exitcode,
            timed_out=timed_out,
            interrupted=interrupted,
            out_of_memory_kills=_kernel_kills() - kills,
            log=child.log(),
        )


class _Child:
    def __init__(self, context: Any, target: Callable[..., None], argument: object) -> None:
        self._pipe, pipe_end = context.Pipe(duplex=False)
        self._printed = _Printed(context)
        self._known = _own_children()
        self.process = context.Process(target=target, args=(argument, pipe_end, self._printed.end), daemon=False)
        self.process.start()
        pipe_end.close()
        self._printed.listen()
        self._silent = False

    def hear(self, seconds: float) -> AtStage | Answer | Host | Problem | None:
        """Return the next message, or None when none came in time or the child is gone and has said all."""
        waited: list[Any] = [self.process.sentinel] if self._silent else [self._pipe, self.process.sentinel]
        wait(waited, seconds)
        try:
            if not self._silent and self._pipe.poll():
                return MESSAGE.validate_json(self._pipe.recv_bytes())
        except (EOFError, OSError, ValueError):
            self._silent = True  # closed, or written into by the model: nothing more can be understood
        return None

    @property
    def gone(self) -> bool:
        return not self.process.is_alive() and (self._silent or not self._pipe.poll())

    def end(self) -> None:
        """Kill the child, its process group, and what left the group; wait for all of them."""
        pid = self.process.pid
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, signal.SIGKILL)
        if self.process.is_alive():
            self.process.kill()
        self.process.join()
        for stray in _own_children() - self._known - _helpers():
            _end_tree(stray)
        self._pipe.close()
        self._printed.close()

    def log(self) -> Log:
        return self._printed.log()


class _Printed:
    """Takes in all that a child prints, keeps its head and its tail."""

    def __init__(self, context: Any) -> None:
        self._source, self.end = context.Pipe(duplex=False)
        self._head, self._tail, self._bytes = b"", b"", 0
        self._thread = threading.Thread(target=self._drain, name="worker log", daemon=True)

    def listen(self) -> None:
        self.end.close()
        self._thread.start()

    def _drain(self) -> None:
        with contextlib.suppress(OSError):
            while chunk := os.read(self._source.fileno(), 1 << 16):
                self._bytes += len(chunk)
                room = LOG_HALF_BYTES - len(self._head)
                self._head += chunk[:room] if room > 0 else b""
                self._tail = (self._tail + (chunk[room:] if room > 0 else chunk))[-LOG_HALF_BYTES:]

    def close(self) -> None:
        self._thread.join(1.0)  # all writers are dead, so the end of the pipe is near
        self._source.close()

    def log(self) -> Log:
        return Log(
            head=self._head.decode(errors="replace"), tail=self._tail.decode(errors="replace"), bytes=self._bytes
        )


def _adopt_orphans() -> None:
    """Ask the kernel to hand orphaned descendants to this process, so that none can slip away."""
    with contextlib.suppress(AttributeError, OSError):
        ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER, Linux


def _end_helpers() -> None:
    """Wait for the forkserver and the resource tracker to be gone.

    With all of torch to take down the forkserver computes for a second, and a run that is started right after this one
    would find its machine busy.
    """
    multiprocessing.forkserver._forkserver._stop()  # type: ignore[attr-defined]
    multiprocessing.resource_tracker._resource_tracker._stop()  # type: ignore[attr-defined]


def _own_children() -> set[int]:
    return {child.pid for child in psutil.Process().children()}


def _helpers() -> set[int | None]:
    """Processes that the standard library keeps for itself: the forkserver and its resource tracker."""
    return {
        getattr(multiprocessing.forkserver._forkserver, "_forkserver_pid", None),
        getattr(multiprocessing.resource_tracker._resource_tracker, "_pid", None),
    }


def _end_tree(pid: int) -> None:
    try:
        root = psutil.Process(pid)
        family = [root, *root.children(recursive=True)]
    except psutil.NoSuchProcess:
        return
    for process in family:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    psutil.wait_procs(family, timeout=5)


def _kernel_kills() -> int:
    """Return how many processes the kernel has killed for want of memory since it started; 0 where it does not say."""
    try:
        for line in Path("/proc/vmstat").read_text(encoding="ascii").splitlines():
            if line.startswith("oom_kill "):
                return int(line.split()[1])
    except OSError:
        pass
    return 0
