"""Points for tests of comparisons, and those that two files of a case hold."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from harness.compare_points import Point
from harness.record import Outcome

CASES = Path(__file__).parents[1] / "data" / "cases"

COLUMNS = {
    "speedup": ("speedup", 1.0),
    "abs_latency": ("compiled_s", 1e-3),
    "compilation_latency": ("compile_wall_s", 1.0),
    "compression_ratio": ("memory_ratio", 1.0),
    "dynamo_peak_mem": ("compiled_peak_bytes", 1e9),
}
"""Upstream's columns -> our fields, and what a unit of theirs is in ours."""


def make_point(model: str = "mlp", speedup: float | None = 1.4, width: float = 0.01, **fields: Any) -> Point:
    """Return a case that passed, with times; every interval is its value times 1 -+ `width`."""
    plain = Point(
        case_id=f"case of {model}",
        suite="toy",
        model=model,
        configuration_id="c",
        label="inference fp32",
        outcome=Outcome.PASS,
        valid=speedup is not None,
        hard="machine",
        **(_times(speedup, fields.pop("eager_s", 0.02), width) if speedup is not None else {}),
        compile_wall_s=20.0,
        eager_peak_bytes=128 << 20,
        compiled_peak_bytes=100 << 20,
        memory_ratio=1.28,
        graph_breaks=0,
    )
    return replace(plain, **fields)


def make_failure(model: str = "mlp", outcome: Outcome = Outcome.FAIL_TO_RUN, **fields: Any) -> Point:
    values = {"hard": "machine", "text": None if outcome == Outcome.MISSING else "no such operator", **fields}
    return Point(f"case of {model}", "toy", model, "c", "inference fp32", outcome, **values)


def _times(speedup: float, eager_s: float, width: float) -> dict[str, float]:
    values = {"speedup": speedup, "eager_s": eager_s, "compiled_s": eager_s / (speedup or 1.0)}
    ends = {}
    for name, value in values.items():
        ends |= {f"{name}_low": value * (1 - width), f"{name}_high": value * (1 + width)}
    return values | ends


def side(folder: str, file: str) -> list[Point]:
    """Return the rows of a case's CSV file, figures as they stand there, zeros too."""
    (path,) = CASES.glob(f"{folder}-*/{file}.csv")
    with open(path, newline="") as lines:
        return [_row(row) for row in csv.DictReader(lines)]


def expected(folder: str) -> dict[str, Any]:
    (path,) = CASES.glob(f"{folder}-*/expect.json")
    return json.loads(path.read_text())


def _row(row: dict[str, str]) -> Point:
    outcome = Outcome(row.get("accuracy", "pass"))
    figures = {field: float(row[column]) * unit for column, (field, unit) in COLUMNS.items() if column in row}
    name = row["name"]
    return Point(name, "suite", name, "c", "training fp32", outcome, outcome == Outcome.PASS, **figures)
