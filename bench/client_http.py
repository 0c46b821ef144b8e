"""A server's answers as rows, as `server.analysis` gives them of a database."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

import httpx2

from harness.errors import BenchError
from server.analysis import (
    CASE_FILTERS,
    RESULT_COLUMNS,
    RUN_COLUMNS,
    RUN_FILTERS,
    RUN_ORIGIN,
    SERIES_FILTERS,
    TIMED,
    Asked,
    Kind,
    series_columns,
)
from server.settings import secret

Question = list[tuple[str, str | int | float | bool | None]]
"""Parameters of an address; a name may come several times."""

TIMEOUT = httpx2.Timeout(60, connect=10)
PAGE = 500
"""Rows of a page; the most that the server gives."""
SERIES = 20
POINTS = 5000
"""Series of a page and points of a series: the most of both that the server gives at once."""


class Server:
    """Asks a server page by page, until there is no further one."""

    def __init__(self, address: str, token: str | None = None, transport: httpx2.BaseTransport | None = None) -> None:
        """Args: `token`: default `BENCH_TOKEN` or the content of `BENCH_TOKEN_FILE`."""
        token = token or secret("BENCH_TOKEN")
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._address = address.rstrip("/")
        self._client = httpx2.Client(base_url=self._address, headers=headers, timeout=TIMEOUT, transport=transport)

    def runs(self, asked: Asked) -> Iterator[tuple[Any, ...]]:
        for run in self._runs(asked, RUN_FILTERS):
            yield _row(run | {"run_id": run["id"]}, RUN_COLUMNS)

    def results(self, asked: Asked) -> Iterator[tuple[Any, ...]]:
        """Yield the results of each run that fits, the oldest run first."""
        for run in reversed([*self._runs(asked, RUN_ORIGIN)]):
            about = {"run_id": run["id"], "run_started_at": run["started_at"]}
            for result in self._list(f"/api/v1/runs/{run['id']}/results", _words(asked, CASE_FILTERS)):
                estimate = result["speedup"] or {}
                figures = {
                    "speedup": estimate.get("value"),
                    **{f"speedup_{part}": estimate.get(part) for part in ("low", "high", "n")},
                }
                none = {"emulated": None} if result["record_id"] is None else {}
                yield _row(result | figures | about | none, RESULT_COLUMNS)

    def series(self, metric: str, asked: Asked) -> Iterator[tuple[Any, ...]]:
        columns = series_columns(metric)
        question = _words(asked, (*CASE_FILTERS, *SERIES_FILTERS)) + _span(asked)
        question += [("metric", metric), ("points", str(POINTS))]
        for series in self._list("/api/v1/series", question, SERIES):
            (points,) = series["points"]
            if points["thinned"]:
                warnings.warn(
                    f"series {series['id']} has {points['total']} points, of which the server gives a part. "
                    "Ask for a shorter time with since and until.",
                    stacklevel=4,
                )
            parts = {"at": "at", metric: "value", "outcome": "outcome", "run_id": "run"}
            parts |= {f"{metric}_low": "low", f"{metric}_high": "high"} if metric in TIMED else {}
            for values in zip(*[points[part] for part in parts.values()], strict=True):
                yield _row(series | {"series": series["id"]} | dict(zip(parts, values, strict=True)), columns)

    def samples(self, record_id: str) -> Iterator[tuple[Any, ...]]:
        found, _ = self._get(f"/api/v1/records/{record_id}/samples", [])
        pairs = zip(found["eager_s"], found["compiled_s"], found["eager_first"], strict=True)
        if not found["eager_s"]:
            raise BenchError(f"Record {record_id} has no samples: nothing was timed, or they were pruned.")
        yield from ((number, *pair) for number, pair in enumerate(pairs))

    def _runs(self, asked: Asked, filters: tuple[str, ...]) -> Iterator[dict[str, Any]]:
        if asked.run:
            for name in asked.run:
                yield self._get(f"/api/v1/runs/{name}", [])[0]
            return
        question = [*_words(asked, filters), *_span(asked)]
        yield from self._list("/api/v1/runs", question)

    def _list(self, path: str, question: Question, limit: int = PAGE) -> Iterator[dict[str, Any]]:
        found, following = self._get(path, [*question, ("limit", str(limit))])
        yield from found
        while following is not None:
            found, following = self._get(following, [])
            yield from found

    def _get(self, path: str, question: Question) -> tuple[Any, str | None]:
        """Return an answer, and where it goes on.

        Raises:
            BenchError: the server cannot be reached, or does not answer the question; with what it said.
        """
        try:
            answer = self._client.get(path, params=question or None)
            values = answer.json() if answer.is_success else None
        except httpx2.RequestError as error:
            raise BenchError(f"{self._address}: {error}. Check the address, and that the server runs.") from error
        except ValueError:
            raise BenchError(f"{self._address}{path}: the answer is no JSON. Is this a server of bench?") from None
        if not answer.is_success:
            raise BenchError(f"{self._address}{path}: {answer.status_code}, {_said(answer)}")
        following = answer.links.get("next", {}).get("url")
        return values, following


def _said(answer: httpx2.Response) -> str:
    if answer.status_code in (401, 403):
        return "the server wants a token: connect(address, token=...), or set BENCH_TOKEN."
    try:
        detail = answer.json()["detail"]
    except (ValueError, KeyError, TypeError):
        return f"{answer.reason_phrase}. Is this a server of bench?"
    return detail if isinstance(detail, str) else str(detail)


def _words(asked: Asked, names: tuple[str, ...]) -> Question:
    return [(name, word) for name in names for word in (asked.words or {}).get(name, ())]


def _span(asked: Asked) -> Question:
    ends = {"since": asked.since, "until": asked.until}
    return [(name, moment.isoformat()) for name, moment in ends.items() if moment is not None]


def _row(values: Mapping[str, Any], columns: Mapping[str, Kind]) -> tuple[Any, ...]:
    """Return the values of the columns; moments are moments again."""
    return tuple(
        datetime.fromisoformat(values[name]) if kind == Kind.MOMENT and values[name] is not None else values[name]
        for name, kind in columns.items()
    )
