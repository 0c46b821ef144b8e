"""A run by its name, runs page by page, and where they are."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from pydantic import AwareDatetime, TypeAdapter
from sqlalchemy import Connection, Select, and_, func, or_, select

from server.reading import cursor
from server.reading.cursor import Page
from server.reading.errors import NotFound
from server.reading.filters import RunFilter
from server.schemas import RunState
from server.tables import Case, Configuration, Entry, Environment, Planned, Progress, Run, Summary

SILENCE = timedelta(minutes=5)
"""A run is lost when it gave no sign of life for this long beyond the time limit of its case in hand."""

LATEST = "latest"

WHOLE = 36
"""Characters of an id: no prefix, so that no more than one row is looked at."""

_PLACE: TypeAdapter[tuple[AwareDatetime, str]] = TypeAdapter(tuple[AwareDatetime, str])


_DOCUMENTS = ("profile", "protocol", "doctor")


def statement(documents: bool = True) -> Select[Any]:
    """Runs with their machines, newest first. A list shows no `documents`, which cost more than all else."""
    columns = [column for column in Run.__table__.c if documents or column.name not in _DOCUMENTS]
    machine: list[Any] = [Environment.host, Environment.cpu, Environment.torch, Environment.hard]
    if documents:
        machine.append(Environment.document.label("environment"))
    return (
        select(*columns, *machine)
        .join(Environment, Environment.id == Run.environment_id)
        .order_by(Run.started_at.desc(), Run.id.desc())
    )


def page(connection: Connection, wanted: RunFilter, limit: int, after: str | None) -> Page[Any]:
    """Return runs, newest first, that began after a place in the list.

    Raises:
        BadQuestion: `after` is no cursor of this list.
    """
    asked = statement(documents=False).where(*wanted.conditions()).limit(limit + 1)
    if after is not None:
        started_at, id_ = cursor.read(after, _PLACE)
        asked = asked.where(or_(Run.started_at < started_at, and_(Run.started_at == started_at, Run.id < id_)))
    found = connection.execute(asked).all()
    if len(found) <= limit:
        return Page(found)
    last = found[limit - 1]
    return Page(found[:limit], cursor.written(last.started_at.isoformat(), last.id))


def find(connection: Connection, name: str) -> Any:
    """Return a run by its id, a unique prefix of it, or `latest`.

    Raises:
        NotFound: no run fits, or several do.
    """
    if name == LATEST:
        found = connection.execute(statement().limit(1)).all()
    elif "\0" in name:  # PostgreSQL has no text with it
        found = []
    elif len(name) == WHOLE:
        found = connection.execute(statement().where(Run.id == name)).all()
    else:
        found = connection.execute(statement().where(Run.id.startswith(name, autoescape=True)).limit(5)).all()
    if len(found) == 1:
        return found[0]
    if found:
        raise NotFound(f"{name!r} fits several runs: {', '.join(run.id for run in found[:4])}. Give more of it.")
    if connection.scalar(select(Run.key).limit(1)) is not None:
        raise NotFound(f"There is no run {name!r}. Ids may be shortened; `latest` is the newest.")
    raise NotFound("There is no run yet. Start one: bench run --suite toy")


def states(connection: Connection, runs: Sequence[Any], now: datetime) -> dict[int, RunState]:
    """Return where runs are, by key."""
    unfinished = [run.key for run in runs if run.end_reason is None]
    longest: dict[int, float | None] = {}
    if unfinished:
        same = and_(Progress.run_key == Planned.run_key, Progress.case_key == Planned.case_key)
        limits = (
            select(Progress.run_key, func.max(Entry.timeout_s))
            .select_from(Progress)
            .join(Planned, same)
            .join(Entry, Entry.key == Planned.entry_key)
            .where(Progress.run_key.in_(unfinished))
            .group_by(Progress.run_key)
        )
        longest = dict(connection.execute(limits).all())

    def state(run: Any) -> RunState:
        if run.end_reason is not None:
            return RunState(run.end_reason)
        allowed = SILENCE + timedelta(seconds=longest.get(run.key) or 0)
        return RunState.RUNNING if now - run.heartbeat_at <= allowed else RunState.LOST

    return {run.key: state(run) for run in runs}


def summaries(connection: Connection, run_keys: Sequence[int], most: int | None = None) -> dict[int, list[Any]]:
    """Return each run's summaries in the order of its plan.

    Args:
        most: runs that have more come without theirs.
    """
    found: dict[int, list[Any]] = {}
    if most is not None:
        few = select(Summary.run_key).where(Summary.run_key.in_(run_keys)).group_by(Summary.run_key)
        run_keys = connection.scalars(few.having(func.count() <= most)).all()
    for row in connection.execute(
        select(Summary.__table__, Configuration.label, Configuration.document.label("configuration"))
        .join(Configuration, Configuration.id == Summary.configuration_id)
        .where(Summary.run_key.in_(run_keys))
        .order_by(Summary.run_key, Summary.position)
    ):
        found.setdefault(row.run_key, []).append(row)
    return found


def in_hand(run_key: int) -> Select[Any]:
    """What a run measures now."""
    same = and_(Planned.run_key == Progress.run_key, Planned.case_key == Progress.case_key)
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
