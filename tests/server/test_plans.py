"""How the database finds what is asked for: never by going through all results."""

from __future__ import annotations

import re
from datetime import UTC, datetime

import pytest
from sqlalchemy import event, text

from harness.record import Flag, Measure
from server.queries import Queries, Sort
from server.reading.filters import CaseFilter, ResultFilter, RunFilter, SeriesFilter, Span
from server.reading.series import Wanted
from server.schemas import Status
from server.schemas_series import Figure
from tests.server import library

LARGE = ("result", "planned", "samples", "detail", "progress")
"""Tables that have as many rows as there are results, or may."""

SINCE = Span(datetime(2026, 8, 13, tzinfo=UTC), datetime(2026, 8, 15, tzinfo=UTC))
CASES = CaseFilter(suite=("timm",), model=("res*", "mlp"), mode=("inference",), preset=("full",))
OF_SERIES = SeriesFilter(CASES, branch=("main", ""), source=("",), hard=(library.HARD,), status=("pass",))
QUESTIONS = {
    "count": lambda q: q.count(),
    "runs": lambda q: q.runs(),
    "runs of few means": lambda q: q.runs(summaries=1),
    "run_page": lambda q: q.run_page(RunFilter(suite=("timm",), host=("bench-1",), commit=("c1",), span=SINCE)),
    "run": lambda q: q.run(library.run_id(0)),
    "looks": lambda q: q.looks("latest", (Flag.INSENSITIVE,), 10),
    "summaries": lambda q: q.summaries("latest"),
    "pulse": lambda q: q.pulse("latest"),
    "results": lambda q: q.results(library.run_id(0)[:9]),
    "result_page": lambda q: q.result_page(
        "latest", ResultFilter(CASES, (Status.PASS,), (Flag.EMULATED,), "x"), Sort.SPEEDUP, True, 2
    ),
    "durations": lambda q: q.durations("cpu", "inductor", Measure.ALL),
    "series": lambda q: q.series(OF_SERIES, Wanted((Figure.SPEEDUP, Figure.EAGER_PEAK), SINCE, 5), 2),
    "series of all time": lambda q: q.series(SeriesFilter(), Wanted()),
    "trends": lambda q: q.trends(OF_SERIES, SINCE),
    "facets": lambda q: q.facets(OF_SERIES),
    "compare": lambda q: q.compare(library.run_id(0), library.run_id(1)),
    "record": lambda q: q.record(_record(q)),
    "samples": lambda q: q.samples(_record(q)),
    "log": lambda q: q.log(_record(q)),
}


def _record(queries):
    return next(each.record_id for each in queries.results(library.run_id(0)))


@pytest.fixture
def engine(api):
    return api.app.state.queries._engine


def plans(engine, ask) -> list[tuple[str, str]]:
    """Return each statement of a question with its plan."""
    asked: list[tuple[str, object]] = []

    def note(connection, cursor, statement, parameters, context, executemany):
        asked.append((statement, parameters))

    event.listen(engine, "before_cursor_execute", note)
    ask(Queries(engine))
    event.remove(engine, "before_cursor_execute", note)
    explain = "EXPLAIN QUERY PLAN " if engine.dialect.name == "sqlite" else "EXPLAIN "
    with engine.connect() as connection:
        if engine.dialect.name == "postgresql":
            # With a handful of rows it would go through them all: forbidden, it shows whether it has to.
            connection.execute(text("SET LOCAL enable_seqscan = off"))
        found = [
            (
                statement,
                "\n".join(str(tuple(row)) for row in connection.exec_driver_sql(explain + statement, parameters)),
            )
            for statement, parameters in asked
            if statement.lstrip().upper().startswith(("SELECT", "WITH"))
        ]
    return found


@pytest.mark.parametrize("question", QUESTIONS)
def test_no_question_goes_through_all_results(engine, question):
    """Each statement of each question finds rows of the large tables by a key or an index."""
    found = plans(engine, QUESTIONS[question])

    assert found
    for statement, plan in found:
        for table in LARGE:
            scan = rf"\bSCAN {table}\b(?! USING COVERING)|Seq Scan on {table}\b"
            assert not re.search(scan, plan), f"{statement}\n{plan}"


def test_plan_of_a_scan_is_seen(engine):
    """A statement that does go through all results is told apart."""
    ((_, plan),) = plans(engine, _scan)

    assert re.search(r"\bSCAN result\b|Seq Scan on result\b", plan)


def _scan(queries):
    with queries._read() as connection:
        connection.execute(text("SELECT count(*) FROM result WHERE eager_s > 0.5"))
