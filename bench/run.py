"""`bench run`: plan, measure, store, show. Exit codes stand in `docs/architecture.md`."""

from __future__ import annotations

import contextlib
import shlex
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bench.doctor import examined
from bench.main import INTERRUPTED
from bench.options import DATABASE, Database, Json, Selection, TokenFile, profiles, selecting, server_at
from bench.progress import Progress
from harness import report
from harness.beside import comparisons_of
from harness.errors import BenchError, UsageError, close_to
from harness.host import detect, nvml, settings
from harness.host.clocks import Lock, held
from harness.journal import FOLDER, History, Journal, find, replay
from harness.record import (
    NO_BACKEND,
    DeviceProfile,
    EndReason,
    Environment,
    Finding,
    Level,
    Measure,
    Outcome,
    Planned,
    Protocol,
    Run,
    new_run_id,
    now,
)
from harness.runner import execute, modules, needs_inductor
from harness.sinks import Forwarder, Sink
from harness.summary import summarise
from harness.worker.main import Host
from harness.workers import Stop, Workers

if TYPE_CHECKING:
    from harness.courier import Server

app = typer.Typer(add_completion=False)

NOTHING_PASSED = 4

DASHBOARD_GRACE_S = 10
"""An open page may be waiting for an answer when a run ends."""

Target = Annotated[
    float, typer.Option("--precision-target", help="Stop sampling at this half width, as a share of the speedup.")
]
Seconds = Annotated[
    float | None,
    typer.Option("--max-seconds", help="Most seconds of sampling for one case. Default: the device's."),
]
OnlyAccuracy = Annotated[bool, typer.Option("--only-accuracy", help="Check, do not time.")]
OnlyPerformance = Annotated[bool, typer.Option("--only-performance", help="Time, do not check: no plain pass.")]
Resume = Annotated[
    str | None, typer.Option("--resume", metavar="RUN", help="Go on with this run: a prefix of its id, or `latest`.")
]
KeepClocks = Annotated[
    bool, typer.Option("--keep-clocks", help="Do not hold the device's clock, also where its profile says so.")
]
To = Annotated[
    str | None,
    typer.Option("--server", metavar="URL", envvar="BENCH_SERVER", help="Send the run there as it goes on, too."),
]
Serve = Annotated[bool, typer.Option("--serve", help="Serve the dashboard while the run goes on.")]
Port = Annotated[int, typer.Option("--port", help="Port of the dashboard; 0 takes any that is free.")]


@app.command()
@selecting
def main(
    selection: Selection,
    precision_target: Target = 0.01,
    max_seconds: Seconds = None,
    only_accuracy: OnlyAccuracy = False,
    only_performance: OnlyPerformance = False,
    resume: Resume = None,
    keep_clocks: KeepClocks = False,
    database: Database = DATABASE,
    server: To = None,
    token_file: TokenFile = None,
    as_json: Json = False,
    serve: Serve = False,
    port: Port = 8000,
) -> None:
    """Measure models, eager against compiled, and keep what was found."""
    protocol = _protocol(precision_target, max_seconds, only_accuracy, only_performance)
    if resume is not None and selection != Selection(torchbench=selection.torchbench):  # which the environment may give
        raise UsageError("--resume takes the plan of its run: leave out the options that choose models and cases.")
    if resume is not None:
        path = find(resume)
        where = _answering(server, token_file)
        with _output(database, as_json, serve, port, where) as output, Journal(path) as journal:
            history = replay(path)
            settings.apply(history.run.profile)
            _examined(history.run.profile, database)  # the run keeps what was found when it began
            workers = Workers(modules(history.run.plan))
            _check_same_host(history.run, _host(workers, history.run.plan, history.run.profile))
            raise typer.Exit(_measure(history, workers, journal, output, keep_clocks))
    fitted, profile = selection.fitted(database, protocol.measure), selection.profile()
    if selection.backend == NO_BACKEND and protocol.measure != Measure.ALL:
        raise UsageError(f"--backend none compiles nothing to check or time. Leave out --only-{protocol.measure}.")
    if find_spec("torch") is None:
        raise BenchError("measuring needs torch, and it is not installed here: pip install 'compile-bench[run]'.")
    detect.refuse(profile, profiles(), detect.look())
    settings.apply(profile)
    if fitted.limit_s is not None:
        print(report.budget_line(fitted), file=sys.stderr)
    if max_seconds is None:
        protocol = protocol.model_copy(update={"max_seconds": profile.max_seconds})
    where = _answering(server, token_file)
    with _output(database, as_json, serve, port, where) as output:
        doctor = _examined(profile, database)
        run, workers = _new_run(fitted.plan, profile, protocol, selection.reference, doctor)
        with Journal(FOLDER / f"{run.id}.jsonl") as journal:
            journal.write(run)
            raise typer.Exit(_measure(History(run), workers, journal, output, keep_clocks))


