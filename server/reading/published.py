"""A run as far as a comparison with published figures needs it: its plan, and four columns of each result."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, select

from harness import beside, record
from harness.reference import Row
from server.rows import stored_as
from server.tables import Case, Configuration, Entry, Planned, Result


def facts(connection: Connection, run: Any) -> beside.Facts:
    """Return what was asked for in a run, what was found, and how far it is."""
    return beside.Facts(
        profile=stored_as(record.DeviceProfile, run.profile),
        environment=stored_as(record.Environment, run.environment),
        protocol=stored_as(record.Protocol, run.protocol),
        entries=_entries(connection, run.key),
    )


def _entries(connection: Connection, run_key: int) -> tuple[beside.Entry, ...]:
    """Return a run's planned cases. Many share a configuration or an entry: each of those is read once."""
    planned = select(Planned.entry_key, Planned.case_key).where(Planned.run_key == run_key).subquery()
    listed: dict[int, dict[str, int]] = dict(
        connection.execute(
            select(Entry.key, Entry.spec["batch"]).where(Entry.key.in_(select(planned.c.entry_key)))
        ).all()
    )
    used = select(Case.configuration_id).where(Case.key.in_(select(planned.c.case_key)))
    configurations = {
        id_: stored_as(record.Configuration, document)
        for id_, document in connection.execute(
            select(Configuration.id, Configuration.document).where(Configuration.id.in_(used))
        )
    }
    numbers = Result.__table__.c["outcome", "speedup", "compile_wall_s", "memory_ratio"]
    found = connection.execute(
        select(
            Case.suite,
            Case.model,
            Case.configuration_id,
            Case.batch_size,
            Planned.entry_key,
            Entry.skip.is_not(None).label("skip"),
            *numbers,
        )
        .select_from(Planned)
        .join(Case, Case.key == Planned.case_key)
        .join(Entry, Entry.key == Planned.entry_key)
        .outerjoin(Result, Result.key == Planned.result_key)
        .where(Planned.run_key == run_key)
        .order_by(Planned.position)
    )
    entries = []
    for suite, model, configuration_id, batch_size, entry_key, skip, outcome, speedup, compile_s, ratio in found:
        configuration = configurations[configuration_id]
        skipped = outcome == record.Outcome.SKIPPED or (outcome is None and bool(skip))
        entries.append(
            beside.Entry(
                suite=suite,
                model=model,
                configuration=configuration,
                batch_size=batch_size,
                listed_batch=listed[entry_key].get(configuration.mode.value),
                skipped=skipped,
                row=None if skipped or outcome is None else Row(outcome, speedup, compile_s, ratio),
            )
        )
    return tuple(entries)
