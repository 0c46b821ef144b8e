"""Compile-time instruction counts, `benchmark,metric,value` without a header, or what is expected of them."""

from __future__ import annotations

from harness.formats import names
from harness.formats.facts import Fact, Format, Parsed, Where
from harness.formats.text import Bad, BadRow, File, Row, lines
from harness.record import Cells

SUITE = "pr_time_benchmarks"
INSTRUCTIONS = "compile_time_instruction_count"

_COLUMNS = ("benchmark", "metric", "value", "noise_margin")


def fits(cells: list[str]) -> bool:
    """Whether the first row is of such a file."""
    return len(cells) in (3, 4) and bool(cells[0]) and all(cell.replace(".", "", 1).isdigit() for cell in cells[2:])


def read(file: File) -> Parsed:
    """Return the value of each benchmark; a margin is a fraction of the value."""
    name = names.of(file.path)
    facts: list[Fact] = []
    bad: list[Bad] = []
    for each in lines(file.text):
        if isinstance(each, Bad):
            bad.append(each)
            continue
        line, cells = each
        if cells[0].startswith("#"):
            continue
        try:
            facts.append(_fact(file, line, cells))
        except BadRow as error:
            bad.append(Bad(line, str(error)))
    where = Where(suite=SUITE).over(name.where)
    return Parsed(file=file, format=Format.PR_TIME, facts=facts, where=where, key=str(file.path), bad=tuple(bad))


def _fact(file: File, line: int, cells: list[str]) -> Fact:
    if len(cells) not in (3, 4):
        raise BadRow(f"{len(cells)} cells, and such a file has 3 or 4")
    row = Row(line, dict(zip(_COLUMNS, cells, strict=False)))
    value, margin = row.number("value"), row.number("noise_margin")
    if value is None:
        raise BadRow(f'the value is "{row.text("value")}", no number')
    other = {} if margin is None else {"noise_margin": margin}
    if row.text("metric") == INSTRUCTIONS:
        values: dict[str, object] = {"instructions": round(value)}
    else:
        values, other = {}, other | {row.text("metric"): value}
    return Fact(
        model=row.text("benchmark"),
        row=Cells(file=file.name, line=line, cells=row.cells),
        values=values | ({"other": other} if other else {}),
    )
