"""Remarks of people about a run or a series at a point in time."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import Engine, delete, insert, select

from harness import record
from server import db, schemas
from server.queries import NotFound
from server.tables import Annotation as Row
from server.tables import Run, Series


class Kind(StrEnum):
    """What a remark is for."""

    NOTE = "note"
    CHANGE = "change"
    """Something was changed on purpose here: a driver, a machine, a tolerance."""
    KNOWN = "known"
    """A trouble that somebody knows, e.g. with the issue that tracks it."""


class Annotation(schemas.Answer):
    """A remark, with who made it and when."""

    id: str
    run: str | None
    """Id of the run; null where it is about a series."""
    series: int | None
    """Key of the series; null where it is about a run."""
    at: datetime
    """The point in time that it is about."""
    kind: Kind
    text: str
    author: str
    """Name of the token with which it was made."""
    created_at: datetime


class Remarks:
    """The remarks of one database."""

    def __init__(self, engine: Engine, clock: Callable[[], datetime] = record.now) -> None:
        self._engine = engine
        self._clock = clock

    def add(
        self, *, run: str | None, series: int | None, at: datetime | None, kind: Kind, text: str, author: str
    ) -> Annotation:
        """Keep a remark about a run or about a series.

        Args:
            at: None: when the run started, or the newest point of the series.

        Raises:
            NotFound: there is no such run or series.
        """
        about = select(Run.key, Run.started_at.label("at")).where(Run.id == run)
        if run is None:
            about = select(Series.key, Series.last_at.label("at")).where(Series.key == series)
        with db.explained(self._engine.url), db.writing(self._engine).begin() as connection:
            found = connection.execute(about).one_or_none()
            if found is None:
                raise NotFound(f"There is no run {run!r}." if run is not None else f"There is no series {series}.")
            id_ = record.new_run_id()
            connection.execute(
                insert(Row).values(
                    id=id_,
                    run_key=None if run is None else found.key,
                    series_key=found.key if run is None else None,
                    at=at or found.at,
                    created_at=self._clock(),
                    author=author,
                    kind=kind.value,
                    text=text,
                )
            )
            return _annotation(connection.execute(_statement().where(Row.id == id_)).one())

    def page(
        self, *, run: str | None, series: int | None, limit: int, after: str | None
    ) -> tuple[list[Annotation], str | None]:
        """Return remarks, the newest first, and the id of the last one where there are more."""
        wanted = _statement()
        if run is not None:
            wanted = wanted.where(Run.id == run)
        if series is not None:
            wanted = wanted.where(Row.series_key == series)
        if after is not None:
            wanted = wanted.where(Row.id < after)
        with db.explained(self._engine.url), self._engine.begin() as connection:
            found = connection.execute(wanted.order_by(Row.id.desc()).limit(limit + 1)).all()
        items = [_annotation(row) for row in found[:limit]]
        return items, items[-1].id if len(found) > limit else None

    def find(self, id: str) -> Annotation:
        """Return one remark. Raises NotFound: it is not there, or no more."""
        with db.explained(self._engine.url), self._engine.begin() as connection:
            found = connection.execute(_statement().where(Row.id == id)).one_or_none()
        if found is None:
            raise NotFound(f"There is no annotation {id!r}.")
        return _annotation(found)

    def remove(self, id: str) -> None:
        with db.explained(self._engine.url), db.writing(self._engine).begin() as connection:
            connection.execute(delete(Row).where(Row.id == id))


def _statement() -> Any:
    columns = (Row.id, Row.at, Row.kind, Row.text, Row.author, Row.created_at)
    named = select(*columns, Run.id.label("run"), Row.series_key.label("series"))
    return named.select_from(Row).outerjoin(Run, Run.key == Row.run_key)


def _annotation(row: Any) -> Annotation:
    return Annotation.model_validate(row._asdict())
