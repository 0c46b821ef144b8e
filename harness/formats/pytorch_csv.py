"""The CSV files of the PyTorch runner, of every age: accuracy, performance, seconds by compiler phase, graph breaks.

Columns are read by name, since older files lack some. Zeros mean measured, failed, not measured or padded; only their
context tells: floats are written with six decimals, so the text `0` in a column of floats is padding, and so is all to
the right of it. A placeholder row (batch size 0) has no numbers at all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from harness.formats import names, words
from harness.formats.facts import Fact, Format, Parsed, Where, present
from harness.formats.text import Bad, BadRow, File, Row, Table, table
from harness.record import Cells

COUNTERS: Mapping[str, str] = {
    "calls_captured": "operators",
    "unique_graphs": "graphs",
    "graph_breaks": "graph_breaks",
    "unique_graph_breaks": "unique_graph_breaks",
    "cudagraph_skips": "cudagraph_skips",
}
"""Whole numbers of both main files -> fields of `Stated`."""

OTHER_COUNTERS = ("fallbacks_to_eager", "autograd_captures", "autograd_compiles")

FLOATS = (
    "speedup",
    "abs_latency",
    "baseline",
    "speedup_vs_baseline",
    "compilation_latency",
    "compression_ratio",
    "eager_peak_mem",
    "dynamo_peak_mem",
    "cache_lookup_latency",
    "eager_prefill_latency",
    "input_tokens_per_second",
)

_ELSEWHERE = ("baseline", "speedup_vs_baseline", "cache_lookup_latency", "eager_prefill_latency")
"""Numbers without a field of their own."""

NOT_COMPARABLE = ("cpu", "xpu", "mps")
"""Devices whose peaks the runner gets wrong: on a CPU about a hundred times too large, on the others 0."""

PHASES = "_compilation_metrics"
_IDENTITY = ("dev", "name", "batch_size", "tag")


def fits(header: Iterable[str], name: str) -> bool:
    """Whether it is such a file; one with seconds by phase is told by its name alone."""
    columns = set(header)
    if columns >= {"model", "reason", "user_stack"}:
        return True
    return "name" in columns and (bool(columns & {"speedup", "abs_latency", "accuracy"}) or PHASES in name)


def read(file: File) -> Parsed:
    """Return what a file of the runner says."""
    name = names.of(file.path)
    found = table(file.text)
    columns = found.header
    if "reason" in columns:
        facts: Iterable[Fact | Bad] = _breaks(file, found)
    elif "speedup" in columns or "abs_latency" in columns or "accuracy" in columns:
        facts = (_fact(file, row, columns) for row in found.rows)
    else:
        facts = _phases(file, found)
    told = list(facts)
    return Parsed(
        file=file,
        format=Format.PYTORCH_CSV,
        facts=[fact for fact in told if isinstance(fact, Fact)],
        where=name.where,
        key=name.key,
        bad=(*found.bad, *(bad for bad in told if isinstance(bad, Bad))),
    )


def _fact(file: File, row: Row, columns: tuple[str, ...]) -> Fact | Bad:
    row = _unshifted(row, columns)
    raw = Cells(file=file.name, line=row.line, cells=row.cells)
    model = row.text("name")
    if not model:
        return Bad(row.line, "the name of the model is missing")
    try:
        batch = row.count("batch_size")
        placeholder = batch == 0
        word = row.text("accuracy") or None
        timed = "speedup" in columns or "abs_latency" in columns
        values = {} if placeholder else _values(row, columns, timed)
        failed = timed and (placeholder or _zeros(row))
        if failed:
            values = {}
    except BadRow as error:
        return Bad(row.line, str(error))
    if timed and not failed and "speedup" in columns and "speedup" not in values and not row.notes:
        row.notes.append("speedup: the cell is empty")
    return Fact(
        model=model,
        where=Where(device=row.text("dev") or None, variant=row.text("section") or None),
        row=raw,
        values=values,
        word=word,
        failed=failed,
        batch_size=batch or None,
        notes=tuple(row.notes),
    )


def _unshifted(row: Row, columns: tuple[str, ...]) -> Row:
    """Return a row with its tag in place: a placeholder row is written without one, one column too far left."""
    if "tag" not in columns or row.text("batch_size") != "0":
        return row
    tag = row.text("tag")
    if words.meaning(tag) is None and tag.strip("0.") != "":
        return row
    at = columns.index("tag")
    cells = list(row.cells.values())
    shifted = [*cells[:at], "", *cells[at:-1]]
    return replace(row, cells=dict(zip(columns, shifted, strict=True)))


def _zeros(row: Row) -> bool:
    """Whether speedup and latency are both zero, or the one that is there: a failed performance run."""
    found = [row.text(name) for name in ("speedup", "abs_latency") if row.text(name)]
    return bool(found) and all(text.strip("0.") == "" for text in found)


def _values(row: Row, columns: tuple[str, ...], timed: bool) -> dict[str, Any]:
    """Return the numbers of a row in our units.

    Raises:
        BadRow: a time, a size or a count is negative.
    """
    padded = _padded(row, columns)
    given = replace(row, cells={name: "" if name in padded else text for name, text in row.cells.items()})
    latency_s = given.number("compilation_latency", negative=timed)
    if latency_s is not None and latency_s < 0:
        row.notes.append("compilation_latency is below what can be told")
    # A zero of memory is what the runner writes where it has no figure.
    values: dict[str, Any] = {
        "speedup": given.number("speedup"),
        "compiled_s": _times(given.number("abs_latency"), 1e-3),
        "compile_wall_s" if timed else "compiler_s": latency_s,
        "memory_ratio": given.number("compression_ratio") or None,
        "eager_peak_bytes": _bytes(given.number("eager_peak_mem")),
        "compiled_peak_bytes": _bytes(given.number("dynamo_peak_mem")),
        "memory_comparable": False if row.text("dev") in NOT_COMPARABLE else None,
        "compiled_samples_per_s": given.number("input_tokens_per_second") or None,
    }
    other = {name: given.number(name) for name in _ELSEWHERE}
    return present(values | _counters(given, columns) | {"other": present(other) or None})


def _counters(row: Row, columns: tuple[str, ...]) -> dict[str, Any]:
    """Return the counts; none at all where one is no whole number: the row was written under another header."""
    known = [name for name in (*COUNTERS, *OTHER_COUNTERS) if name in columns]
    shifted = [name for name in known if "." in row.text(name)]
    if shifted:
        row.notes.append(
            f"{shifted[0]} is {row.text(shifted[0])}: written under another header, so counts are left out"
        )
        return {}
    found = {name: row.count(name) for name in known}
    rest = present({name: found.get(name) for name in OTHER_COUNTERS})
    counts = {COUNTERS[name]: count for name, count in found.items() if name in COUNTERS}
    return counts | ({"other": rest} if rest else {})


def _padded(row: Row, columns: tuple[str, ...]) -> set[str]:
    """Return the columns that were filled up with zeros: from the first float that is written as the text `0` on."""
    runner = any("." in row.text(name) for name in ("speedup", "abs_latency")) and len(row.text("speedup")) >= 8
    runner = runner or "accuracy" in columns
    for place, name in enumerate(columns):
        if runner and name in FLOATS and row.text(name) == "0":
            return set(columns[place:])
    return set()


def _times(value: float | None, factor: float) -> float | None:
    return None if value is None else value * factor


def _bytes(gigabytes: float | None) -> int | None:
    return None if not gigabytes else round(gigabytes * 1e9)


def _phases(file: File, found: Table) -> Iterator[Fact | Bad]:
    """Yield seconds by compiler phase. Under one header the rows of two models may have other columns, so it is trusted
    only where no row was filled up."""
    phases = [name for name in found.header if name not in _IDENTITY]
    mixed = any(row.text(name) == "0" for row in found.rows for name in phases)
    for row in found.rows:
        try:
            seconds = {name: row.number(name) for name in phases}
        except BadRow as error:
            yield Bad(row.line, str(error))
            continue
        notes = ["the phases are not taken: rows were filled up, so their columns may be those of another model"]
        yield Fact(
            model=row.text("name"),
            where=Where(device=row.text("dev") or None),
            row=Cells(file=file.name, line=row.line, cells=row.cells),
            values={} if mixed else {"phases_s": present(seconds)},
            notes=tuple(row.notes + notes if mixed else row.notes),
        )


def _breaks(file: File, found: Table) -> Iterator[Fact | Bad]:
    """Yield the reasons of a model's graph breaks, each once; the writer quotes them twice."""
    reasons: dict[str, dict[str, int]] = {}
    for row in found.rows:
        text = row.text("reason").strip('"').strip()
        if not row.text("model") or not text:
            yield Bad(row.line, "model or reason is missing")
            continue
        reasons.setdefault(row.text("model").strip('"'), {}).setdefault(text, row.line)
    for model, lines in reasons.items():
        yield Fact(
            model=model,
            row=Cells(file=file.name, line=min(lines.values()), cells={"model": model}),
            values={"break_reasons": tuple(lines)},
        )
