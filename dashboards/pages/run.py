"""One run: its counts, its charts, its failures, its planned models; of a large run one configuration's."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from fastapi import Response

from dashboards import figures
from dashboards.frame import Framed, options_of
from dashboards.rendering import Asked, Chart, new_router, page, part_of
from server import schemas
from server.queries import Sort
from server.reading.filters import ResultFilter

router = new_router()

ROWS = 200
"""Most rows of results on a page. A run that has more shows one configuration at a time."""

EVERY = "all"
"""In an address, in place of a configuration's id."""


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


@router.get("/runs/{name}")
def run(
    asked: Asked,
    frame: Framed,
    name: str,
    sort: str = "",
    only: str = "",
    after: str = "",
    part: str = "",
    seen: str = "",
) -> Response:
    pulse = asked.pulse(name)
    if seen == pulse:
        return Response(status_code=204)
    found = asked.run(name)
    frame = frame.at(f"/runs/{found.id}")
    template = part_of("run", part, seen, pulse)
    if template == "_run_head.html":
        return page(template, frame, run=found, pulse=pulse)
    order, descending = _order(sort)
    fitting = [summary for summary in found.summaries if frame.chips.fit(summary)]
    chosen = _chosen(fitting, only)
    wanted = ResultFilter(frame.chips.cases(), configuration=chosen)
    results = asked.result_page(found.id, wanted, order, descending, ROWS, after or None)
    whole = results.next is None and not after
    shown = sum(summary.planned for summary in fitting if chosen in ("", summary.configuration_id))
    return page(
        template,
        frame,
        run=found,
        pulse=pulse,
        choices=frame.choices(options_of(found.summaries)),
        summaries=fitting,
        charts=list(charts(fitting, results.items)) if whole else [],
        results=results.items,
        next=results.next,
        first=not after,
        suites=len({summary.suite for summary in found.summaries}),
        hidden=found.planned - shown,
        columns=COLUMNS,
        order=order,
        descending=descending,
        chosen=chosen,
        every="" if _planned(fitting) <= ROWS else EVERY,
        everything=frame.without_chips().address(only="" if found.planned <= ROWS else EVERY),
    )


def charts(summaries: Iterable[schemas.Summary], results: Iterable[schemas.Result]) -> Iterator[Chart]:
    """Yield one chart per suite and configuration that is among the results, its models in the order of the plan."""
    groups: dict[tuple[str, str], list[schemas.Result]] = {}
    for result in sorted(results, key=lambda result: result.position):
        groups.setdefault((result.suite, result.configuration_id), []).append(result)
    for number, summary in enumerate(summaries):
        shown = groups.get((summary.suite, summary.configuration_id))
        if shown is not None:
            title = f"{summary.suite}, {summary.label}"
            figure = figures.speedups(shown, summary)
            yield Chart(f"chart-{number}", title, figures.sentence(shown, summary), figure)


def _order(sort: str) -> tuple[Sort, bool]:
    name = sort.removeprefix("-")
    known = Sort(name) if name in set(Sort) else Sort.PLAN
    return known, sort.startswith("-")


def _chosen(summaries: list[schemas.Summary], only: str) -> str:
    """Return the configuration whose rows are shown; empty: all of them."""
    if only == EVERY or (not only and _planned(summaries) <= ROWS):
        return ""
    return only or summaries[0].configuration_id


def _planned(summaries: Iterable[schemas.Summary]) -> int:
    return sum(summary.planned for summary in summaries)
