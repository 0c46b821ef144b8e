"""What a project's CI expects of each model: outcomes with graph breaks, outcomes by number format, speedups.

Statuses are those of the PyTorch runner. Three blank lines between rows keep merges apart; comments name issues.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from harness.formats import names
from harness.formats.facts import Fact, Format, Parsed, Where, present
from harness.formats.pytorch_csv import COUNTERS
from harness.formats.text import Bad, BadRow, File, Row, table
from harness.record import Cells
from suites.spec import Mode

_TARGET = "perf_speedup_target_"
_Take = Callable[[File, Row], Iterator[Fact]]
_DTYPES = ("float32", "bfloat16", "float16", "amp_bf16", "amp_fp16")


def is_accuracy(header: Iterable[str]) -> bool:
    columns = set(header)
    return {"name", "accuracy"} <= columns and not columns & {"dev", "batch_size", "speedup", "abs_latency"}


def is_by_dtype(header: Iterable[str]) -> bool:
    columns = set(header)
    return "name" in columns and len(columns & set(_DTYPES)) >= 2


def is_speedup(header: Iterable[str]) -> bool:
    columns = set(header)
    return {"name", "data_type"} <= columns and any(name.startswith(_TARGET) for name in columns)


def read_accuracy(file: File) -> Parsed:
    """Return the expected outcome and counts of each model."""
    return _read(file, Format.EXPECTED_ACCURACY, _outcome)


def read_by_dtype(file: File) -> Parsed:
    """Return the outcome of each model in each number format: one run with a configuration per column."""
    return _read(file, Format.ACCURACY_BY_DTYPE, _by_dtype)


def read_speedup(file: File) -> Parsed:
    """Return the speedup that each model shall reach; a row that is commented out is none."""
    return _read(file, Format.EXPECTED_SPEEDUP, _speedups)


def _read(file: File, format: Format, take: _Take) -> Parsed:
    name, found = names.of(file.path), table(file.text)
    facts: list[Fact] = []
    bad = list(found.bad)
    for row in found.rows:
        try:
            if not row.text("name"):
                raise BadRow("the name of the model is missing")
            facts += take(file, row)
        except BadRow as error:
            bad.append(Bad(row.line, str(error)))
    # Each version of such a file is a run of its own: nothing joins it.
    return Parsed(file=file, format=format, facts=facts, where=name.where, key=str(file.path), bad=tuple(bad))


def _outcome(file: File, row: Row) -> Iterator[Fact]:
    if not row.text("accuracy"):
        raise BadRow("the status is missing")
    counts = {field: row.count(column) for column, field in COUNTERS.items()}
    others = [name for name in row.cells if name not in ("name", "accuracy", *COUNTERS)]
    other = present({name: row.number(name) for name in others})
    yield Fact(
        model=row.text("name"),
        row=Cells(file=file.name, line=row.line, cells=row.cells),
        values=present(counts | {"other": other or None}),
        word=row.text("accuracy"),
        notes=tuple(row.notes),
    )


def _by_dtype(file: File, row: Row) -> Iterator[Fact]:
    for dtype in _DTYPES:
        word = row.text(dtype)
        if word:
            precision, amp_dtype = names.DTYPES[dtype]
            yield Fact(
                model=row.text("name"),
                where=Where(precision=precision, amp_dtype=amp_dtype),
                row=Cells(file=file.name, line=row.line, cells={"name": row.text("name"), dtype: word}),
                word=word,
            )


def _speedups(file: File, row: Row) -> Iterator[Fact]:
    precision, amp_dtype = names.DTYPES.get(row.text("data_type"), names.DTYPES["notset"])
    dynamic = row.text("shape") == "dynamic"
    variant = " ".join(filter(None, (row.text("shape"), row.text("wrapper"))))
    for column in row.cells:
        if column.startswith(_TARGET):
            yield Fact(
                model=row.text("name"),
                where=Where(
                    mode=Mode.UNKNOWN,
                    precision=precision,
                    amp_dtype=amp_dtype,
                    product=column.removeprefix(_TARGET),
                    variant=variant or None,
                    dynamic=dynamic,
                ),
                row=Cells(file=file.name, line=row.line, cells=row.cells),
                values=present({"speedup": row.number(column)}),
                notes=tuple(row.notes),
            )
