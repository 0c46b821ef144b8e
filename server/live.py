"""A run as it goes on: what changed since a listener last looked.

    planned    once, when somebody begins to listen: how the run stands
    stage      a case in hand is at another stage, or was begun
    record     a result came in; its id is where a listener goes on who was cut off
    finished   the run is over, or lost; nothing comes after it

It is the database that is looked at, so it does not matter which process took the record in.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import Connection, Engine, select

from harness.record import Outcome, Stage
from server import db, schemas
from server.queries import Queries
from server.schemas import RunState
from server.tables import Case, Configuration, Planned, Progress, Result, Run

MOST = 500
"""Records told at one look; what is left is told at the next."""

OVER = "over"
"""In place of a result's key: this listener has heard that the run is over."""


class Kind(StrEnum):
    PLANNED = "planned"
    STAGE = "stage"
    RECORD = "record"
    FINISHED = "finished"


class Standing(schemas.Answer):
    """How the run stands: the data of `planned` and `finished`."""

    run: str
    state: RunState
    planned: int
    skipped: int
    passed: int
    missing: int
    crashed: int


class StageNews(schemas.Answer):
    """The data of `stage`."""

    case_id: str
    suite: str
    model: str
    label: str
    attempt: int
    stage: Stage | None
    """Null: the worker is starting."""
    since: datetime


class RecordNews(schemas.Answer):
    """The data of `record`."""

    record_id: str
    case_id: str
    suite: str
    model: str
    label: str
    position: int
    attempt: int
    outcome: Outcome
    text: str | None
    valid: bool
    speedup: float | None
    speedup_low: float | None
    speedup_high: float | None


@dataclass(frozen=True)
class Event:
    """One thing that a listener is told."""

    kind: Kind
    data: schemas.Answer
    id: str | None = None
    """Where a listener goes on after this one; None: as before."""


@dataclass
class Follower:
    """Looks at one run again and again, and tells each thing once.

    Args:
        run: its full id.
        after: the key of the last result that was told; None: tell how the run stands, then all of its results.
    """

    queries: Queries
    engine: Engine
    run: str
    after: int | None = None
    _stages: Mapping[int, Any] = field(default_factory=dict)
    """By case key, the row that was told last."""
    over: bool = False

    def look(self) -> list[Event]:
        """Return what is new.

        Raises:
            NotFound: the run is gone.
        """
        key, _, state = self.queries.standing(self.run)
        with db.explained(self.engine.url), self.engine.begin() as connection:
            events = list(self._news(connection, key, state))
        return events

    def _news(self, connection: Connection, key: int, state: RunState) -> Iterator[Event]:
        standing = _standing(connection, key, state)
        if self.after is None:
            self.after = 0
            yield Event(Kind.PLANNED, standing)
        found = connection.execute(_results(key, self.after)).all()
        for row in found:
            self.after = row.key
            yield Event(Kind.RECORD, RecordNews.model_validate(row._asdict()), str(row.key))
        stages = {row.case_key: row for row in connection.execute(_in_hand(key))}
        for case_key, row in stages.items():
            if self._stages.get(case_key) != row:
                yield Event(Kind.STAGE, StageNews.model_validate(row._asdict()))
        self._stages = stages
        if state != RunState.RUNNING and len(found) < MOST:
            self.over = True
            yield Event(Kind.FINISHED, standing, f"{self.after}-{OVER}")


def place(last_event_id: str | None) -> tuple[int | None, bool]:
    """Return the key of the last result that a listener was told, and whether it heard that the run is over.

    An id that is none of ours: from the beginning.
    """
    text, _, rest = (last_event_id or "").partition("-")
    if not (text.isascii() and text.isdigit() and len(text) < 19 and rest in ("", OVER)):
        return None, False
    return int(text), rest == OVER


def _standing(connection: Connection, key: int, state: RunState) -> Standing:
    columns = (Run.planned, Run.skipped, Run.passed, Run.missing, Run.crashed)
    counts = connection.execute(select(Run.id.label("run"), *columns).where(Run.key == key)).one()
    return Standing(state=state, **counts._asdict())


def _results(run_key: int, after: int) -> Any:
    """Keys grow in the order in which a run's results come in: its writers take turns."""
    same = (Planned.run_key == Result.run_key) & (Planned.case_key == Result.case_key)
    return (
        select(
            Result.key,
            Result.id.label("record_id"),
            Case.id.label("case_id"),
            Case.suite,
            Case.model,
            Configuration.label,
            Planned.position,
            Result.attempt,
            Result.outcome,
            Result.text,
            Result.valid,
            Result.speedup,
            Result.speedup_low,
            Result.speedup_high,
        )
        .join(Planned, same)
        .join(Case, Case.key == Result.case_key)
        .join(Configuration, Configuration.id == Case.configuration_id)
        .where(Result.run_key == run_key, Result.key > after)
        .order_by(Result.key)
        .limit(MOST)
    )


def _in_hand(run_key: int) -> Any:
    return (
        select(
            Progress.case_key,
            Case.id.label("case_id"),
            Case.suite,
            Case.model,
            Configuration.label,
            Progress.attempt,
            Progress.stage,
            Progress.stage_since.label("since"),
        )
        .join(Case, Case.key == Progress.case_key)
        .join(Configuration, Configuration.id == Case.configuration_id)
        .where(Progress.run_key == run_key)
        .order_by(Progress.started_at)
    )
