"""One record: whole, its samples, or what its worker printed."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from typing import Any

from sqlalchemy import Connection, select
from sqlalchemy.orm import Session

from harness.record import Record
from server import rows
from server.reading.errors import NotFound
from server.tables import Detail, Planned, Result, Run, Samples


def whole(connection: Connection, record_id: str) -> Record:
    """Return a record with its samples.

    Raises:
        NotFound: there is no such record, or it was pruned.
    """
    found = _find(connection, record_id)
    return rows.record_of(found.document, Session(connection).get(Samples, found.key))


def without_samples(connection: Connection, record_id: str) -> Record:
    """Return a record that has no samples, which are most of it. Raises as `whole`."""
    return rows.record_of(_find(connection, record_id).document)


def samples(connection: Connection, record_id: str) -> Samples:
    """Return a record's samples, packed.

    Raises:
        NotFound: there is no such record, or nothing was timed, or they were pruned.
    """
    key = connection.scalar(select(Result.key).where(Result.id == record_id)) if is_id(record_id) else None
    if key is None:
        raise unknown(record_id)
    found = Session(connection).get(Samples, key)
    if found is None:
        raise NotFound(f"Record {record_id} has no samples: nothing was timed, or they were pruned.")
    return found


def newest(connection: Connection, run_id: str) -> list[int]:
    """Return the keys of a run's newest results, in the order of its plan."""
    asked = (
        select(Planned.result_key)
        .join(Run, Run.key == Planned.run_key)
        .where(Run.id == run_id, Planned.result_key.is_not(None))
        .order_by(Planned.position)
    )
    return [key for key in connection.scalars(asked) if key is not None]


def of_keys(connection: Connection, keys: Sequence[int]) -> Iterator[Record]:
    """Yield the records of results with their samples, in the order of the keys; pruned ones are passed over."""
    details = select(Detail.result_key, Detail.document).where(Detail.result_key.in_(keys))
    found = {row.result_key: row.document for row in connection.execute(details)}
    timed = Session(connection).scalars(select(Samples).where(Samples.result_key.in_(keys)))
    samples_of = {each.result_key: each for each in timed}
    for key in keys:
        if found.get(key) is not None:
            yield rows.record_of(found[key], samples_of.get(key))


def _find(connection: Connection, record_id: str) -> Any:
    asked = (
        select(Result.key, Detail.document)
        .outerjoin(Detail, Detail.result_key == Result.key)
        .where(Result.id == record_id)
    )
    found = connection.execute(asked).one_or_none() if is_id(record_id) else None
    if found is None:
        raise unknown(record_id)
    if found.document is None:
        raise NotFound(f"Record {record_id} was pruned: its figures are kept, all else is gone.")
    return found


def unknown(record_id: str) -> NotFound:
    return NotFound(f"There is no record {record_id!r}. A run's results name theirs as record_id.")


def is_id(text: str) -> bool:
    try:
        uuid.UUID(text)
    except ValueError:
        return False
    return True
