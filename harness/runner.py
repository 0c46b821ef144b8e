"""Turns a plan into records: one child per case; its answer or its death is a record.

    plan -> start line -> child -> record -> journal -> sinks

One slot for now: cases run one after the other, so whatever is timed has the host to itself.
"""

from __future__ import annotations

import shutil
import signal
import tempfile
from collections.abc import Callable, Sequence
from datetime import datetime

from harness.derive import derive
from harness.host.clocks import Lock, as_held, judged
from harness.journal import History, Journal
from harness.record import (
    EndReason,
    Findings,
    Log,
    Outcome,
    Planned,
    Record,
    Run,
    RunEnd,
    Side,
    Stage,
    Start,
    now,
    record_id,
)
from harness.sinks import Sink
from harness.worker.main import Assignment, AtStage, measure_case
from harness.workers import Ending, Stop, Workers

MOST_ATTEMPTS = 3
"""A case during which the harness itself was killed this often is given up."""

_COMPILED_STAGES = (Stage.COMPILE, Stage.CHECK)
_EAGER_STAGES = (Stage.LOAD, Stage.EAGER, Stage.REFERENCE, Stage.EAGER_TWICE)


def modules(plan: Sequence[Planned]) -> list[str]:
    """Return the suites' modules that a plan needs; a person's own files are not imported beforehand."""
    return sorted({planned.orders.module for planned in plan} - {"suites.user"})


def needs_inductor(plan: Sequence[Planned]) -> bool:
    return any(planned.case.backend == "inductor" and not planned.skip for planned in plan)


def execute(
    history: History,
    workers: Workers,
    journal: Journal,
    sinks: Sequence[Sink],
    stop: Stop,
    *,
    lock: Lock | None = None,
    tick: Callable[[], None] = lambda: None,
    target: Callable[..., None] = measure_case,
) -> EndReason:
    """Run what is left of a plan. Every record is in the journal before any sink hears of it.

    Args:
        history: what the journal says so far: at least the run.
        lock: what became of the wish to hold the device's clock; None: there was none.
        tick: called several times a second while a child is at work.
        target: the child's main function.

    Raises:
        BenchError: the journal takes no more, or no child can be trusted.
    """
    run = history.run
    for sink in sinks:
        sink.open(run)
        for record in history.records.values():
            sink.record(record)
    reason = EndReason.FINISHED
    for planned in run.plan:
        if planned.case.id in history.records:
            continue
        if stop.soon:
            reason = EndReason.INTERRUPTED
            break
        finished = _one(run, planned, workers, journal, sinks, stop, history, lock, tick, target)
        if finished is None:
            reason = EndReason.INTERRUPTED
            break
        journal.write(finished)
        for sink in sinks:
            sink.record(finished)
    end = RunEnd(run_id=run.id, at=now(), reason=reason)
    journal.write(end)
    for sink in sinks:
        sink.close(end)
    return reason


def _one(
    run: Run,
    planned: Planned,
    workers: Workers,
    journal: Journal,
    sinks: Sequence[Sink],
    stop: Stop,
    history: History,
    lock: Lock | None,
    tick: Callable[[], None],
    target: Callable[..., None],
) -> Record | None:
    """Return the record of one case, or None when the case was broken off by hand."""
    attempt = history.attempts.get(planned.case.id, 0) + 1
    began = now()
    if planned.skip:
        return _record(run, planned, attempt, began, Findings(outcome=Outcome.SKIPPED, text=planned.skip))
    if history.killed[planned.case.id] >= MOST_ATTEMPTS:
        text = f"the harness itself was killed {MOST_ATTEMPTS} times during this case"
        return _record(run, planned, attempt, began, Findings(outcome=Outcome.CRASH, text=text))
    start = Start(run_id=run.id, case_id=planned.case.id, attempt=attempt, at=began)
    journal.write(start)
    for sink in sinks:
        sink.start(start)

    def at_stage(message: AtStage) -> None:
        for sink in sinks:
            sink.stage(start, message.stage)

    folder = tempfile.mkdtemp(prefix="bench-")
    try:
        profile = as_held(run.profile, lock)
        assignment = Assignment(planned=planned, protocol=run.protocol, profile=profile, folder=folder)
        ending = workers.attend(
            target,
            assignment.model_dump_json(),
            timeout_s=planned.orders.timeout_s,
            stop=stop,
            at_stage=at_stage,
            tick=tick,
        )
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if ending.interrupted:
        return None
    findings = ending.answer.findings if ending.answer else _death(ending, planned)
    findings = findings.model_copy(update={"conditions": judged(findings.conditions, lock)})
    exit_code = None if ending.answer else ending.exit_code
    return _record(run, planned, attempt, began, findings, exit_code, ending.log)


def _death(ending: Ending, planned: Planned) -> Findings:
    """Return what is known of a child that never answered: what it had found, and how it ended."""
    stage = ending.last.stage if ending.last else Stage.LOAD
    side = Side.EAGER if stage in _EAGER_STAGES else Side.COMPILED if stage in _COMPILED_STAGES else None
    code = ending.exit_code
    if ending.timed_out:
        outcome, text = Outcome.TIMEOUT, f"no answer within {planned.orders.timeout_s:g} s, in stage {stage}"
    elif code == -signal.SIGKILL and ending.out_of_memory_kills:
        outcome, text = Outcome.OOM, f"killed by the kernel for want of memory, in stage {stage}"
    elif code is not None and code < 0:
        hint = " (nobody says why; memory is the usual reason)" if code == -signal.SIGKILL else ""
        outcome, text = Outcome.CRASH, f"killed by {signal.Signals(-code).name}{hint}, in stage {stage}"
    else:
        outcome, text = Outcome.CRASH, f"ended with exit code {code} and no answer, in stage {stage}"
    known = ending.last.findings if ending.last else Findings(outcome=outcome)
    if known.outcome not in (Outcome.PASS, outcome):  # the first thing that went wrong decides
        return known.model_copy(update={"text": f"{known.text}; then {text}"})
    return known.model_copy(update={"outcome": outcome, "stage": stage, "side": side, "text": text})


def _record(
    run: Run,
    planned: Planned,
    attempt: int,
    began: datetime,
    findings: Findings,
    exit_code: int | None = None,
    log: Log | None = None,
) -> Record:
    derived = derive(
        findings.outcome,
        findings.observed,
        findings.accuracy,
        findings.compile,
        findings.timing,
        findings.memory,
        findings.conditions,
    )
    return Record(
        **{name: getattr(findings, name) for name in Findings.model_fields},
        id=record_id(run.id, planned.case.id, attempt),
        run_id=run.id,
        case=planned.case,
        attempt=attempt,
        started_at=began,
        finished_at=now(),
        exit_code=exit_code,
        derived=derived,
        log=log or Log(),
    )
