"""The only reader: runs, their results, one whole record.

A question is one to five statements in one read transaction; nothing is aggregated here that the
store keeps already.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from sqlalchemy import Connection, Engine, Select, func, select
from sqlalchemy.orm import Session

from harness import beside, record
from harness.compare_points import Point, fingerprint
from harness.errors import BenchError
from server import answers, db, rows, schemas
from server.schemas import RunState
from server.tables import (
    Case,
    Configuration,
    Detail,
    Entry,
    Environment,
    Planned,
    Progress,
    Result,
    Run,
    Samples,
    Summary,
)

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
            summaries = _summaries(connection, [run.key for run in found])
            states = {run.key: self._state(connection, run) for run in found}
        return [answers.run_answer(run, states[run.key], summaries.get(run.key, [])) for run in found]

    def run(self, name: str = LATEST) -> schemas.RunDetail:
        """Return a run by its id, a unique prefix of it, or `latest`.

        Raises:
            NotFound: no run fits, or several do.
            BenchError: a file of published figures is broken.
        """
        with self._read() as connection:
            run = _find(connection, name)
            summaries = _summaries(connection, [run.key]).get(run.key, [])
            state = self._state(connection, run)
            in_hand = connection.execute(_in_hand(run.key)).all() if state == RunState.RUNNING else []
            results = [answers.result_answer(row, state) for row in connection.execute(_results(run.key))]
            specs = {row.case_id: row.spec for row in connection.execute(_specs(run.key))}
        answer = answers.run_answer(run, state, summaries)
        facts = answers.facts(run, answer.summaries, results, specs)
        return schemas.RunDetail(
            **dict(answer),
            environment=facts.environment,
            profile=facts.profile,
            protocol=facts.protocol,
            doctor=tuple(rows.stored_as(record.Finding, finding) for finding in run.doctor),
            in_hand=tuple(schemas.InHand.model_validate(row._asdict()) for row in in_hand),
            failures=tuple(answers.failures(results)),
            reference=run.reference,
            comparisons=tuple(beside.compare(reference, facts) for reference in beside.known()),
        )

    def results(self, name: str = LATEST, sort: Sort = Sort.PLAN, descending: bool = False) -> list[schemas.Result]:
        """Return every planned case of a run with its newest result.

        Raises:
            NotFound: no run fits, or several do.
        """
        with self._read() as connection:
            run = _find(connection, name)
            state = self._state(connection, run)
            running = set(connection.scalars(select(Progress.case_key).where(Progress.run_key == run.key)))
            found = [
                answers.result_answer(row, state, row.case_key in running)
                for row in connection.execute(_results(run.key))
            ]
        return sorted_by(found, sort, descending)

    def durations(self, device: str, backend: str, measure: record.Measure) -> list[schemas.Duration]:
        """Return how long each case took when it last ran on a device profile with a backend.

        Args:
            measure: of the runs; one that only checks is shorter.
        """
        with self._read() as connection:
            found = connection.execute(_durations(device, backend, measure)).all()
        newest = {row.id: row for row in found}
        return [
            schemas.Duration(
                case=rows.stored_as(record.Case, row.document),
                seconds=(row.finished_at - row.started_at).total_seconds(),
                outcome=record.Outcome(row.outcome),
            )
            for row in newest.values()
        ]

    def pulse(self, run_id: str) -> str:
        """Return `ROWS/MOMENT`: ROWS changes with the run's results, cases in hand and state, MOMENT with every stage.

        A page that follows a run asks this first: the machine is measuring, so nothing is read twice for nothing.

        Raises:
            NotFound: there is no such run.
        """
        with self._read() as connection:
            run = _find(connection, run_id)
            state = self._state(connection, run)
            results = connection.scalar(select(func.count()).select_from(Result).where(Result.run_key == run.key))
            in_hand = (
                select(Progress.case_key, Progress.attempt).where(Progress.run_key == run.key).order_by("case_key")
            )
            cases = [f"{case_key}.{attempt}" for case_key, attempt in connection.execute(in_hand)]
        return "-".join([run.id, state, str(results), *cases]) + f"/{run.heartbeat_at.isoformat()}"

    def head(self, name: str = LATEST) -> record.Run:
        """Return a run as the first line of its journal, without its plan.

        Raises:
            NotFound: no run fits, or several do.
        """
        with self._read() as connection:
            run = _find(connection, name)
        same = ("id", "started_at", "command", "profile", "protocol", "doctor", "environment", "reference")
        later = ("source", "dated", "trigger", "branch", "commit", "fork_point")
        return rows.stored_as(record.Run, {"plan": (), **{part: getattr(run, part) for part in same + later}})

    def records(self, run_id: str, at_once: int = 100) -> Iterator[record.Record]:
        """Yield the newest record of each case of a run, samples included, in the order of its plan.

        Those that were pruned are passed over.
        """
        newest = (
            select(Planned.result_key)
            .join(Run, Run.key == Planned.run_key)
            .where(Run.id == run_id, Planned.result_key.is_not(None))
            .order_by(Planned.position)
        )
        with self._read() as connection:
            keys = [key for key in connection.scalars(newest) if key is not None]
        for start in range(0, len(keys), at_once):
            some = keys[start : start + at_once]
            with self._read() as connection:
                details = select(Detail.result_key, Detail.document).where(Detail.result_key.in_(some))
                found = {row.result_key: row.document for row in connection.execute(details)}
                timed = Session(connection).scalars(select(Samples).where(Samples.result_key.in_(some)))
                samples = {each.result_key: each for each in timed}
                for key in some:
                    if found.get(key) is not None:
                        yield rows.record_of(found[key], samples.get(key))

    def record(self, record_id: str) -> record.Record:
        """Return a whole record, samples included.

        Raises:
            NotFound: there is no such record.
        """
        with self._read() as connection:
            found = connection.execute(_detail(record_id)).one_or_none() if _is_id(record_id) else None
            if found is None:
                raise NotFound(f"There is no record {record_id!r}. A run's results name theirs as record_id.")
            if found.document is None:
                raise NotFound(f"Record {record_id} was pruned: its figures are kept, all else is gone.")
            samples = Session(connection).get(Samples, found.key)
        return rows.record_of(found.document, samples)

    def points(self, run_id: str) -> list[Point]:
        """Return every planned case of a run as a side of a comparison, in the order of the plan.

        Raises:
            NotFound: no run fits, or several do.
        """
        with self._read() as connection:
            run = _find(connection, run_id)
            hard = fingerprint(rows.stored_as(record.Environment, run.environment))
            return [_point(row, hard) for row in connection.execute(_results(run.key))]

    @contextmanager
    def _read(self) -> Iterator[Connection]:
        with db.explained(self._engine.url), self._engine.begin() as connection:
            yield connection

    def _state(self, connection: Connection, run: Any) -> RunState:
        if run.end_reason is not None:
            return RunState(run.end_reason)
        longest = connection.scalar(
            select(func.max(Entry.timeout_s))
            .select_from(Progress)
            .join(Planned, (Progress.run_key == Planned.run_key) & (Progress.case_key == Planned.case_key))
            .join(Entry, Entry.key == Planned.entry_key)
            .where(Progress.run_key == run.key)
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


def _point(row: Any, hard: str | None) -> Point:
    if row.outcome is None:
        outcome = record.Outcome.SKIPPED if row.skip else record.Outcome.MISSING
        return Point(row.case_id, row.suite, row.model, row.configuration_id, row.label, outcome, False, row.skip, hard)
    known: dict[str, Any] = {field.name: getattr(row, field.name, None) for field in fields(Point)}
    outcome, cold = record.Outcome(row.outcome), record.Flag.NOT_COLD not in row.flags
    known |= {"outcome": outcome, "hard": hard, "compile_wall_s": row.compile_wall_s if cold else None}
    return Point(**known | {"text": row.invalid_why if outcome == record.Outcome.PASS else row.text})


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


def _durations(device: str, backend: str, measure: record.Measure) -> Select[Any]:
    """Oldest first."""
    return (
        select(Case.id, Case.document, Result.started_at, Result.finished_at, Result.outcome)
        .join(Case, Case.key == Result.case_key)
        .join(Configuration, Configuration.id == Case.configuration_id)
        .join(Run, Run.key == Result.run_key)
        .where(Configuration.device == device, Configuration.backend == backend)
        .where(Run.protocol["measure"].as_string() == measure.value)
        .where(Result.outcome != record.Outcome.SKIPPED.value)
        .where(Run.source.is_(None))  # others do not say how long a case took
        .order_by(Result.started_at, Result.id)
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


def _summaries(connection: Connection, run_keys: Sequence[int]) -> dict[int, list[Any]]:
    """Return each run's summaries in the order of its plan."""
    found: dict[int, list[Any]] = {}
    for row in connection.execute(
        select(Summary.__table__, Configuration.label, Configuration.document.label("configuration"))
        .join(Configuration, Configuration.id == Summary.configuration_id)
        .where(Summary.run_key.in_(run_keys))
        .order_by(Summary.run_key, Summary.position)
    ):
        found.setdefault(row.run_key, []).append(row)
    return found


