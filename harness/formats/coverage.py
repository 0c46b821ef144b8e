"""Coverage tables of TorchDynamo in 2022: how much of each model was captured into graphs."""

from __future__ import annotations

from collections.abc import Iterable

from harness.formats import names
from harness.formats.facts import Fact, Format, Parsed, Where, present
from harness.formats.text import Bad, BadRow, File, Row, table
from harness.record import Cells

_COUNTS = {"graphs": "graphs", "captured_ops": "operators"}
_OTHER = ("graph_calls", "total_ops", "pct_ops", "pct_time")


def fits(header: Iterable[str]) -> bool:
    return {"name", "graphs", "captured_ops", "total_ops"} <= set(header)


def read(file: File) -> Parsed:
    """Return the counts of each model. Nothing was timed or checked there."""
    name, found = names.of(file.path), table(file.text)
    facts: list[Fact] = []
    bad = list(found.bad)
    for row in found.rows:
        try:
            facts.append(_fact(file, row))
        except BadRow as error:
            bad.append(Bad(row.line, str(error)))
    return Parsed(file=file, format=Format.COVERAGE, facts=facts, where=name.where, key=str(file.path), bad=tuple(bad))


def _fact(file: File, row: Row) -> Fact:
    if not row.text("name"):
        raise BadRow("the name of the model is missing")
    counts = {field: row.count(column) for column, field in _COUNTS.items()}
    return Fact(
        model=row.text("name"),
        where=Where(device=row.text("dev") or None),
        row=Cells(file=file.name, line=row.line, cells=row.cells),
        values=present(counts | {"other": present({name: row.number(name) for name in _OTHER})}),
        batch_size=row.count("batch_size") or None,
        notes=tuple(row.notes),
    )
