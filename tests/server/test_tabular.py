"""Rows as files."""

from __future__ import annotations

import csv
import io
from datetime import UTC, datetime

from pyarrow.parquet import read_table

from server import schemas
from server.tabular import columns_of, csv_lines, parquet, parts


def written(rows):
    return list(csv.reader(io.StringIO("".join(csv_lines(list(rows[0]), rows)))))


def test_cells():
    """Numbers keep digits and sign, absent is empty, lists are words, moments are ISO 8601, nothing is a formula."""
    at = datetime(2026, 8, 12, tzinfo=UTC)
    row = {"a": -0.1, "b": None, "c": True, "d": ("x", "y"), "e": at, "f": "=1+1", "g": 'say "=1",\nno'}

    cells = ["-0.1", "", "True", "x y", "2026-08-12T00:00:00+00:00", "'=1+1", 'say "=1",\nno']
    assert [list(row), cells] == written([row])


def test_file_comes_in_parts():
    """A long table is written part by part, and each row once."""
    rows = [{"n": number} for number in range(1200)]

    parts_ = list(csv_lines(["n"], iter(rows)))

    assert 4 == len(parts_)
    assert ["n", *map(str, range(1200))] == "".join(parts_).split()


def test_columns_of_results():
    """A result's columns are its fields; an estimate's parts are columns of their own."""
    columns = columns_of(schemas.Result)

    assert (str, int, float, float, int, tuple, datetime) == tuple(
        columns[name]
        for name in ("status", "batch_size", "speedup", "speedup_low", "speedup_n", "flags", "finished_at")
    )
    estimate = schemas.Estimate(value=1.5, low=1.4, high=1.6, n=20, method="median")
    assert {
        "speedup": 1.5,
        "speedup_low": 1.4,
        "speedup_high": 1.6,
        "speedup_n": 20,
        "speedup_method": "median",
    } == parts("speedup", estimate)
    assert {None} == set(parts("speedup", None).values())


def test_parquet_has_typed_columns():
    """Parquet keeps the types: numbers, moments, lists; absent is null."""
    columns = {"n": int, "x": float, "on": bool, "at": datetime, "flags": tuple, "text": str}
    row = {"n": 3, "x": 0.1, "on": True, "at": datetime(2026, 8, 12, tzinfo=UTC), "flags": ("a", "b"), "text": "=1"}

    found = read_table(io.BytesIO(parquet(columns, iter([row, dict.fromkeys(row)])))).to_pylist()

    assert [{**row, "flags": ["a", "b"]}, dict.fromkeys(row)] == found
