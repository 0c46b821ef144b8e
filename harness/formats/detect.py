"""What is this file? By looking: at its first lines, never at its ending alone."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from harness.errors import BenchError
from harness.formats import coverage, expected, oss_v3, pr_time, pytorch_csv, timm, userbenchmark
from harness.formats.facts import ABOUT, Format, Parsed
from harness.formats.text import Bad, File, header, lines

READERS: Mapping[Format, Callable[[File], Parsed]] = {
    Format.PYTORCH_CSV: pytorch_csv.read,
    Format.EXPECTED_ACCURACY: expected.read_accuracy,
    Format.ACCURACY_BY_DTYPE: expected.read_by_dtype,
    Format.EXPECTED_SPEEDUP: expected.read_speedup,
    Format.OSS_V3: oss_v3.read,
    Format.USERBENCHMARK: userbenchmark.read,
    Format.TIMM: timm.read,
    Format.COVERAGE: coverage.read,
    Format.PR_TIME: pr_time.read,
}
"""Of every format but journals, which `harness.journal` reads line by line."""

_JOURNAL_LINES = {"run", "start", "record", "end"}
_LOOKED_AT = 5
"""Lines that may be broken before the one that tells a journal."""


def detect(file: File) -> Format:
    """Return the format of a file.

    Raises:
        BenchError: it is none that bench knows; says what was seen, and what is known.
    """
    head = file.head
    begin = head.lstrip()[:1]
    if file.name.endswith(".jsonl") and (not begin or _is_journal(head) or begin not in ("{", "[")):
        return Format.JOURNAL
    if not begin:
        return Format.NOTHING
    if begin in ("{", "["):
        return Format.JOURNAL if _is_journal(head) else _json(file)
    return _csv(file)


def read(file: File, format: Format) -> Parsed:
    """Return what a file of this format says; an empty one says nothing."""
    if format == Format.NOTHING:
        return Parsed(file=file, format=format, facts=())
    return READERS[format](file)


def _is_journal(head: str) -> bool:
    for line in head.splitlines()[:_LOOKED_AT]:
        found = line.strip()
        # The first line of a journal holds the whole plan, and may be longer than the head.
        if found.startswith('{"schema":') and any(f'"type":"{kind}"' in found[:200] for kind in _JOURNAL_LINES):
            return True
    return False


def _json(file: File) -> Format:
    document = _document(file.text)
    if userbenchmark.fits(document):
        return Format.USERBENCHMARK
    if document is not None and not _has_records(document):
        said = ", ".join(map(str, document)) if isinstance(document, dict) else "an array"
        raise BenchError(f"{file.path}: is JSON, and no result file that bench knows ({said[:120]}). {_known()}")
    return Format.OSS_V3


def _document(text: str) -> Any | None:
    """Return a file that is one JSON document; None where it is lines."""
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return None


def _has_records(document: Any) -> bool:
    """Whether it may be benchmark records: an array of them, or one with a metric, or a part of one."""
    first = document[0] if isinstance(document, list) and document else document
    parts = {"benchmark", "metric", "model", "repo", "workflow_id", "schema_version"}
    return first == {} or first == [] or (isinstance(first, dict) and bool(parts & first.keys()))


def _csv(file: File) -> Format:
    found = header(file.head)
    if found is not None:
        _, columns = found
        if expected.is_by_dtype(columns):
            return Format.ACCURACY_BY_DTYPE
        if expected.is_speedup(columns):
            return Format.EXPECTED_SPEEDUP
        if coverage.fits(columns):
            return Format.COVERAGE
        if timm.fits(columns):
            return Format.TIMM
        if expected.is_accuracy(columns):
            return Format.EXPECTED_ACCURACY
        if pytorch_csv.fits(columns, file.name):
            return Format.PYTORCH_CSV
    first = next((each for each in lines(file.head) if not isinstance(each, Bad)), None)
    if first is not None and pr_time.fits(first[1]):
        return Format.PR_TIME
    seen = f"its columns are {', '.join(found[1])[:160]}" if found else "it has no header"
    raise BenchError(f"{file.path}: is no result file that bench knows ({seen}). {_known()}")


def _known() -> str:
    return f"Known are {', '.join(about for format, about in ABOUT.items() if format != Format.NOTHING)}."
