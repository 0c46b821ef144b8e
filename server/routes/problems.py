"""Why there is no answer: each error with its status and a sentence, and where a route may give which."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse

from harness.errors import BenchError
from server.auth import Unauthorised
from server.reading.errors import BadQuestion, NotComparable, NotFound, NotInstalled
from server.rows import Conflict, Misfit, UnknownRun
from server.schemas import Answer

STATUS: dict[type[BenchError], int] = {
    Unauthorised: 401,
    NotFound: 404,
    UnknownRun: 404,
    NotComparable: 409,
    Conflict: 409,
    BadQuestion: 422,
    Misfit: 422,
    NotInstalled: 501,
}
"""The first that fits counts."""
BROKEN = 503
"""Of every other error: the database does not answer."""

Responses = dict[int | str, dict[str, Any]]


class Problem(Answer):
    """Why there is no answer, and what to do."""

    detail: str


class Refused(BenchError):
    """What was asked is not done: it is a matter of who asks, how often, or of what was sent, as its status says."""

    def __init__(self, status: int, text: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(text)
        self.status = status
        self.headers = dict(headers or {})


EVERYWHERE = (400, 401, 421, 429, 503)
"""What any request may be answered before its route is asked, or when the database is away."""

_REFUSALS = {
    400: "A token stands in the address.",
    401: "A token is needed, or the one given is not valid.",
    403: "The token does not open this.",
    404: "Nothing has that name.",
    409: "It contradicts what is stored.",
    413: "Too much at once.",
    415: "Not in a form that is taken.",
    421: "Asked under a name that this server does not answer to.",
    422: "Something in it is wrong; the sentence says where.",
    429: "Too many requests; Retry-After says when the next will be answered.",
    503: "The database, or a place for the listener, cannot be had now.",
}
_WORDS = {
    404: "There is no such run or record.",
    409: "Both sides are there, and cannot be compared.",
    422: "A parameter is unknown, or its value does not fit.",
    501: "The server lacks a library for this form.",
    503: "The database does not answer.",
}
_EXAMPLES = {
    404: "There is no run 'zz'. Ids may be shortened; `latest` is the newest.",
    409: "The sides are not of one machine and method: cpu AMD EPYC 7R13 -> Intel Xeon 8488C. Compare runs of one "
    "machine, or ask with across=true.",
    422: "query.limit: Input should be less than or equal to 500.",
    501: "format=parquet needs pyarrow, which this server does not have: `pip install compile-bench[export]`, or ask "
    "for csv.",
    503: "database sqlite:///bench.db: database disk image is malformed. The file is damaged: move it away and `bench "
    "import` the journals into a new one.",
}


def responses(*statuses: int, example: Any, form: str = "application/json", forms: tuple[str, ...] = ()) -> Responses:
    """Return what a route that reads may answer: 200, 304, 422, 503 and these.

    Args:
        example: of the answer in its plain form, `form`.
        forms: media types that it may have besides.
    """
    content: dict[str, Any] = {other: {"schema": {"type": "string"}} for other in forms}
    known: Responses = {
        200: {"content": {form: {"example": example}} | content},
        304: {"description": "Not changed since the answer whose ETag stands in If-None-Match."},
    }
    for status in sorted({*statuses, 422, BROKEN}):
        known[status] = {
            "model": Problem,
            "description": _WORDS[status],
            "content": {"application/json": {"example": {"detail": _EXAMPLES[status]}}},
        }
    return known


def refusals(*statuses: int) -> Responses:
    """Return what these statuses of a route that writes, or of any, mean."""
    return {status: {"model": Problem, "description": _REFUSALS[status]} for status in statuses}


def status_of(error: BenchError) -> int:
    """Return the HTTP status of an error."""
    if isinstance(error, Refused):
        return error.status
    return next((status for kind, status in STATUS.items() if isinstance(error, kind)), BROKEN)


def answer(error: BenchError) -> JSONResponse:
    """Return an error as JSON."""
    headers = error.headers if isinstance(error, Refused) else {}
    if isinstance(error, Unauthorised):
        headers = {"WWW-Authenticate": "Bearer"}
    return JSONResponse({"detail": str(error)}, status_of(error), headers)


def sentence(error: RequestValidationError) -> str:
    """Return where a request is wrong and what would be right: `query.limit: Input should be ...`."""
    first = error.errors()[0]
    return f"{'.'.join(str(part) for part in first['loc'])}: {first['msg']}."


def install(app: FastAPI) -> None:
    """Have an app answer errors with a sentence."""
    app.add_exception_handler(BenchError, _explain)
    app.add_exception_handler(RequestValidationError, _refuse)


async def _explain(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, BenchError)
    return answer(error)


async def _refuse(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    return JSONResponse({"detail": sentence(error)}, 422)
