"""Records -> the CSV files of the PyTorch runner, two per suite and configuration, and a page on what zeros mean.

The headers, the order of columns and the six decimals are the runner's. A case that failed before it had figures is its
placeholder row: batch size 0 and zeros. What is not known in a row that has figures is an empty cell.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence

from harness.formats import names, words
from harness.formats.names import DEVICES
from harness.formats.pytorch_csv import COUNTERS, OTHER_COUNTERS
from harness.record import Configuration, Flag, Outcome, Record, Run, Stage

COUNTS = (
    "calls_captured",
    "unique_graphs",
    "fallbacks_to_eager",
    "graph_breaks",
    "unique_graph_breaks",
    "autograd_captures",
    "autograd_compiles",
    "cudagraph_skips",
)
ACCURACY = ("dev", "name", "batch_size", "accuracy", *COUNTS, "compilation_latency")
PERFORMANCE = (
    "dev",
    "name",
    "batch_size",
    "speedup",
    "abs_latency",
    "compilation_latency",
    "compression_ratio",
    "eager_peak_mem",
    "dynamo_peak_mem",
    *COUNTS,
)

README = "README.txt"
_ABOUT = """\
Results in the form of the PyTorch runner's CSV files, written by bench export of run {run}.

A row with batch_size 0 is a case that failed before it had figures; its zeros are no measurements. In a performance
file compression_ratio and the peaks of memory are 0 where they are unknown. An empty cell is not known.
fail_to_run also stands for a process that died. What was skipped has no row, unless pass_due_to_skip was asked for
or is what the imported file said. compilation_latency of an accuracy file is another quantity than that of a
performance file.
"""


def files(run: Run, records: Iterable[Record], *, skips: bool = False) -> Iterator[tuple[str, str]]:
    """Yield name and text of each file.

    Args:
        run: without its plan will do.
        records: the newest of each case.
        skips: write what was skipped as `pass_due_to_skip`, which the runner's readers count as a pass.
    """
    groups: dict[tuple[str, Configuration], list[Record]] = {}
    for record in records:
        groups.setdefault((record.case.suite, record.case.configuration), []).append(record)
    kind = run.profile.kind
    formats = {configuration.amp_dtype for _, configuration in groups} - {None}
    for (suite, configuration), found in groups.items():
        for target, header, rows in (
            ("accuracy", ACCURACY, [_accuracy(kind, record, skips) for record in found]),
            ("performance", PERFORMANCE, _performances(kind, found)),
        ):
            written = [row for row in rows if row is not None]
            if written:
                name = names.written(configuration, suite, kind, target, exact=len(formats) > 1)
                yield f"{name}.csv", _text(header, written)
    yield README, _ABOUT.format(run=run.id)


def word(record: Record, skips: bool = True) -> str | None:
    """Return the status that a record has in upstream's words; None where it has none there."""
    if record.stated is not None and record.stated.word is not None:
        return record.stated.word
    if record.outcome == Outcome.SKIPPED and not skips:
        return None
    if record.outcome == Outcome.PASS and Flag.NO_REFERENCE in record.derived.flags:
        return None
    if record.stated is not None and record.accuracy is None and record.stage is None:
        return None  # a performance file says no status
    return words.written(record.outcome, record.side)


def batch_size(record: Record, *, checked: bool = False) -> int | None:
    """Return the batch that was timed, or the one that was checked where it is another."""
    if checked and record.accuracy is not None and record.accuracy.batch_size is not None:
        return record.accuracy.batch_size
    return record.observed.batch_size or record.case.batch_size


def _accuracy(kind: str, record: Record, skips: bool) -> list[str] | None:
    status = word(record, skips)
    if status is None:
        return None
    if _has_nothing(record):
        return [_dev(kind), record.case.model, "0", status, *["0"] * (len(ACCURACY) - 4)]
    compiler_s = record.stated.compiler_s if record.stated else None
    batch = batch_size(record, checked=True)
    return [_dev(kind), record.case.model, _whole(batch), status, *_counts(record), _float(compiler_s)]


def _has_nothing(record: Record) -> bool:
    """Whether a case failed before it had a batch or a count: the runner's placeholder row."""
    found = record.numbers
    counted = any(count is not None for count in (found.graphs, found.graph_breaks, found.operators))
    ran = record.outcome in (Outcome.PASS, Outcome.FAIL_ACCURACY)
    stated = record.stated is not None and record.observed.batch_size is not None
    return not ran and not stated and not counted


def _performances(kind: str, records: Sequence[Record]) -> list[list[str] | None]:
    if not any(record.numbers.speedup or _failed_timing(record) for record in records):
        return []
    return [_performance(kind, record) for record in records]


def _failed_timing(record: Record) -> bool:
    """Whether its performance run failed: after it passed the check, or with nothing else said."""
    return record.outcome == Outcome.FAIL_TO_RUN and (record.stage == Stage.TIME or word(record) is None)


def _performance(kind: str, record: Record) -> list[str] | None:
    found = record.numbers
    if found.speedup is None:
        if record.outcome in (Outcome.PASS, Outcome.SKIPPED, Outcome.MISSING, Outcome.UNKNOWN):
            return None
        return [_dev(kind), record.case.model, "0", "0.000000", "0.000000", *["0"] * (len(PERFORMANCE) - 5)]
    stated = record.stated
    peaks = (found.eager_peak_bytes, found.compiled_peak_bytes)
    if stated is not None:
        peaks = (stated.eager_peak_bytes, stated.compiled_peak_bytes)
    return [
        _dev(kind),
        record.case.model,
        _whole(batch_size(record)),
        _float(found.speedup.value),
        _float(None if found.compiled_s is None else found.compiled_s.value * 1e3),
        _float(found.compile_wall_s),
        _float(found.memory_ratio or 0.0),
        *(_float((peak or 0) / 1e9) for peak in peaks),
        *_counts(record),
    ]


def _counts(record: Record) -> list[str]:
    found, stated = record.numbers, record.stated
    values = {"operators": found.operators, "graphs": found.graphs, "graph_breaks": found.graph_breaks}
    if stated is not None:
        values |= {"unique_graph_breaks": stated.unique_graph_breaks, "cudagraph_skips": stated.cudagraph_skips}
    elif record.compile is not None:
        values["unique_graph_breaks"] = len(record.compile.breaks)
    other = stated.other if stated is not None else {}
    rest = {name: int(other[name]) for name in OTHER_COUNTERS if name in other}
    return [_whole(rest.get(name) if name in OTHER_COUNTERS else values.get(COUNTERS[name])) for name in COUNTS]


def _dev(kind: str) -> str:
    return kind if kind in DEVICES else ""


def _whole(value: int | None) -> str:
    return "" if value is None else str(value)


def _float(value: float | None) -> str:
    return "" if value is None else f"{value:.6f}"


def _text(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    out = io.StringIO(newline="")
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return out.getvalue()
