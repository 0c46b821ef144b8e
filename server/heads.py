"""The series that results belong to, and their heads: what a page shows of a series without reading it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, bindparam, select, update
from sqlalchemy.dialects import postgresql, sqlite

from harness.record import Outcome
from server.tables import Series

RECENT = 30
"""Points that a head keeps: a month of nights, what a sparkline shows."""

CHUNK = 500


class Heads:
    """Within one transaction: finds or makes series, adds results to their heads, stores those at its end."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._heads: dict[int, dict[str, Any]] = {}
        self._found: dict[tuple[int, str, str, str], int] = {}

    def keys(self, started: Mapping[int, datetime], hard: str, source: str, branch: str) -> dict[int, int]:
        """Return each case's series on one machine class, from one source and branch; made where there is none.

        Args:
            started: by case key, when the case was started: the first point of a series that is made.
        """
        wanted = [key for key in started if (key, hard, source, branch) not in self._found]
        self._look_up(wanted, hard, source, branch)
        absent = [key for key in wanted if (key, hard, source, branch) not in self._found]
        if absent:
            add = postgresql.insert if self._connection.dialect.name == "postgresql" else sqlite.insert
            empty = {"hard": hard, "source": source, "branch": branch, "results": 0, "outcome": "", "recent": []}
            made = [{**empty, "case_key": key, "first_at": started[key], "last_at": started[key]} for key in absent]
            self._connection.execute(add(Series).on_conflict_do_nothing(), made)
            self._look_up(absent, hard, source, branch)
        return {key: self._found[key, hard, source, branch] for key in started}

    def add(self, series_key: int, result_key: int, row: dict[str, Any]) -> None:
        """Add one result's columns to the head of its series; results may come in any order of time."""
        head = self._heads[series_key]
        started: datetime = row["started_at"]
        first = head["results"] == 0  # new, or all of its results were pruned
        newest = first or started >= head["last_at"]
        head["results"] += 1
        head["first_at"] = started if first else min(head["first_at"], started)
        if newest:
            head |= {"last_at": started, "outcome": row["outcome"], "result_key": result_key}
        if row["outcome"] == Outcome.PASS and (head["passed_at"] is None or started > head["passed_at"]):
            head["passed_at"] = started
        speedup = [row[name] if row["valid"] else None for name in ("speedup", "speedup_low", "speedup_high")]
        points = [*head["recent"], [started.timestamp(), row["outcome"], *speedup]]
        if not newest:
            points.sort(key=lambda point: point[0])
        head["recent"] = points[-RECENT:]
        head["changed"] = True

    def store(self) -> None:
        """Write the heads that changed."""
        changed = [
            {f"new_{name}": value for name, value in head.items() if name != "changed"}
            for head in self._heads.values()
            if head["changed"]
        ]
        if changed:
            columns = [name for name in _HEAD if name != "key"]
            self._connection.execute(
                update(Series)
                .where(Series.key == bindparam("new_key"))
                .values({name: bindparam(f"new_{name}") for name in columns}),
                changed,
            )

    def _look_up(self, case_keys: Sequence[int], hard: str, source: str, branch: str) -> None:
        """Read series with their heads, locked: two runs on one kind of machine share them."""
        for begin in range(0, len(case_keys), CHUNK):
            found = self._connection.execute(
                select(Series.case_key, *[Series.__table__.c[name] for name in _HEAD])
                .where(
                    Series.case_key.in_(case_keys[begin : begin + CHUNK]),
                    Series.hard == hard,
                    Series.source == source,
                    Series.branch == branch,
                )
                .order_by(Series.key)  # in one order, so that two writers cannot wait for each other
                .with_for_update()
            )
            for row in found:
                self._found[row.case_key, hard, source, branch] = row.key
                self._heads[row.key] = {name: getattr(row, name) for name in _HEAD} | {"changed": False}


_HEAD = ("key", "results", "first_at", "last_at", "result_key", "outcome", "passed_at", "recent")
