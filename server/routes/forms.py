"""A list in the form that was asked for, and where it goes on: `Link: <address>; rel="next"`, for every list."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Annotated, Any
from urllib.parse import quote, urlencode

from fastapi import Query, Request, Response
from fastapi.responses import StreamingResponse

from server import tabular
from server.reading.cursor import Page

TEXT = "text/plain"
CSV = "text/csv"
PARQUET = "application/vnd.apache.parquet"


class Form(StrEnum):
    """In which form a list comes."""

    JSON = "json"
    CSV = "csv"
    PARQUET = "parquet"


class Plain(StrEnum):
    """The same, of what is too small for Parquet."""

    JSON = "json"
    CSV = "csv"


Asked = Annotated[Form, Query(alias="format", description="CSV and Parquet have one row for each result or point.")]


def link(request: Request, response: Response, page: Page[Any]) -> None:
    """Say where a list goes on, if it does."""
    if page.next is not None:
        asked = [
            (name, value) for name, value in request.query_params.multi_items() if name not in ("cursor", "offset")
        ]
        query = urlencode([*asked, ("cursor", page.next)])
        response.headers["Link"] = f'<{quote(request.url.path)}?{query}>; rel="next"'


def table(
    form: Form, name: str, columns: Mapping[str, type], rows: Iterable[Mapping[str, Any]], response: Response
) -> Response:
    """Return a file of rows, with the headers of `response`.

    Raises:
        NotInstalled: Parquet was asked for, and pyarrow is not there.
    """
    headers = dict(response.headers) | {"Content-Disposition": f'attachment; filename="{name}.{form}"'}
    headers.pop("content-length", None)
    if form == Form.PARQUET:
        return Response(tabular.parquet(columns, rows), media_type=PARQUET, headers=headers)
    return StreamingResponse(tabular.csv_lines(columns, rows), media_type=CSV, headers=headers)
