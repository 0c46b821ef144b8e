"""Rows as a file: CSV that a spreadsheet opens as data and nothing else, or Parquet."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from itertools import islice
from types import NoneType
from typing import Any, get_args, get_origin

from pydantic import BaseModel

from harness.formats.flat import neutral
from server.reading.errors import NotInstalled
from server.schemas import Estimate

CHUNK = 500
"""Rows that are written together."""


def csv_lines(columns: Iterable[str], rows: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yield a CSV file in parts: a header, then a line for each row; absent is empty.

    No cell is a formula; see `harness.formats.flat`, which does the same for `bench export`.
    """
    names = list(columns)
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(names)
    left = iter(rows)
    while True:
        yield buffer.getvalue()
        buffer.seek(0)
        buffer.truncate()
        part = list(islice(left, CHUNK))
        if not part:
            return
        writer.writerows([_cell(row[name]) for name in names] for row in part)


def _cell(value: Any) -> str:
    if isinstance(value, datetime):
        return value.isoformat()
    return neutral(" ".join(value) if isinstance(value, tuple) else value)


def columns_of(model: type[BaseModel]) -> dict[str, type]:
    """Return a model's fields with the type of their values; an estimate's parts are columns of their own."""
    columns: dict[str, type] = {}
    for name, field in model.model_fields.items():
        kinds = [kind for kind in get_args(field.annotation) or (field.annotation,) if kind is not NoneType]
        if kinds == [Estimate]:
            columns |= dict(zip(_names(name), (float, float, float, int, str), strict=True))
        else:
            columns[name] = tuple if get_origin(field.annotation) is tuple else _plain(kinds[0])
    return columns


def parts(name: str, estimate: Estimate | None) -> dict[str, Any]:
    """Return the values of an estimate's columns."""
    return dict(zip(_names(name), dict(estimate).values() if estimate else [None] * 5, strict=True))


def _names(name: str) -> tuple[str, ...]:
    return (name, *(f"{name}_{part}" for part in ("low", "high", "n", "method")))


def _plain(kind: Any) -> type:
    return next(plain for plain in (bool, int, float, datetime, tuple, str) if issubclass(kind, plain))


def parquet(columns: Mapping[str, type], rows: Iterable[Mapping[str, Any]]) -> bytes:
    """Return a Parquet file with these columns, by name and type of value; absent is null.

    Raises:
        NotInstalled: pyarrow is not there.
    """
    try:
        import pyarrow  # here: a large library, for those who ask for it
        from pyarrow.parquet import write_table
    except ModuleNotFoundError:
        raise NotInstalled(
            "format=parquet needs pyarrow, which this server does not have: `pip install compile-bench[export]`, or "
            "ask for csv."
        ) from None
    types = {
        bool: pyarrow.bool_(),
        int: pyarrow.int64(),
        float: pyarrow.float64(),
        str: pyarrow.string(),
        tuple: pyarrow.list_(pyarrow.string()),
        datetime: pyarrow.timestamp("us", tz="UTC"),
    }
    listed = list(rows)
    arrays = [pyarrow.array([row[name] for row in listed], types[kind]) for name, kind in columns.items()]
    written = io.BytesIO()
    write_table(pyarrow.table(arrays, names=list(columns)), written)
    return written.getvalue()
