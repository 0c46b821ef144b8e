"""Rows of `server.queries` -> what the API answers. Pure."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Sequence
from operator import attrgetter
from typing import Any

from harness import record, stats
from server import schemas
from server.rows import stored_as, unpack
from server.schemas import RunState, Status

_PLANNED = (
    "case_id",
    "position",
    "suite",
    "model",
    "configuration_id",
    "label",
    "device",
    "mode",
    "precision",
    "backend",
    "batch_size",
    "tolerance",
)
_OBSERVED = tuple(
    name for name in schemas.Result.model_fields if name not in (*_PLANNED, "status", "record_id", "attempt", "speedup")
)
_planned, _observed = attrgetter(*_PLANNED), attrgetter(*_OBSERVED)
_NO_RESULT = (Status.SKIPPED, Status.MISSING, Status.WAITING, Status.RUNNING)
_NO_FAILURE = (Status.PASS, *_NO_RESULT)


_SAME = (
    "id",
    "started_at",
    "ended_at",
    "heartbeat_at",
    "command",
    "device",
    "host",
    "cpu",
    "torch",
    "source",
    "dated",
    "trigger",
    "branch",
    "commit",
    "fork_point",
    "planned",
    "skipped",
    "passed",
    "crashed",
)
"""Columns of a run that the API says as they are."""


def run_answer(
    run: Any, state: RunState, found: Sequence[Any], known: dict[str, record.Configuration] | None = None
) -> schemas.Run:
    """Return a run with its counts and the summaries that were found.

    Args:
        known: keeps the configurations that were read; a page of runs has few, and many summaries of each.
    """
    known = {} if known is None else known
    going_on = state == RunState.RUNNING
    return schemas.Run(
        **{name: getattr(run, name) for name in _SAME},
        state=state,
        waiting=run.missing if going_on else 0,
        missing=0 if going_on else run.missing,
        pass_rate=_pass_rate(run.passed, run.planned - run.skipped),
        summaries=tuple(_summary(row, state, known) for row in found),
    )


def result_answer(row: Any, state: RunState, running: bool = False) -> schemas.Result:
    """Return a planned case with its newest result; without one, its reason to be skipped or its standing."""
    known: dict[str, Any] = dict(zip(_PLANNED, _planned(row), strict=True))
    if row.outcome is None:
        return schemas.Result(**known, status=_status(row.skip, state, running), text=row.skip)
    known |= zip(_OBSERVED, _observed(row), strict=True)
    known |= {"status": Status(row.outcome), "record_id": row.id, "attempt": row.result_attempt}
    return schemas.Result(**known | {"speedup": _estimate(row, "speedup")})


def samples_answer(record_id: str, samples: Any) -> schemas.RecordSamples:
    """Return the pairs that a row of `tables.Samples` holds packed."""
    return schemas.RecordSamples(
        record_id=record_id,
        eager_s=unpack(samples.eager_s),
        compiled_s=unpack(samples.compiled_s),
        eager_first=tuple(map(bool, zlib.decompress(samples.eager_first))),
    )


def log_text(log: schemas.Log) -> str:
    """Return what a worker printed; what could steer a terminal becomes a sign that is seen."""
    cut = log.bytes - len(log.head.encode()) - len(log.tail.encode())
    gap = f"\n... {cut:,} bytes were left out ...\n" if log.tail and cut > 0 else ""
    return "".join(map(_seen, f"{log.head}{gap}{log.tail}".replace("\r\n", "\n")))


def _seen(character: str) -> str:
    if character in "\n\t" or character.isprintable():
        return character
    code = ord(character)
    if code < 0x20:
        return chr(0x2400 + code)  # the Unicode block Control Pictures
    return "\u2421" if code == 0x7F else f"\\u{code:04x}"


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


def _summary(row: Any, state: RunState, known: dict[str, record.Configuration]) -> schemas.Summary:
    going_on = state == RunState.RUNNING
    if row.configuration_id not in known:
        known[row.configuration_id] = stored_as(record.Configuration, row.configuration)
    return schemas.Summary(
        suite=row.suite,
        configuration_id=row.configuration_id,
        label=row.label,
        configuration=known[row.configuration_id],
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
