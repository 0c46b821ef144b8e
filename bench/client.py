"""`bench.connect(...)`: results as pandas DataFrames, from a database or from a server.

Columns are typed whatever the rows hold: units in their names, absent is `<NA>`, moments are UTC, and what has few
values is a category. pandas comes with the extra `[analysis]`; nothing else of this project needs it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from harness.errors import BenchError, UsageError, close_to
from server.analysis import (
    CASE_FILTERS,
    METRICS,
    RESULT_COLUMNS,
    RUN_COLUMNS,
    RUN_FILTERS,
    RUN_ORIGIN,
    SAMPLE_COLUMNS,
    SERIES_FILTERS,
    Analysis,
    Asked,
    Kind,
    series_columns,
)

if TYPE_CHECKING:
    import pandas

Words = str | Sequence[str]
"""A word, or several of which any will do."""
Moment = datetime | str
"""A moment, or ISO 8601; UTC where it names no zone."""

DTYPES = {
    Kind.TEXT: "string",
    Kind.WORD: "category",
    Kind.WHOLE: "Int64",
    Kind.NUMBER: "Float64",
    Kind.FLAG: "boolean",
    Kind.MOMENT: "datetime64[us, UTC]",
}


class Source(Protocol):
    """Whoever knows rows: a database or a server."""

    def runs(self, asked: Asked) -> Iterator[tuple[Any, ...]]: ...

    def results(self, asked: Asked) -> Iterator[tuple[Any, ...]]: ...

    def series(self, metric: str, asked: Asked) -> Iterator[tuple[Any, ...]]: ...

    def samples(self, record_id: str) -> Iterator[tuple[Any, ...]]: ...


def connect(place: str | Path = "bench.db", token: str | None = None) -> Client:
    """Open a database (a URL, or the path of a SQLite file) or a server (its http or https address).

    Args:
        token: of the server; default: `BENCH_TOKEN`, or what the file holds that `BENCH_TOKEN_FILE` names.

    Raises:
        BenchError: pandas is missing, or the place cannot be opened.
    """
    try:
        import pandas  # noqa: F401 - said here rather than at the first question
    except ModuleNotFoundError:
        raise BenchError("bench.connect needs pandas: pip install 'compile-bench[analysis]'.") from None
    if re.match(r"https?://", str(place)):
        from bench.client_http import Server

        return Client(Server(str(place), token))
    from server import db

    url = str(place) if "://" in str(place) else f"sqlite:///{Path(place).expanduser()}"
    if not db.exists(url):
        raise BenchError(f"{place}: there is no such file. Name a database, its URL, or the address of a server.")
    return Client(Analysis(db.connect(url, may_upgrade=False)))


class Client:
    """Asks one database or server. Filters take a word or several of which any will do; an empty word: has none."""

    def __init__(self, source: Source) -> None:
        self._source = source

    def runs(self, *, since: Moment | None = None, until: Moment | None = None, **filters: Words) -> pandas.DataFrame:
        """Return runs, newest first.

        Args:
            since, until: from this moment on, and up to and without that one.
            filters: device, branch, commit, trigger, source, host.
        """
        asked = _asked(filters, RUN_FILTERS, since, until)
        return frame(self._source.runs(asked), RUN_COLUMNS)

    def results(
        self,
        run: Words = (),
        *,
        since: Moment | None = None,
        until: Moment | None = None,
        **filters: Words,
    ) -> pandas.DataFrame:
        """Return every planned case of runs with its newest result, the oldest run first.

        Args:
            run: ids; without, all runs that the filters leave. Ten million rows do not fit: name a time or a suite.
            since, until: of the run's start.
            filters: suite, model (with * and ?), device, mode, precision, backend; of the run branch, commit, trigger,
                source, host.
        """
        asked = _asked(filters, (*CASE_FILTERS, *RUN_ORIGIN), since, until, run)
        return frame(self._source.results(asked), RESULT_COLUMNS)

    def series(
        self,
        metric: str = "speedup",
        *,
        since: Moment | None = None,
        until: Moment | None = None,
        **filters: Words,
    ) -> pandas.DataFrame:
        """Return points of series, a result a row: one case on one class of machine, oldest first.

        Times and speedups have a value only where they are valid; a night that failed is a row without one.

        Args:
            metric: speedup, eager_s, compiled_s, compile_wall_s, memory_ratio, graph_breaks ...
            since, until: of the case's start.
            filters: suite, model (with * and ?), device, mode, precision, backend; branch, source, hard.
        """
        if metric not in METRICS:
            raise UsageError(f"metric {metric!r} is none.{close_to(metric, METRICS)} There are {', '.join(METRICS)}.")
        asked = _asked(filters, (*CASE_FILTERS, *SERIES_FILTERS), since, until)
        return frame(self._source.series(metric, asked), series_columns(metric))

    def samples(self, record_id: str) -> pandas.DataFrame:
        """Return a record's samples, a pair a row, in the order in which they were taken: seconds per step.

        Raises:
            BenchError: there is no such record, or it has no samples.
        """
        return frame(self._source.samples(record_id), SAMPLE_COLUMNS)


def frame(rows: Iterable[tuple[Any, ...]], columns: Mapping[str, Kind]) -> pandas.DataFrame:
    """Return rows as a frame whose columns have their types even where there is no row, or no value."""
    import pandas

    listed = list(rows)
    data = zip(*listed, strict=True) if listed else [()] * len(columns)
    return pandas.DataFrame(
        {
            name: pandas.Series(list(values), dtype=DTYPES[kind])
            for (name, kind), values in zip(columns.items(), data, strict=True)
        }
    )


def _asked(filters: Mapping[str, Words], known: Iterable[str], since: Any, until: Any, run: Words = ()) -> Asked:
    names = list(dict.fromkeys(known))
    for name in filters:
        if name not in names:
            raise UsageError(f"there is no filter {name!r}.{close_to(name, names)} There are {', '.join(names)}.")
    words = {name: _words(value) for name, value in filters.items()}
    return Asked(_words(run), words, _moment("since", since), _moment("until", until))


def _words(value: Words) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value)


def _moment(name: str, value: Moment | None) -> datetime | None:
    if value is None:
        return None
    try:
        moment = datetime.fromisoformat(value) if isinstance(value, str) else value
    except ValueError:
        raise UsageError(f"{name}={value!r} is no moment: write e.g. 2026-12-01 or 2026-12-01T03:00+01:00.") from None
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
