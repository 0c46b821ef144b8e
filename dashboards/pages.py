"""One function per page. Numbers come from `server.queries`; here they are arranged and put into words."""

from __future__ import annotations

from collections.abc import Iterable
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
from server.queries import LATEST, Queries, Sort
from server.reading.filters import ResultFilter
from server.schemas import RunState, Status

router = APIRouter(include_in_schema=False, default_response_class=HTMLResponse)

Asked = Annotated[Queries, Depends(queries)]

PLOTLY_FILE = f"plotly-{version('plotly')}.min.js"
"""Its version stands in the name, so that a browser may keep it for ever."""

FEW = 10
"""Most rows under "needs a look"."""

RUNS_PER_PAGE = 50

ROWS = 200
"""Most rows of results on a page. A run that has more shows one configuration at a time."""

EVERY = "all"
"""In an address, in place of a configuration's id."""

FEW_MEANS = 4
"""Summaries that a run in the list of runs shows; one that has more shows them on its own page."""

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
    address: str
    """Of its run's page, with its row on it."""


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
    total, looks = asked.looks(run.id, marks.GRAVE, FEW)
    context: dict[str, Any] = {
        "run": run,
        "pulse": pulse,
        "looks": [Look(result, why(result), _address(run, _only(run, result))) for result in looks],
        "more": total - len(looks),
        "whiskers": figures.whiskers([summary.speedup for summary in run.summaries]),
    }
    return page(_template("overview", part, seen, pulse), **context)


@router.get("/runs")
def runs(asked: Asked, page_number: Annotated[int, Query(alias="page", ge=1, le=1_000_000)] = 1) -> HTMLResponse:
    """All runs, newest first."""
    found = asked.runs(RUNS_PER_PAGE + 1, (page_number - 1) * RUNS_PER_PAGE, FEW_MEANS)
    if not found and page_number == 1:
        return page("empty.html")
    return page("runs.html", runs=found[:RUNS_PER_PAGE], page=page_number, more=len(found) > RUNS_PER_PAGE)


@router.get("/runs/{name}")
def run(
    asked: Asked, name: str, sort: str = "", only: str = "", after: str = "", part: str = "", seen: str = ""
) -> Response:
    """One run: its counts, its charts, its failures, its planned models: of a large run one configuration's."""
    pulse = asked.pulse(name)
    if seen == pulse:
        return Response(status_code=204)
    found = asked.run(name)
    template = _template("run", part, seen, pulse)
    if template == "_run_head.html":
        return page(template, run=found, pulse=pulse)
    order, descending = _order(sort)
    chosen = _chosen(found, only)
    wanted = ResultFilter(configuration=chosen)
    results = asked.result_page(found.id, wanted, order, descending, ROWS, after or None)
    whole = results.next is None and not after
    context: dict[str, Any] = {
        "run": found,
        "pulse": pulse,
        "charts": list(charts(found, results.items)) if whole else [],
        "results": results.items,
        "next": results.next,
        "first": not after,
        "suites": len({summary.suite for summary in found.summaries}),
        "hidden": found.planned - sum(s.planned for s in found.summaries if chosen in ("", s.configuration_id)),
        "columns": COLUMNS,
        "order": order,
        "descending": descending,
        "chosen": chosen,
        "every": "" if found.planned <= ROWS else EVERY,
        "plotly": f"/static/{PLOTLY_FILE}",
        "address": lambda **changes: _address(found, {"sort": sort, "only": only} | changes),
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


def why(result: schemas.Result) -> str:
    """Return why somebody should look at a result: it failed, never ran, proves little, or is slower compiled."""
    if result.status == Status.MISSING:
        return "never ran"
    if marks.failed(result.status):
        return result.text or "no cause was given"
    grave = ", ".join(marks.FLAGS[flag] for flag in result.flags if flag in marks.GRAVE)
    slow = result.speedup is not None and result.valid and words.verdict(result.speedup) == "slower"
    slower = f"compiled is slower: {words.interval(result.speedup)}" if slow and result.speedup else ""
    return "; ".join(filter(None, (grave and f"passed, but {grave}", slower)))


def charts(run: schemas.Run, results: Iterable[schemas.Result]) -> Iterable[Chart]:
    """Yield one chart per suite and configuration that is among the results, its models in the order of the plan."""
    groups: dict[tuple[str, str], list[schemas.Result]] = {}
    for result in sorted(results, key=lambda result: result.position):
        groups.setdefault((result.suite, result.configuration_id), []).append(result)
    for number, summary in enumerate(run.summaries):
        shown = groups.get((summary.suite, summary.configuration_id))
        if shown is None:
            continue
        figure = figures.speedups(shown, summary)
        title = f"{summary.suite}, {summary.label}"
        yield Chart(f"chart-{number}", title, figures.sentence(shown, summary), figure)


def _template(name: str, part: str, seen: str, pulse: str) -> str:
    """Return the whole page, or with `?part=live` what its script asks for: its head alone where no row changed."""
    if part != "live":
        return f"{name}.html"
    return f"_{name}_head.html" if seen.partition("/")[0] == pulse.partition("/")[0] else f"_{name}_live.html"


def _order(sort: str) -> tuple[Sort, bool]:
    name = sort.removeprefix("-")
    known = Sort(name) if name in set(Sort) else Sort.PLAN
    return known, sort.startswith("-")


def _chosen(run: schemas.Run, only: str) -> str:
    """Return the configuration whose rows are shown; empty: all of them."""
    if only == EVERY or (not only and run.planned <= ROWS):
        return ""
    return only or next((summary.configuration_id for summary in run.summaries), "")


def _only(run: schemas.Run, result: schemas.Result) -> dict[str, str]:
    """Return what an address must say for a result's row to be on the page."""
    return {} if run.planned <= ROWS else {"only": result.configuration_id}


def _address(run: schemas.Run, values: dict[str, str]) -> str:
    """Return a run's address; defaults are left out."""
    query = urlencode({name: value for name, value in values.items() if value})
    return f"/runs/{run.id}" + (f"?{query}" if query else "")
