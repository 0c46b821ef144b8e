"""What changes over time: series of cases, trends of summaries, and which filters have data."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request, Response

from server import schemas_series as schemas
from server.reading.errors import BadQuestion
from server.reading.filters import SeriesFilter, Span
from server.reading.series import Wanted
from server.routes import forms
from server.routes import reading_examples as examples
from server.routes.asked import Asked, Cursor, Points, exact, series_filter, span, summary_filter
from server.routes.forms import CSV, PARQUET, Form
from server.routes.problems import responses
from server.schemas_series import Figure

router = APIRouter(prefix="/api/v1", tags=["series"], dependencies=[Depends(exact)])

MOST_POINTS = 100_000
"""Points of one answer: some ten megabytes."""

Limit = Annotated[int, Query(ge=1, le=200, description="Series of a page; it may hold fewer.")]
Metrics = Annotated[list[Figure], Query(min_length=1, max_length=len(Figure), description="What of each series.")]


@router.get(
    "/series",
    summary="Cases over time",
    response_model=list[schemas.Series],
    responses=responses(501, example=examples.SERIES, forms=(CSV, PARQUET)),
)
def series(
    asked: Asked,
    request: Request,
    response: Response,
    wanted: Annotated[SeriesFilter, Depends(series_filter)],
    of: Annotated[Span, Depends(span)],
    metric: Metrics = [Figure.SPEEDUP],  # noqa: B006 - FastAPI copies it
    points: Points = 500,
    limit: Limit = 50,
    cursor: Cursor = None,
    form: forms.Asked = Form.JSON,
) -> Any:
    """Series that fit all filters, each with its points: columns of equal length, oldest first.

    A series is one case on one class of machine, from one source and branch. A night that failed is a point without a
    value. Times that are not valid are null. Where there are more points than `points`, of every stretch the lowest,
    the highest and the first failure stay, and the first and the last of all.
    """
    metrics = tuple(dict.fromkeys(metric))
    _bounded(limit * len(metrics), points)
    page = asked.series(wanted, Wanted(metrics, of, points), limit, cursor)
    forms.link(request, response, page)
    if form == Form.JSON:
        return page.items
    return forms.table(form, "series", POINT_COLUMNS, flat(page.items), response)


@router.get("/summary", summary="Suites over time", responses=responses(example=examples.TRENDS))
def trends(
    asked: Asked,
    request: Request,
    response: Response,
    wanted: Annotated[SeriesFilter, Depends(summary_filter)],
    of: Annotated[Span, Depends(span)],
    points: Points = 500,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> list[schemas.Trend]:
    """Pass counts, geometric mean speedup, compile time and memory per suite and configuration, a run a point.

    Columns of equal length, oldest first; thinned by speedup as series are. A filter by model leaves what has it.
    """
    _bounded(limit, points)
    page = asked.trends(wanted, of, points, limit, cursor)
    forms.link(request, response, page)
    return list(page.items)


@router.get("/facets", summary="Which filters have data", responses=responses(example=examples.FACETS))
def facets(asked: Asked, wanted: Annotated[SeriesFilter, Depends(series_filter)]) -> schemas.Facets:
    """For each filter the values that series have under all the other filters, with how many series."""
    return asked.facets(wanted)


def _bounded(lists: int, points: int) -> None:
    if lists * points > MOST_POINTS:
        raise BadQuestion(
            f"query.points: {lists} lists of {points} points are more than {MOST_POINTS:,} in one answer. Ask for "
            "fewer points, or for fewer series with limit, and go on with the cursor."
        )


_NAMES = ("case_id", "suite", "model", "batch_size", "label", "device", "mode", "precision", "backend", "hard")
_LISTS = ("at", "value", "low", "high", "outcome", "run")
POINT_COLUMNS: dict[str, type] = {
    "series": int,
    **{name: int if name == "batch_size" else str for name in _NAMES},
    "source": str,
    "branch": str,
    "metric": str,
    **dict(zip(_LISTS, (datetime, float, float, float, str, str), strict=True)),
}


def flat(found: Iterable[schemas.Series]) -> Iterator[dict[str, Any]]:
    """Yield the points of series as rows of `POINT_COLUMNS`."""
    for each in found:
        names = {name: getattr(each, name) for name in (*_NAMES, "source", "branch")} | {"series": each.id}
        for points in each.points:
            for row in zip(*[getattr(points, name) for name in _LISTS], strict=True):
                yield names | {"metric": points.metric} | dict(zip(_LISTS, row, strict=True))
