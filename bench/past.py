"""How long cases took before, out of the database."""

from __future__ import annotations

from harness.budget import Past
from harness.record import Measure


def durations(database: str, device: str, backend: str, measure: Measure) -> list[Past]:
    """Return the newest duration of each case of a device profile and a backend, in runs that measured the same.

    A database that is not there yet is no past, and is not made.
    """
    from server import db  # here, so that a plan without a limit needs no database
    from server.queries import Queries

    if not db.exists(database):
        return []
    engine = db.connect(database)
    try:
        found = Queries(engine).durations(device, backend, measure)
    finally:
        engine.dispose()
    return [Past(each.case, each.seconds, each.outcome) for each in found]
