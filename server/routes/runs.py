"""Runs, one run, its planned cases with their results, its summaries."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request, Response

from server import schemas, tabular
from server.reading.cursor import MOST
from server.reading.errors import BadQuestion
from server.reading.filters import ResultFilter, RunFilter
from server.reading.results import Sort
from server.routes import forms
from server.routes import reading_examples as examples
from server.routes.asked import Asked, Cursor, Limit, RunName, exact, result_filter, run_filter
from server.routes.forms import CSV, PARQUET, Form
from server.routes.problems import responses

router = APIRouter(prefix="/api/v1/runs", tags=["runs"], dependencies=[Depends(exact)])

Summaries = Annotated[bool, Query(description="Each run with its summaries per suite and configuration.")]
Offset = Annotated[
    int, Query(ge=0, le=1_000_000_000, deprecated=True, description="Rows to leave out; the cursor is faster.")
]
Sorted = Annotated[Sort, Query(description="Missing values come last in both directions.")]


@router.get("", summary="Runs, newest first", responses=responses(example=examples.RUNS))
def runs(
    asked: Asked,
    request: Request,
    response: Response,
    wanted: Annotated[RunFilter, Depends(run_filter)],
    summaries: Summaries = False,
    limit: Limit = 50,
    cursor: Cursor = None,
    offset: Offset = 0,
) -> list[schemas.Run]:
    """Runs that fit all filters, with their counts. The Link header says where the list goes on.

    A filter may be given several times: any of its values will do.
    """
    if offset:
        if cursor is not None or wanted != RunFilter():
            raise BadQuestion("query.offset: it is for plain lists. Go on with the cursor in the Link header instead.")
        return asked.runs(limit, offset, None if summaries else 0)
    page = asked.run_page(wanted, limit, cursor, summaries)
    forms.link(request, response, page)
    return list(page.items)


@router.get("/{run}", summary="One run", responses=responses(404, example=examples.RUN))
def run(asked: Asked, run: RunName) -> schemas.RunDetail:
    """One run by its id, a unique prefix of it, or `latest`; with what is in hand while it goes on."""
    return asked.run(run)


@router.get(
    "/{run}/results",
    summary="A run's cases and their results",
    response_model=list[schemas.Result],
    responses=responses(404, 501, example=examples.RESULTS, forms=(CSV, PARQUET)),
)
def results(
    asked: Asked,
    request: Request,
    response: Response,
    run: RunName,
    wanted: Annotated[ResultFilter, Depends(result_filter)],
    sort: Sorted = Sort.PLAN,
    descending: Annotated[bool, Query(description="The largest first.")] = False,
    limit: Annotated[int | None, Query(ge=1, le=MOST, description="Rows of a page; none: all of the run.")] = None,
    cursor: Cursor = None,
    form: forms.Asked = Form.JSON,
) -> Any:
    """Planned cases of a run that fit all filters, each with its newest result, in the order of `sort`.

    Where there is no result yet, or none was wanted, `status` says so and the figures are null.
    """
    page = asked.result_page(run, wanted, sort, descending, limit, cursor)
    forms.link(request, response, page)
    if form == Form.JSON:
        return page.items
    return forms.table(form, "results", RESULT_COLUMNS, flat(page.items), response)


@router.get("/{run}/summary", summary="A run's summaries", responses=responses(404, example=examples.SUMMARIES))
def summary(asked: Asked, run: RunName) -> list[schemas.Summary]:
    """How a run's cases ended, per suite and configuration, in the order of its plan."""
    return asked.summaries(run)


RESULT_COLUMNS = tabular.columns_of(schemas.Result)


def flat(results: Iterable[schemas.Result]) -> Iterator[dict[str, Any]]:
    """Yield results as rows of `RESULT_COLUMNS`: an estimate's parts are columns of their own."""
    for result in results:
        yield dict(result) | tabular.parts("speedup", result.speedup)
