"""All runs, newest first."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query
from fastapi.responses import HTMLResponse

from dashboards.frame import Framed
from dashboards.rendering import Asked, new_router, page

router = new_router()

RUNS_PER_PAGE = 50

FEW_MEANS = 4
"""Summaries that a run in the list shows; one that has more shows them on its own page."""


@router.get("/runs")
def runs(
    asked: Asked, frame: Framed, page_number: Annotated[int, Query(alias="page", ge=1, le=1_000_000)] = 1
) -> HTMLResponse:
    found = asked.runs(RUNS_PER_PAGE + 1, (page_number - 1) * RUNS_PER_PAGE, FEW_MEANS)
    if not found and page_number == 1:
        return page("empty.html", frame)
    more = len(found) > RUNS_PER_PAGE
    return page("runs.html", frame, runs=found[:RUNS_PER_PAGE], page=page_number, more=more)
