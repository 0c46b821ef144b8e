"""One function per page. Numbers come from `server.queries`; here they are arranged and put into words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.responses import HTMLResponse
from jinja2 import Environment, PackageLoader, StrictUndefined

from dashboards import figures, marks, words
from harness.record import now
from server import schemas
from server.app import queries
from server.queries import LATEST, Queries, Sort, sorted_by
from server.schemas import RunState, Status

router = APIRouter(include_in_schema=False, default_response_class=HTMLResponse)

Asked = Annotated[Queries, Depends(queries)]

PLOTLY_FILE = f"plotly-{version('plotly')}.min.js"
"""Its version stands in the name, so that a browser may keep it for ever."""

FEW = 10
"""Most rows under "needs a look"."""

RUNS_PER_PAGE = 50

_templates = Environment(
    loader=PackageLoader("dashboards"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_templates.globals |= {"words": words, "marks": marks, "Status": Status, "RunState": RunState}


@dataclass(frozen=True)
class Look:
    """A result that somebody should look at, and why."""

    result: schemas.Result
    why: str


@dataclass(frozen=True)
class Chart:
    """A figure as JSON values, with its name and what it shows in a sentence."""

    id: str
    title: str
    sentence: str
    figure: dict[str, Any]


@dataclass(frozen=True)
class Column:
    """A sortable column of the table of results."""

    sort: Sort
    title: str
    term: str
    """Its anchor on the page of methods."""
    unit: str = ""
    largest_first: bool = False


COLUMNS = (
    Column(Sort.MODEL, "Model", "case"),
    Column(Sort.STATUS, "Outcome", "outcome"),
    Column(Sort.SPEEDUP, "Speedup", "speedup", largest_first=True),
    Column(Sort.EAGER, "Eager", "times", "ms"),
    Column(Sort.COMPILED, "Compiled", "times", "ms"),
    Column(Sort.COMPILE, "Compile", "compile", "s", largest_first=True),
    Column(Sort.BREAKS, "Graph", "graph-breaks", "breaks", largest_first=True),
    Column(Sort.MEMORY, "Memory", "memory", "ratio", largest_first=True),
    Column(Sort.BREAK_EVEN, "Break-even", "break-even", "steps"),
)


@router.get("/")
def overview(asked: Asked, part: str = "", seen: str = "") -> Response:
    """Is the latest run all right?"""
    if not asked.count():
        return page("empty.html")
    pulse = asked.pulse(LATEST)
    if seen == pulse:
        return Response(status_code=204)
    run = asked.run()
    looks = needs_a_look(asked.results(run.id))
    context: dict[str, Any] = {
        "run": run,
        "pulse": pulse,
        "looks": looks[:FEW],
        "more": max(0, len(looks) - FEW),
        "whiskers": figures.whiskers([summary.speedup for summary in run.summaries]),
    }
    return page(_template("overview", part, seen, pulse), **context)


@router.get("/runs")
def runs(asked: Asked, page_number: Annotated[int, Query(alias="page", ge=1, le=1_000_000)] = 1) -> HTMLResponse:
    """All runs, newest first."""
    found = asked.runs(RUNS_PER_PAGE + 1, (page_number - 1) * RUNS_PER_PAGE)
    if not found and page_number == 1:
        return page("empty.html")
    return page("runs.html", runs=found[:RUNS_PER_PAGE], page=page_number, more=len(found) > RUNS_PER_PAGE)


@router.get("/runs/{name}")
def run(asked: Asked, name: str, sort: str = "", only: str = "", part: str = "", seen: str = "") -> Response:
    """One run: its counts, its charts, its failures, every planned model."""
    pulse = asked.pulse(name)
    if seen == pulse:
        return Response(status_code=204)
    found = asked.run(name)
    template = _template("run", part, seen, pulse)
    if template == "_run_head.html":
        return page(template, run=found, pulse=pulse)
    results = asked.results(found.id)
    order, descending = _order(sort)
    shown = [r for r in results if only in ("", r.configuration_id)]
    context: dict[str, Any] = {
        "run": found,
        "pulse": pulse,
        "charts": list(charts(found, results)),
        "results": sorted_by(shown, order, descending),
        "suites": len({summary.suite for summary in found.summaries}),
        "hidden": len(results) - len(shown),
        "columns": COLUMNS,
        "order": order,
        "descending": descending,
        "only": only,
        "plotly": f"/static/{PLOTLY_FILE}",
        "address": lambda **changes: _address(found.id, {"sort": sort, "only": only} | changes),
    }
    return page(template, **context)


@router.get("/methods")
def methods() -> HTMLResponse:
    """What each number means."""
    return page("methods.html")


def page(template: str, status: int = 200, **context: Any) -> HTMLResponse:
    """Return a page; `now` is the moment at which it was made."""
    return HTMLResponse(_templates.get_template(template).render(now=now(), **context), status)


def error_page(request: Request, status: int, text: str) -> HTMLResponse:
    """Return a page that says what was looked for and what to do."""
    return page("error.html", status, path=request.url.path, text=text)


def needs_a_look(results: Sequence[schemas.Result]) -> list[Look]:
    """Return what failed, what is missing, passes that prove little, and slower models, in this order."""
    failed = [
        Look(result, result.text or "no cause was given")
        for result in results
        if marks.failed(result.status) and result.status != Status.MISSING
    ]
    missing = [Look(result, "never ran") for result in results if result.status == Status.MISSING]
    doubtful = [Look(r, why) for r in results if r.status == Status.PASS for why in _doubts(r)]
    slower = [
        Look(result, f"compiled is slower: {words.interval(result.speedup)}")
        for result in sorted_by(results, Sort.SPEEDUP)
        if result.speedup and result.valid and words.verdict(result.speedup) == "slower"
    ]
    return failed + missing + doubtful + slower


def charts(run: schemas.Run, results: Iterable[schemas.Result]) -> Iterable[Chart]:
    """Yield one chart per suite and configuration, its models in the order of the plan."""
    found = list(results)
    for number, summary in enumerate(run.summaries):
        key = (summary.suite, summary.configuration_id)
        shown = [result for result in found if (result.suite, result.configuration_id) == key]
        figure = figures.speedups(shown, summary)
        title = f"{summary.suite}, {summary.label}"
        yield Chart(f"chart-{number}", title, figures.sentence(shown, summary), figure.to_plotly_json())


def _doubts(result: schemas.Result) -> Iterable[str]:
    grave = [flag for flag in result.flags if flag in marks.GRAVE]
    if grave:
        yield "passed, but " + ", ".join(marks.FLAGS[flag] for flag in grave)


def _template(name: str, part: str, seen: str, pulse: str) -> str:
    """Return the whole page, or with `?part=live` what its script asks for: its head alone where no row changed."""
    if part != "live":
        return f"{name}.html"
    return f"_{name}_head.html" if seen.partition("/")[0] == pulse.partition("/")[0] else f"_{name}_live.html"


def _order(sort: str) -> tuple[Sort, bool]:
    name = sort.removeprefix("-")
    known = Sort(name) if name in set(Sort) else Sort.PLAN
    return known, sort.startswith("-")


def _address(run_id: str, values: dict[str, str]) -> str:
    """Return a run's address; defaults are left out."""
    query = urlencode({name: value for name, value in values.items() if value})
    return f"/runs/{run_id}" + (f"?{query}" if query else "")
