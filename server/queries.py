"""The only reader: questions about one database, each answered in one read transaction.

How a question is put stands in `server.reading`, one noun a module; here are the doors. Nothing is aggregated that the
store keeps already.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Engine, func, select

from harness import beside, record
from harness.compare_points import Point
from server import answers, db, rows, schemas, schemas_comparison, schemas_series
from server.reading import comparison, facets, kept, published, records, results, runs, series, trends
from server.reading.cursor import Page as Page
from server.reading.errors import NotFound as NotFound
from server.reading.filters import ResultFilter, RunFilter, SeriesFilter, Span
from server.reading.results import Sort as Sort
from server.reading.runs import LATEST as LATEST
from server.reading.runs import SILENCE as SILENCE
from server.schemas import RunState
from server.tables import Progress, Result, Run

RUNS_KEPT = 8
"""Runs whose cases are kept: some two megabytes for each that is as large as they come."""

EVERY_RUN = RunFilter()
EVERY_RESULT = ResultFilter()


class Queries:
    """Answers questions about one database. Safe to use from several threads."""

    def __init__(self, engine: Engine, clock: Callable[[], datetime] = record.now) -> None:
        self._engine = engine
        self._clock = clock
        self._cases: kept.Kept[comparison.Cases] = kept.Kept(RUNS_KEPT)
        self._facts: kept.Kept[beside.Facts] = kept.Kept(RUNS_KEPT)

    def dispose(self) -> None:
        """Close the connections."""
        self._engine.dispose()

    # -- runs ---------------------------------------------------------------------------------

    def count(self) -> int:
        """Return how many runs there are."""
        with self._read() as connection:
            return connection.scalar(select(func.count()).select_from(Run)) or 0

    def runs(self, limit: int = 50, offset: int = 0, summaries: int | None = None) -> list[schemas.Run]:
        """Return runs, newest first.

        Args:
            summaries: runs that have more summaries than this come without theirs.
        """
        with self._read() as connection:
            found = connection.execute(runs.statement(documents=False).limit(limit).offset(offset)).all()
            return self._run_answers(connection, found, summaries)

    def run_page(
        self, wanted: RunFilter = EVERY_RUN, limit: int = 50, after: str | None = None, summaries: bool = False
    ) -> Page[schemas.Run]:
        """Return runs that fit, newest first.

        Args:
            after: the cursor of the page before.
            summaries: whether they come with theirs.

        Raises:
            BadQuestion: `after` is no cursor of this list.
        """
        with self._read() as connection:
            page = runs.page(connection, wanted, limit, after)
            return Page(self._run_answers(connection, page.items, None if summaries else 0), page.next)

    def run(self, name: str = LATEST) -> schemas.RunDetail:
        """Return a run by its id, a unique prefix of it, or `latest`.

        Raises:
            NotFound: no run fits, or several do.
            BenchError: a file of published figures is broken.
        """
        with self._read() as connection:
            run = runs.find(connection, name)
            found = runs.summaries(connection, [run.key]).get(run.key, [])
            state = self._state(connection, run)
            in_hand = connection.execute(runs.in_hand(run.key)).all() if state == RunState.RUNNING else []
            failed = [answers.result_answer(row, state) for row in connection.execute(results.failed(run.key))]
            version = kept.version(connection, run.key)
            facts = self._facts.get(version, lambda: published.facts(connection, run))
        answer = answers.run_answer(run, state, found)
        return schemas.RunDetail(
            **dict(answer),
            environment=facts.environment,
            profile=facts.profile,
            protocol=facts.protocol,
            doctor=tuple(rows.stored_as(record.Finding, finding) for finding in run.doctor),
            in_hand=tuple(schemas.InHand.model_validate(row._asdict()) for row in in_hand),
            failures=tuple(answers.failures(failed)),
            reference=run.reference,
            comparisons=tuple(beside.compare(reference, facts) for reference in beside.known()),
        )

    def summaries(self, name: str = LATEST) -> list[schemas.Summary]:
        """Return a run's summaries in the order of its plan. Raises NotFound: no run fits, or several do."""
        with self._read() as connection:
            run = runs.find(connection, name)
            found = runs.summaries(connection, [run.key]).get(run.key, [])
            return list(answers.run_answer(run, self._state(connection, run), found).summaries)

    def pulse(self, run_id: str) -> str:
        """Return `ROWS/MOMENT`: ROWS changes with the run's results, cases in hand and state, MOMENT with every stage.

        A page that follows a run asks this first: the machine is measuring, so nothing is read twice for nothing.

        Raises:
            NotFound: there is no such run.
        """
        with self._read() as connection:
            run = runs.find(connection, run_id)
            state = self._state(connection, run)
            count = connection.scalar(select(func.count()).select_from(Result).where(Result.run_key == run.key))
            in_hand = (
                select(Progress.case_key, Progress.attempt).where(Progress.run_key == run.key).order_by("case_key")
            )
            cases = [f"{case_key}.{attempt}" for case_key, attempt in connection.execute(in_hand)]
        return "-".join([run.id, state, str(count), *cases]) + f"/{run.heartbeat_at.isoformat()}"

    # -- results ------------------------------------------------------------------------------

    def results(self, name: str = LATEST, sort: Sort = Sort.PLAN, descending: bool = False) -> list[schemas.Result]:
        """Return every planned case of a run with its newest result.

        Raises:
            NotFound: no run fits, or several do.
        """
        with self._read() as connection:
            run = runs.find(connection, name)
            found = self._result_answers(connection, run, connection.execute(results.in_plan(run.key)))
        return sorted_by(found, sort, descending)

    def result_page(
        self,
        name: str = LATEST,
        wanted: ResultFilter = EVERY_RESULT,
        sort: Sort = Sort.PLAN,
        descending: bool = False,
        limit: int | None = None,
        after: str | None = None,
    ) -> Page[schemas.Result]:
        """Return planned cases of a run that fit, with their newest results; all of them without a limit.

        Raises:
            NotFound: no run fits, or several do.
            BadQuestion: `after` is no cursor of this list in this order.
        """
        with self._read() as connection:
            run = runs.find(connection, name)
            state = self._state(connection, run)
            page = results.page(connection, run.key, state, wanted, sort, descending, limit, after)
            return Page(self._result_answers(connection, run, page.items), page.next)

    def looks(self, name: str, grave: Sequence[record.Flag], limit: int) -> tuple[int, list[schemas.Result]]:
        """Return how many of a run's cases somebody should look at, and the first of them.

        Failures, what never ran, passes that prove little, and what is slower compiled, in this order.

        Args:
            grave: flags of a pass that proves little.

        Raises:
            NotFound: no run fits, or several do.
        """
        with self._read() as connection:
            run = runs.find(connection, name)
            state = self._state(connection, run)
            found = connection.execute(results.looks(run.key, state, grave, limit)).all()
        return found[0].total if found else 0, [answers.result_answer(row, state) for row in found]

    def durations(self, device: str, backend: str, measure: record.Measure) -> list[schemas.Duration]:
        """Return how long each case took when it last ran on a device profile with a backend.

        Args:
            measure: of the runs; one that only checks is shorter.
        """
        with self._read() as connection:
            found = results.durations(connection, device, backend, measure)
        newest = {row.id: row for row in found}
        return [
            schemas.Duration(
                case=rows.stored_as(record.Case, row.document),
                seconds=(row.finished_at - row.started_at).total_seconds(),
                outcome=record.Outcome(row.outcome),
            )
            for row in newest.values()
        ]

    # -- time ---------------------------------------------------------------------------------

    def series(
        self, wanted: SeriesFilter, of_each: series.Wanted, limit: int = 50, after: str | None = None
    ) -> Page[schemas_series.Series]:
        """Return series with their points. Raises BadQuestion: `after` is no cursor of this list."""
        with self._read() as connection:
            return series.page(connection, wanted, of_each, limit, after)

    def trends(
        self, wanted: SeriesFilter, span: Span, points: int = 500, limit: int = 50, after: str | None = None
    ) -> Page[schemas_series.Trend]:
        """Return summaries over time. Raises BadQuestion: `after` is no cursor of this list."""
        with self._read() as connection:
            return trends.page(connection, wanted, span, points, limit, after)

    def facets(self, wanted: SeriesFilter) -> schemas_series.Facets:
        """Return for each filter the values that have data under the others."""
        with self._read() as connection:
            return facets.facets(connection, wanted)

    # -- two runs -----------------------------------------------------------------------------

    def points(self, name: str) -> list[Point]:
        """Return every planned case of a run as a side of a comparison, in the order of the plan.

        Raises:
            NotFound: no run fits, or several do.
        """
        with self._read() as connection:
            return list(self._side(connection, name).cases.points)

    def compare(
        self, base: str, head: str, across: bool = False, unchanged: bool = False, like_these: bool = False
    ) -> schemas_comparison.RunComparison:
        """Return what changed from one run to another.

        Args:
            across: compare across machines, device profiles and batch sizes too.
            unchanged: with the cases that stayed the same.
            like_these: with the means that models like these should expect.

        Raises:
            NotFound: no run fits, or several do.
            NotComparable: the machines differ, or no case is on both sides.
        """
        with self._read() as connection:
            old, new = self._side(connection, base), self._side(connection, head)
        return comparison.compared(old, new, across=across, unchanged=unchanged, like_these=like_these)

    # -- records ------------------------------------------------------------------------------

    def standing(self, name: str = LATEST) -> tuple[int, str, RunState]:
        """Return a run's key, id and state: what somebody who follows it asks again and again.

        Raises:
            NotFound: no run fits, or several do.
        """
        with self._read() as connection:
            run = runs.find(connection, name)
            return run.key, run.id, self._state(connection, run)

    def head(self, name: str = LATEST) -> record.Run:
        """Return a run as the first line of its journal, without its plan.

        Raises:
            NotFound: no run fits, or several do.
        """
        with self._read() as connection:
            run = runs.find(connection, name)
        same = ("id", "started_at", "command", "profile", "protocol", "doctor", "environment", "reference")
        later = ("source", "dated", "trigger", "branch", "commit", "fork_point")
        return rows.stored_as(record.Run, {"plan": (), **{part: getattr(run, part) for part in same + later}})

    def records(self, run_id: str, at_once: int = 100) -> Iterator[record.Record]:
        """Yield the newest record of each case of a run, samples included, in the order of its plan.

        Those that were pruned are passed over. A batch is one transaction: a reader that is slow holds none open.
        """
        with self._read() as connection:
            keys = records.newest(connection, run_id)
        for start in range(0, len(keys), at_once):
            with self._read() as connection:
                found = list(records.of_keys(connection, keys[start : start + at_once]))
            yield from found

    def record(self, record_id: str) -> record.Record:
        """Return a whole record, samples included.

        Raises:
            NotFound: there is no such record, or it was pruned.
        """
        with self._read() as connection:
            return records.whole(connection, record_id)

    def samples(self, record_id: str) -> schemas.RecordSamples:
        """Return the pairs of a record. Raises NotFound: it has none."""
        with self._read() as connection:
            return answers.samples_answer(record_id, records.samples(connection, record_id))

    def log(self, record_id: str) -> schemas.Log:
        """Return what a record's worker printed. Raises NotFound: there is no such record, or it was pruned."""
        with self._read() as connection:
            return schemas.Log(**dict(records.without_samples(connection, record_id).log))

    # -- small steps --------------------------------------------------------------------------

    @contextmanager
    def _read(self) -> Iterator[Connection]:
        with db.explained(self._engine.url), self._engine.begin() as connection:
            yield connection

    def _state(self, connection: Connection, run: Any) -> RunState:
        return runs.states(connection, [run], self._clock())[run.key]

    def _side(self, connection: Connection, name: str) -> comparison.Side:
        run = runs.find(connection, name)
        cases = self._cases.get(kept.version(connection, run.key), lambda: comparison.cases(connection, run))
        return comparison.Side(run, self._state(connection, run), cases)

    def _run_answers(self, connection: Connection, found: Iterable[Any], most: int | None) -> list[schemas.Run]:
        """`most`: summaries that a run may have to come with them; zero: none is read, None: all are."""
        listed = list(found)
        states = runs.states(connection, listed, self._clock())
        of_runs = runs.summaries(connection, [run.key for run in listed], most) if most != 0 else {}
        known: dict[str, record.Configuration] = {}
        return [answers.run_answer(run, states[run.key], of_runs.get(run.key, ()), known) for run in listed]

    def _result_answers(self, connection: Connection, run: Any, found: Iterable[Any]) -> list[schemas.Result]:
        state = self._state(connection, run)
        running = results.running(connection, run.key)
        return [answers.result_answer(row, state, row.case_key in running) for row in found]


def sorted_by(results: Iterable[schemas.Result], sort: Sort, descending: bool = False) -> list[schemas.Result]:
    """Return results in order, those without a value last, ties in the order of the plan."""

    def value(result: schemas.Result) -> Any:
        found = getattr(result, sort.value)
        return found.value if isinstance(found, schemas.Estimate) else found

    planned = sorted(results, key=lambda result: result.position)
    present = [result for result in planned if value(result) is not None]
    present.sort(key=value, reverse=descending)
    return present + [result for result in planned if value(result) is None]
