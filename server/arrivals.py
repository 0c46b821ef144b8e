"""What comes in over the API: a run, batches of its lines, and what is said of a run later."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Engine, insert, select

from harness.record import Record, Run, RunEnd, Start
from harness.wire import SentLine, StageLine
from server import db, rows
from server.queries import NotFound
from server.tables import Result, Upload
from server.tables import Run as RunRow
from server.writer import Kept, Writer


@dataclass(frozen=True)
class Receipt:
    """A batch of lines as it came in; see `tables.Upload`."""

    id: str
    token_id: str | None
    received_at: datetime
    source: str
    format: str
    digest: str
    bytes: int


class Arrivals(Writer):
    """A writer that hears of each batch from whom it came."""

    def admit(self, run: Run) -> bool:
        """Add a run as `open` does, and say whether it is new.

        Raises:
            Conflict: another run was stored under its id.
        """
        same = (RunRow.started_at, RunRow.environment_id, RunRow.command)
        found = self._connection.execute(select(*same).where(RunRow.id == run.id)).one_or_none()
        environment_id = rows.environment_row(run.environment)["id"]
        if found is not None and tuple(found) != (run.started_at, environment_id, run.command):
            raise rows.Conflict(
                f"run {run.id} is here already with another start, environment or command. An id is of one run: "
                "send the journal as it was written, or give the other run an id of its own."
            )
        self.open(run)
        return found is None

    def amend(self, run_id: str, said: Mapping[str, str]) -> None:
        """Say what a run did not say of itself: `branch`, `commit`, `trigger`, `fork_point`.

        Raises:
            Misfit: there is no such run.
            Conflict: it said another thing; or a branch is named when results lie in series without one.
        """
        run = self._lock(run_id)
        columns = (RunRow.trigger, RunRow.branch, RunRow.commit, RunRow.fork_point)
        known = self._connection.execute(select(*columns).where(RunRow.key == run.key)).one()._asdict()
        for name, value in said.items():
            if known[name] not in (None, value):
                raise rows.Conflict(f"run {run_id} has the {name} {known[name]!r}, which is not changed afterwards.")
            if known[name] is None:
                run.changes[name] = value
        if "branch" in run.changes:
            with_results = select(Result.key).where(Result.run_key == run.key).limit(1)
            if self._connection.scalar(with_results) is not None:
                raise rows.Conflict(
                    f"run {run_id} has results, and they belong to the series of no branch. Name it when the run "
                    "is opened, or before its first record."
                )
            run.branch = said["branch"]

    def receipt(self, receipt: Receipt, run_id: str, kept: Sequence[Kept | None]) -> None:
        """Note that lines of a run came in, and what became of its records."""
        counts = {each.value: kept.count(each) for each in Kept}
        run_key = self._lock(run_id).key
        self._connection.execute(insert(Upload).values(run_key=run_key, **vars(receipt), **counts))

    def receive(self, run_id: str, lines: Sequence[SentLine], receipt: Receipt) -> list[Kept]:
        """Add lines of one run and the note that they came, and say what became of the records."""
        kept = self.take([line for line in lines if isinstance(line, Start | Record)])
        for line in lines:
            if isinstance(line, RunEnd):
                self.close(line)
        newest = {line.case_id: line for line in lines if isinstance(line, StageLine)}
        for staged in newest.values():
            start = Start(run_id=run_id, case_id=staged.case_id, attempt=staged.attempt, at=staged.at)
            self.stage(start, staged.stage)
        self.receipt(receipt, run_id, kept)
        return [each for each in kept if each is not None]


def known_records(engine: Engine, run_id: str) -> list[str]:
    """Return the ids of the records that are here of a run: what a client asks before it sends.

    Raises:
        NotFound: there is no such run.
    """
    with db.explained(engine.url), engine.begin() as connection:
        key = connection.scalar(select(RunRow.key).where(RunRow.id == run_id))
        if key is None:
            raise NotFound(f"There is no run {run_id!r} here. Send it first: POST /api/v1/runs.")
        return list(connection.scalars(select(Result.id).where(Result.run_key == key).order_by(Result.key)))
