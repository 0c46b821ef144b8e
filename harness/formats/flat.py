"""Records -> one row each, for spreadsheets and data frames: CSV, JSON, Parquet. Absent is empty or null, never NaN."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from harness.errors import UsageError
from harness.formats.text import number
from harness.record import Record, Run
from harness.stats import Estimate

Value = str | int | float | bool | None

_RUN: Mapping[str, Callable[[Run], Value]] = {
    "run_id": lambda run: run.id,
    "started_at": lambda run: run.started_at.isoformat(),
    "source": lambda run: run.source,
    "commit": lambda run: run.commit,
    "branch": lambda run: run.branch,
    "host": lambda run: run.environment.host,
    "torch": lambda run: run.environment.versions.get("torch"),
}

_CASE = (
    "suite",
    "model",
    "device",
    "mode",
    "precision",
    "amp_dtype",
    "tf32",
    "backend",
    "compile_mode",
    "dynamic",
    "variant",
    "preset",
    "batch_size",
)
_ENDING = ("outcome", "stage", "side", "text")
_NUMBERS: Mapping[str, type] = {
    "eager_s": float,
    "compiled_s": float,
    "compile_wall_s": float,
    "compile_cpu_s": float,
    "graphs": int,
    "graph_breaks": int,
    "operators": int,
    "recompiles": int,
    "break_even_steps": float,
    "eager_peak_bytes": int,
    "compiled_peak_bytes": int,
    "memory_ratio": float,
}
_ESTIMATE: Mapping[str, type] = {"value": float, "low": float, "high": float, "n": int, "method": str}

TYPES: Mapping[str, type] = {
    **dict.fromkeys(_RUN, str),
    "record_id": str,
    "case_id": str,
    **{name: bool if name in ("tf32", "dynamic") else int if name == "batch_size" else str for name in _CASE},
    "observed_batch_size": int,
    "attempt": int,
    **dict.fromkeys(_ENDING, str),
    "status_word": str,
    "valid": bool,
    "invalid_why": str,
    "flags": str,
    **{"speedup" if name == "value" else f"speedup_{name}": kind for name, kind in _ESTIMATE.items()},
    **_NUMBERS,
}
"""Every column with the type of its values, in order."""

_STEERING = ("=", "+", "-", "@", "\t", "\r")
"""What a spreadsheet takes for the begin of a formula."""


def rows(run: Run, records: Iterable[Record]) -> Iterator[dict[str, Value]]:
    """Yield a row per record, with every column.

    Args:
        run: without its plan will do.
        records: the newest of each case.
    """
    of_run = {name: take(run) for name, take in _RUN.items()}
    for record in records:
        found, case = record.numbers, record.case
        speedup = found.speedup
        values: dict[str, Any] = {
            **of_run,
            "record_id": record.id,
            "case_id": case.id,
            **{name: getattr(case, name) for name in _CASE},
            "observed_batch_size": record.observed.batch_size,
            "attempt": record.attempt,
            **{name: getattr(record, name) for name in _ENDING},
            "status_word": record.stated.word if record.stated else None,
            "valid": record.derived.valid,
            "invalid_why": record.derived.invalid_why,
            "flags": " ".join(record.derived.flags) or None,
            "speedup": speedup and speedup.value,
            **{f"speedup_{name}": speedup and getattr(speedup, name) for name in _ESTIMATE if name != "value"},
            **{name: _value(getattr(found, name)) for name in _NUMBERS},
        }
        yield {name: _plain(value) for name, value in values.items()}


def csv_text(found: Iterable[Mapping[str, Value]]) -> Iterator[str]:
    """Yield the lines of a CSV file that a spreadsheet can open: no cell is a formula."""
    yield _line(TYPES)
    for row in found:
        yield _line([neutral(value) for value in row.values()])


def json_text(found: Iterable[Mapping[str, Value]]) -> Iterator[str]:
    """Yield the pieces of one JSON array of objects."""
    before = "[\n"
    for row in found:
        yield before + json.dumps(row, allow_nan=False, ensure_ascii=False)
        before = ",\n"
    yield "[]\n" if before == "[\n" else "\n]\n"


def write_parquet(found: Iterable[Mapping[str, Value]], path: Path) -> None:
    """Write a Parquet file with typed columns.

    Raises:
        UsageError: pyarrow is not installed.
    """
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise UsageError("--format parquet needs pyarrow. Install it: pip install 'compile-bench[export]'.") from None
    kinds = {str: pyarrow.string(), int: pyarrow.int64(), float: pyarrow.float64(), bool: pyarrow.bool_()}
    schema = pyarrow.schema([(name, kinds[kind]) for name, kind in TYPES.items()])
    parquet.write_table(pyarrow.Table.from_pylist(list(found), schema=schema), path)


def neutral(value: Value) -> str:
    """Return a cell as text; one that a spreadsheet would compute gets an apostrophe in front. Numbers stay."""
    if value is None:
        return ""
    if not isinstance(value, str):
        return str(value)
    return f"'{value}" if value.startswith(_STEERING) and not _is_number(value) else value


def _is_number(text: str) -> bool:
    try:
        return number(text) is not None and text[:1] not in "\t\r"
    except ValueError:
        return False


def _value(figure: Estimate | float | None) -> float | None:
    return figure.value if isinstance(figure, Estimate) else figure


def _plain(value: Any) -> Value:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return str(value) if isinstance(value, str) else value


def _line(cells: Iterable[str]) -> str:
    out = io.StringIO(newline="")
    csv.writer(out, lineterminator="\n").writerow(list(cells))
    return out.getvalue()
