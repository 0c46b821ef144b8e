"""Rows of `server.queries` -> what the API answers. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from harness import beside, record, stats
from harness.reference import Row
from server import schemas
from server.rows import stored_as
from server.schemas import RunState, Status

_PLANNED = (
    "case_id",
    "position",
    "suite",
    "model",
    "configuration_id",
    "label",
    "mode",
    "precision",
    "batch_size",
    "tolerance",
)
_NO_RESULT = (Status.SKIPPED, Status.MISSING, Status.WAITING, Status.RUNNING)
_NO_FAILURE = (Status.PASS, *_NO_RESULT)


def run_answer(run: Any, state: RunState, found: Sequence[Any]) -> schemas.Run:
    """Return a run with the sums over its summaries."""
    summaries = tuple(_summary(row, state) for row in found)
    names = ("planned", "skipped", "passed", "waiting", "missing", "crashed")
    counts = {name: sum(getattr(summary, name) for summary in summaries) for name in names}
    return schemas.Run(
        id=run.id,
        started_at=run.started_at,
        state=state,
        ended_at=run.ended_at,
        heartbeat_at=run.heartbeat_at,
        command=run.command,
        device=run.device,
        host=run.host,
        cpu=run.cpu,
        torch=run.torch,
        source=run.source,
        dated=run.dated,
        branch=run.branch,
        commit=run.commit,
        pass_rate=_pass_rate(counts["passed"], counts["planned"] - counts["skipped"]),
        summaries=summaries,
        **counts,
    )


def result_answer(row: Any, state: RunState, running: bool = False) -> schemas.Result:
    """Return a planned case with its newest result; without one, its reason to be skipped or its standing."""
    known: dict[str, Any] = {name: getattr(row, name) for name in _PLANNED}
    if row.outcome is None:
        return schemas.Result(**known, status=_status(row.skip, state, running), text=row.skip)
    observed = set(schemas.Result.model_fields) & set(row._fields) - set(known)
    known |= {name: getattr(row, name) for name in observed}
    known |= {"status": Status(row.outcome), "record_id": row.id, "attempt": row.result_attempt}
    return schemas.Result(**known | {"speedup": _estimate(row, "speedup")})


def facts(
    run: Any, summaries: Iterable[schemas.Summary], results: Iterable[schemas.Result], specs: Mapping[str, Any]
) -> beside.Facts:
    """Return what a comparison with published figures needs. `specs`: a model's entry as stored, by case id."""
    configurations = {summary.configuration_id: summary.configuration for summary in summaries}
    entries = [_entry(result, configurations[result.configuration_id], specs[result.case_id]) for result in results]
    return beside.Facts(
        profile=stored_as(record.DeviceProfile, run.profile),
        environment=stored_as(record.Environment, run.environment),
        protocol=stored_as(record.Protocol, run.protocol),
        entries=tuple(entries),
    )


def _entry(result: schemas.Result, configuration: record.Configuration, spec: Mapping[str, Any]) -> beside.Entry:
    row = Row(
        accuracy=result.status.value,
        speedup=result.speedup.value if result.speedup else None,
        compile_s=result.compile_wall_s,
        memory_ratio=result.memory_ratio,
    )
    return beside.Entry(
        suite=result.suite,
        model=result.model,
        configuration=configuration,
        batch_size=result.batch_size,
        listed_batch=spec["batch"].get(configuration.mode.value),
        skipped=result.status == Status.SKIPPED,
        row=row if result.status not in _NO_RESULT else None,
    )


def failures(results: Iterable[schemas.Result]) -> Iterator[schemas.FailureGroup]:
    """Group what neither passed nor was skipped by how, where and why it ended; the largest group first."""
    groups: dict[tuple[str, str | None, str], list[str]] = {}
    for result in results:
        if result.status not in _NO_FAILURE:
            cause = ((result.text or "").strip() or "no cause was given").splitlines()[0]
            name = f"{result.suite}/{result.model} {result.label}"
            groups.setdefault((result.status, result.stage, cause), []).append(name)
    for (outcome, stage, cause), cases in sorted(groups.items(), key=lambda group: -len(group[1])):
        yield schemas.FailureGroup(
            outcome=record.Outcome(outcome),
            stage=record.Stage(stage) if stage else None,
            cause=cause,
            cases=tuple(cases),
        )


def _summary(row: Any, state: RunState) -> schemas.Summary:
    going_on = state == RunState.RUNNING
    return schemas.Summary(
        suite=row.suite,
        configuration_id=row.configuration_id,
        label=row.label,
        configuration=stored_as(record.Configuration, row.configuration),
        planned=row.planned,
        skipped=row.skipped,
        passed=row.passed,
        waiting=row.missing if going_on else 0,
        missing=0 if going_on else row.missing,
        crashed=row.outcomes.get(record.Outcome.CRASH, 0),
        outcomes=row.outcomes,
        pass_rate=_pass_rate(row.passed, row.planned - row.skipped),
        speedup=_estimate(row, "speedup_geomean"),
        no_speedup=row.no_geomean,
        emulated=row.emulated,
        unchecked=row.unchecked,
        left_out=tuple(schemas.LeftOut.model_validate(each) for each in row.left_out),
        compile_wall_s=row.compile_wall_s_median,
        memory_ratio=row.memory_ratio_median,
    )


def _pass_rate(passed: int, judged: int) -> schemas.PassRate:
    share = stats.wilson(passed, judged)
    if isinstance(share, stats.NoEstimate):
        return schemas.PassRate(passed=passed, judged=judged)
    return schemas.PassRate(passed=passed, judged=judged, share=share.value, low=share.low, high=share.high)


def _estimate(row: Any, name: str) -> schemas.Estimate | None:
    value = getattr(row, name)
    if value is None:
        return None
    parts = {part: getattr(row, f"{name}_{part}") for part in ("low", "high", "n", "method")}
    return schemas.Estimate(value=value, **parts)


def _status(skip: str | None, state: RunState, running: bool) -> Status:
    if skip is not None:
        return Status.SKIPPED
    if state != RunState.RUNNING:
        return Status.MISSING
    return Status.RUNNING if running else Status.WAITING