def _protocol(
    precision_target: float, max_seconds: float | None, only_accuracy: bool, only_performance: bool
) -> Protocol:
    if only_accuracy and only_performance:
        raise UsageError("--only-accuracy and --only-performance exclude each other. Leave one of them out.")
    if not 0 < precision_target < 1:
        raise UsageError(f"--precision-target {precision_target:g}: must lie between 0 and 1, e.g. 0.01 for +-1 %.")
    if max_seconds is not None and not max_seconds > 0:
        raise UsageError(f"--max-seconds {max_seconds:g}: must be above 0.")
    measure = Measure.ACCURACY if only_accuracy else Measure.PERFORMANCE if only_performance else Measure.ALL
    asked = {} if max_seconds is None else {"max_seconds": max_seconds}
    return Protocol(measure=measure, precision_target=precision_target, **asked)


@dataclass(frozen=True)
class _Output:
    """Where a run is stored and shown."""

    store: Forwarder
    progress: Progress
    as_json: bool
    served: bool
    server: Server | None
    """Where the run is sent, too."""


@contextlib.contextmanager
def _output(database: str, as_json: bool, serve: bool, port: int, server: Server | None) -> Iterator[_Output]:
    """Open the database and, if wanted, the dashboard, before anything else: a mistake here must not cost a night."""
    from server.store import Store  # here, so that `bench run --help` loads no database library

    output = _Output(Forwarder(Store.connect(database)), Progress(as_json=as_json), as_json, serve, server)
    if not serve:
        yield output
        return
    from bench.serve import start_in_background

    process, address = start_in_background(database, port)
    print(f"Dashboard: {address}", file=sys.stderr if as_json else sys.stdout, flush=True)
    try:
        yield output
    finally:
        process.terminate()
        try:
            process.wait(DASHBOARD_GRACE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _answering(url: str | None, token_file: Path | None) -> Server | None:
    """Return the server to send to, asked beforehand whether it would take a run: one that is away may come back."""
    if url is None:
        return None
    from harness.courier import check  # here, so that a run without a server needs no HTTP library

    where = server_at(url, token_file)
    if trouble := check(where):
        print(f"bench: {trouble} The journal keeps what it lacks, and it is sent when it answers.", file=sys.stderr)
    return where


@contextlib.contextmanager
def _sent(server: Server | None, journal: Journal) -> Iterator[list[Sink]]:
    """Give the sinks that send the run away, and say at the end what did not arrive."""
    if server is None:
        yield []
        return
    from harness.remote import Remote

    remote = Remote(server, journal.path)
    try:
        yield [remote]
    finally:
        if lacking := remote.finish():
            again = f"`bench push {journal.path} --server {server.url}` catches up."
            print(f"bench: {lacking} {again}", file=sys.stderr)


def _examined(profile: DeviceProfile, database: str) -> tuple[Finding, ...]:
    """Return how fit this host is found, before anything starts; what disturbs is said now, not after a night."""
    findings = examined(profile, database)
    for finding in findings:
        if finding.level in (Level.WARNING, Level.BAD):
            print(report.finding_line(finding), file=sys.stderr)
    return findings


def _new_run(
    plan: tuple[Planned, ...],
    profile: DeviceProfile,
    protocol: Protocol,
    reference: str | None,
    doctor: tuple[Finding, ...],
) -> tuple[Run, Workers]:
    workers = Workers(modules(plan))
    host = _host(workers, plan, profile)
    _check_compiler(plan, profile, host)
    limit = host.available_memory_bytes - profile.memory_reserve_bytes
    if limit <= 0:
        raise BenchError(
            f"{host.available_memory_bytes / 2**30:.1f} GiB of memory are free, and the profile {profile.name} leaves "
            f"{profile.memory_reserve_bytes / 2**30:.1f} GiB to the host. Free some, or lower memory_reserve_bytes."
        )
    run = Run(
        id=new_run_id(),
        started_at=now(),
        command=shlex.join(["bench", *sys.argv[1:]]),
        profile=profile,
        environment=host.environment,
        protocol=protocol.model_copy(update={"memory_limit_bytes": limit}),
        plan=plan,
        reference=reference,
        doctor=doctor,
    )
    return run, workers


def _host(workers: Workers, plan: Sequence[Planned], profile: DeviceProfile) -> Host:
    print("Starting workers: the first import of torch may take a minute.", file=sys.stderr)
    return workers.host(profile.threads, inductor=needs_inductor(plan), profile=profile)


def _check_compiler(plan: Sequence[Planned], profile: DeviceProfile, host: Host) -> None:
    """What torch lists is known only where torch is: so the worker was asked."""
    for planned in plan:
        case = planned.case
        if case.backend not in (NO_BACKEND, *host.backends):
            close = close_to(case.backend, host.backends)
            raise UsageError(f"--backend {case.backend}: torch lists none.{close} Known: {', '.join(host.backends)}.")
        if case.compile_mode not in host.compile_modes:
            known = ", ".join(host.compile_modes)
            raise UsageError(f"--compile-mode {case.compile_mode}: inductor has none. Known: {known}.")
        if case.backend == "inductor" and profile.kind == "cpu" and not host.environment.compiler:
            raise BenchError("inductor on a CPU needs a C++ compiler, and none was found. Install g++, or set CXX.")


def _measure(history: History, workers: Workers, journal: Journal, output: _Output, keep_clocks: bool) -> int:
    """Run what is left, say the last words, and return the exit code."""
    progress, store, stop = output.progress, output.store, Stop()
    with stop.listening():
        with _clock(history.run.profile, keep_clocks) as lock, _sent(output.server, journal) as senders:
            sinks: list[Sink] = [progress, store, *senders]
            reason = execute(history, workers, journal, sinks, stop, lock=lock, tick=progress.tick)
        _last_words(history.run, progress, reason, journal, output.as_json)
        if store.trouble:
            missing = f"the database lacks part of this run: {store.trouble}"
            print(f"bench: {missing} `bench import {journal.path}` catches up.", file=sys.stderr)
        if output.served and sys.stdin.isatty() and reason == EndReason.FINISHED:
            print("The dashboard stays until Ctrl-C; `bench serve` shows it again later.", file=sys.stderr)
            stop.wait()
    if reason == EndReason.INTERRUPTED:
        return INTERRUPTED
    return 0 if any(r.outcome == Outcome.PASS for r in progress.records.values()) else NOTHING_PASSED


@contextlib.contextmanager
def _clock(profile: DeviceProfile, keep: bool) -> Iterator[Lock | None]:
    """Hold the device's clock while the block runs, if its profile asks for it and the driver lets us."""
    if keep:
        yield None
        return
    gpu = next(iter(nvml.gpus()), None) if profile.kind == "cuda" else None
    with held(profile, gpu) as lock:
        if lock is not None and lock.refused is not None:
            print(f"bench: the clock is not held: {lock.refused}. With --keep-clocks it need not be.", file=sys.stderr)
        yield lock


def _check_same_host(run: Run, host: Host) -> None:
    """Half a run from one machine and half from another would be no run."""
    then, here = run.environment, host.environment
    if (then.hard, then.soft) != (here.hard, here.soft):
        mattering = set(Environment.model_fields) - {"load_average", "harness_commit", "hash_seed"}
        changed = sorted(name for name in mattering if getattr(then, name) != getattr(here, name))
        raise BenchError(
            f"run {run.id} was begun in another environment ({', '.join(changed)} changed). Start a new run."
        )


def _last_words(run: Run, progress: Progress, reason: EndReason, journal: Journal, as_json: bool) -> None:
    summaries = summarise(run.plan, progress.records)
    comparisons = comparisons_of(run, progress.records)
    if as_json:
        for line in (*summaries, *comparisons):
            print(line.model_dump_json())
        return
    for text in report.summary_lines(run, progress.records, summaries, reason, str(journal.path), comparisons):
        print(text)