def _in_hand(run_key: int) -> Select[Any]:
    same = (Planned.run_key == Progress.run_key) & (Planned.case_key == Progress.case_key)
    return (
        select(
            Progress.__table__, Case.id.label("case_id"), Case.suite, Case.model, Configuration.label, Entry.timeout_s
        )
        .join(Planned, same)
        .join(Entry, Entry.key == Planned.entry_key)
        .join(Case, Case.key == Progress.case_key)
        .join(Configuration, Configuration.id == Case.configuration_id)
        .where(Progress.run_key == run_key)
        .order_by(Planned.position)
    )


def _specs(run_key: int) -> Select[Any]:
    return (
        select(Case.id.label("case_id"), Entry.spec)
        .select_from(Planned)
        .join(Case, Case.key == Planned.case_key)
        .join(Entry, Entry.key == Planned.entry_key)
        .where(Planned.run_key == run_key)
    )


def _detail(record_id: str) -> Select[int, bytes]:
    return (
        select(Result.key, Detail.document)
        .outerjoin(Detail, Detail.result_key == Result.key)
        .where(Result.id == record_id)
    )


def _is_id(text: str) -> bool:
    try:
        uuid.UUID(text)
    except ValueError:
        return False
    return True


def _results(run_key: int) -> Select[Any]:
    elsewhere = ("key", "run_key", "case_key", "series_key", "attempt")
    columns = [column for column in Result.__table__.c if column.name not in elsewhere]
    return (
        select(
            *columns,
            Result.attempt.label("result_attempt"),
            Planned.case_key,
            Planned.position,
            Entry.tolerance,
            Entry.skip,
            Case.id.label("case_id"),
            Case.suite,
            Case.model,
            Case.batch_size,
            Case.configuration_id,
            Configuration.label,
            Configuration.mode,
            Configuration.precision,
        )
        .select_from(Planned)
        .join(Case, Case.key == Planned.case_key)
        .join(Entry, Entry.key == Planned.entry_key)
        .join(Configuration, Configuration.id == Case.configuration_id)
        .outerjoin(Result, Result.key == Planned.result_key)
        .where(Planned.run_key == run_key)
        .order_by(Planned.position)
    )
