"""Rows on stdout: a table where a person looks, plain lines in a pipe, JSON lines for a program."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from harness.record import SCHEMA


def rows(columns: Sequence[str], lines: Sequence[Sequence[str]]) -> None:
    """Print a table with a heading. Columns whose cells are all numbers, or empty, are set flush right."""
    right = [all(_is_number(line[i]) or not line[i] for line in lines) for i in range(len(columns))]
    if sys.stdout.isatty():
        table = Table(box=None, pad_edge=False, header_style="bold")
        for column, is_right in zip(columns, right, strict=True):
            table.add_column(column, justify="right" if is_right else "left")
        for line in lines:
            table.add_row(*map(escape, line))
        Console().print(table)
        return
    widths = [max(len(line[i]) for line in (columns, *lines)) for i in range(len(columns))]
    for line in (columns, *lines):
        cells = zip(line, widths, right, strict=True)
        print("  ".join(c.rjust(width) if is_right else c.ljust(width) for c, width, is_right in cells).rstrip())


def json_line(type_: str, values: Mapping[str, Any]) -> None:
    """Print one object with its schema and type; absent is null, and a number is never NaN."""
    print(json.dumps({"schema": SCHEMA, "type": type_, **values}, allow_nan=False, ensure_ascii=False))


def _is_number(text: str) -> bool:
    return text.replace(",", "").replace(".", "").isdigit()
