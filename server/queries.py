"""The only reader: runs, their results, one whole record.

A question is one to five statements in one read transaction; nothing is aggregated here that the
store keeps already.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from sqlalchemy import Connection, Engine, Select, func, select

from harness import record, stats
from harness.errors import BenchError
from server import db, rows, schemas
from server.schemas import RunState, Status
from server.tables import Case, Configuration, Environment, Planned, Progress, Result, Run, Samples, Summary

SILENCE = timedelta(minutes=5)
"""A run is lost when it gave no sign of life for this long beyond the time limit of its case in hand."""

LATEST = "latest"


class NotFound(BenchError):
    """There is no such run or record; the message says what there is."""


class Sort(StrEnum):
    """What results are sorted by. Missing values come last in both directions."""

    PLAN = "position"
    MODEL = "model"
    STATUS = "status"
    SPEEDUP = "speedup"
    EAGER = "eager_s"
    COMPILED = "compiled_s"
    COMPILE = "compile_wall_s"
    BREAKS = "graph_breaks"
    MEMORY = "memory_ratio"
    BREAK_EVEN = "break_even_steps"


class Queries:
    """Answers questions about one database. Safe to use from several threads."""

    def __init__(self, engine: Engine, clock: Callable[[], datetime] = record.now) -> None:
        self._engine = engine
        self._clock = clock

    def count(self) -> int:
        """Return how many runs there are."""
        with self._read() as connection:
            return connection.scalar(select(func.count()).select_from(Run)) or 0

    def runs(self, limit: int = 50, offset: int = 0) -> list[schemas.Run]:
        """Return runs, newest first."""
        with self._read() as connection:
            found = connection.execute(_runs().limit(limit).offset(offset)).all()
            summaries = _summaries(connection, [run.id for run in found])
            states = {run.id: self._state(connection, run) for run in found}
        return [_run(run, states[run.id], summaries.get(run.id, [])) for run in found]

    def run(self, name: str = LATEST) -> schemas.RunDetail:
        """Return a run by its id, a unique prefix of it, or `latest`.

        Raises:
            NotFound: no run fits, or several do.
        """
        with self._read() as connection:
            run = _find(connection, name)
            summaries = _summaries(connection, [run.id]).get(run.id, [])
            state = self._state(connection, run)
            in_hand = connection.execute(_in_hand(run.id)).all() if state == RunState.RUNNING else []
            results = [_result(row, state) for row in connection.execute(_results(run.id))]
        return schemas.RunDetail(
            **dict(_run(run, state, summaries)),
            environment=record.Environment.model_validate(run.environment),
            profile=record.DeviceProfile.model_validate(run.profile),
            protocol=record.Protocol.model_validate(run.protocol),
            in_hand=tuple(schemas.InHand.model_validate(row._asdict()) for row in in_hand),
            failures=tuple(_failures(results)),
        )

    def results(self, name: str = LATEST, sort: Sort = Sort.PLAN, descending: bool = False) -> list[schemas.Result]:
        """Return every planned case of a run with its newest result.

        Raises:
            NotFound: no run fits, or several do.
        """
        with self._read() as connection:
            run = _find(connection, name)
            state = self._state(connection, run)
            running = set(connection.scalars(select(Progress.case_id).where(Progress.run_id == run.id)))
            found = [_result(row, state, row.case_id in running) for row in connection.execute(_results(run.id))]
        return sorted_by(found, sort, descending)

    def record(self, record_id: str) -> record.Record:
        """Return a whole record, samples included.

        Raises:
            NotFound: there is no such record.
        """
        with self._read() as connection:
            whole = connection.scalar(select(Result.document).where(Result.id == record_id))
            if whole is None:
                raise NotFound(f"There is no record {record_id!r}. A run's results name theirs as record_id.")
            statement = select(Samples.eager_s, Samples.compiled_s, Samples.eager_first)
            samples = connection.execute(statement.where(Samples.result_id == record_id)).one_or_none()
        return rows.record_of(whole, samples)

    @contextmanager
    def _read(self) -> Iterator[Connection]:
        with db.explained(self._engine.url), self._engine.begin() as connection:
            yield connection

    def _state(self, connection: Connection, run: Any) -> RunState:
        if run.end_reason is not None:
            return RunState(run.end_reason)
        longest = connection.scalar(
            select(func.max(Planned.timeout_s))
            .join(Progress, (Progress.run_id == Planned.run_id) & (Progress.case_id == Planned.case_id))
            .where(Planned.run_id == run.id)
        )
        silent = self._clock() - run.heartbeat_at
        return RunState.RUNNING if silent <= SILENCE + timedelta(seconds=longest or 0) else RunState.LOST


def sorted_by(results: Iterable[schemas.Result], sort: Sort, descending: bool = False) -> list[schemas.Result]:
    """Return results in order, those without a value last, ties in the order of the plan."""

    def value(result: schemas.Result) -> Any:
        found = getattr(result, sort.value)
        return found.value if isinstance(found, schemas.Estimate) else found

    planned = sorted(results, key=lambda result: result.position)
    present = [result for result in planned if value(result) is not None]
    present.sort(key=value, reverse=descending)
    return present + [result for result in planned if value(result) is None]


# -- statements -------------------------------------------------------------------------------


def _runs() -> Select[Any]:
    return (
        select(
            Run.__table__,
            Environment.host,
            Environment.cpu,
            Environment.torch,
            Environment.document.label("environment"),
        )
        .join(Environment, Environment.id == Run.environment_id)
        .order_by(Run.started_at.desc(), Run.id.desc())
    )


def _find(connection: Connection, name: str) -> Any:
    if name == LATEST:
        found = connection.execute(_runs().limit(1)).all()
    else:
        found = connection.execute(_runs().where(Run.id.startswith(name, autoescape=True)).limit(5)).all()
    if len(found) == 1:
        return found[0]
    if found:
        raise NotFound(f"{name!r} fits several runs: {', '.join(run.id for run in found[:4])}. Give more of it.")
    if connection.scalar(select(func.count()).select_from(Run)):
        raise NotFound(f"There is no run {name!r}. Ids may be shortened; `latest` is the newest.")
    raise NotFound("There is no run yet. Start one: bench run --suite toy")


def _summaries(connection: Connection, run_ids: Sequence[str]) -> dict[str, list[Any]]:
    first = (
        select(Planned.run_id, Case.suite, Case.configuration_id, func.min(Planned.position).label("place"))
        .join(Case, Case.id == Planned.case_id)
        .where(Planned.run_id.in_(run_ids))
        .group_by(Planned.run_id, Case.suite, Case.configuration_id)
        .subquery()
    )
    same = (
        (first.c.run_id == Summary.run_id)
        & (first.c.suite == Summary.suite)
        & (first.c.configuration_id == Summary.configuration_id)
    )
    found: dict[str, list[Any]] = {}
    for row in connection.execute(
        select(Summary.__table__, Configuration.label, Configuration.document.label("configuration"))
        .join(Configuration, Configuration.id == Summary.configuration_id)
        .join(first, same)
        .order_by(first.c.place)
    ):
        found.setdefault(row.run_id, []).append(row)
    return found


def _in_hand(run_id: str) -> Select[Any]:
    same = (Planned.run_id == Progress.run_id) & (Planned.case_id == Progress.case_id)
    return (
        select(Progress.__table__, Case.suite, Case.model, Configuration.label, Planned.timeout_s)
        .join(Planned, same)
        .join(Case, Case.id == Progress.case_id)
        .join(Configuration, Configuration.id == Case.configuration_id)
        .where(Progress.run_id == run_id)
        .order_by(Planned.position)
    )


def _results(run_id: str) -> Select[Any]:
    columns = [
        column for column in Result.__table__.c if column.name not in ("document", "run_id", "case_id", "attempt")
    ]
    return (
        select(
            *columns,
            Result.attempt.label("result_attempt"),
            Planned.case_id,
            Planned.position,
            Planned.tolerance,
            Planned.skip,
            Case.suite,
            Case.model,
            Case.batch_size,
            Case.configuration_id,
            Configuration.label,
            Configuration.mode,
            Configuration.precision,
        )
        .select_from(Planned)
        .join(Case, Case.id == Planned.case_id)
        .join(Configuration, Configuration.id == Case.configuration_id)
        .outerjoin(Result, Result.id == Planned.result_id)
        .where(Planned.run_id == run_id)
        .order_by(Planned.position)
    )


# -- rows to answers --------------------------------------------------------------------------


def _run(run: Any, state: RunState, found: Sequence[Any]) -> schemas.Run:
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
        pass_rate=_pass_rate(counts["passed"], counts["planned"] - counts["skipped"]),
        summaries=summaries,
        **counts,
    )


def _summary(row: Any, state: RunState) -> schemas.Summary:
    going_on = state == RunState.RUNNING
    return schemas.Summary(
        suite=row.suite,
        configuration_id=row.configuration_id,
        label=row.label,
        configuration=record.Configuration.model_validate(row.configuration),
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
        not_compiled=row.not_compiled,
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


def _result(row: Any, state: RunState, running: bool = False) -> schemas.Result:
    planned = ("case_id", "position", "suite", "model", "configuration_id", "label", "mode", "precision", "batch_size")
    known: dict[str, Any] = {name: getattr(row, name) for name in (*planned, "tolerance")}
    if row.outcome is None:
        return schemas.Result(**known, status=_status(row.skip, state, running), text=row.skip)
    observed = set(schemas.Result.model_fields) & set(row._fields) - set(known)
    known |= {name: getattr(row, name) for name in observed}
    known |= {"status": Status(row.outcome), "record_id": row.id, "attempt": row.result_attempt}
    return schemas.Result(**known | {"speedup": _estimate(row, "speedup")})


def _status(skip: str | None, state: RunState, running: bool) -> Status:
    if skip is not None:
        return Status.SKIPPED
    if state != RunState.RUNNING:
        return Status.MISSING
    return Status.RUNNING if running else Status.WAITING


def _failures(results: Iterable[schemas.Result]) -> Iterator[schemas.FailureGroup]:
    """Group what neither passed nor was skipped; the largest group first."""
    groups: dict[tuple[str, str | None, str], list[str]] = {}
    silent = (Status.PASS, Status.SKIPPED, Status.MISSING, Status.WAITING, Status.RUNNING)
    for result in results:
        if result.status not in silent:
            cause = (result.text or "no cause was given").strip().splitlines()[0]
            groups.setdefault((result.status, result.stage, cause), []).append(
                f"{result.suite}/{result.model} {result.label}"
            )
    for (outcome, stage, cause), cases in sorted(groups.items(), key=lambda group: -len(group[1])):
        yield schemas.FailureGroup(
            outcome=record.Outcome(outcome),
            stage=record.Stage(stage) if stage else None,
            cause=cause,
            cases=tuple(cases),
        )
