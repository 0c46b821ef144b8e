"""What files from elsewhere say, in our words and units: the step between a format's rows and our records."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from enum import StrEnum
from typing import Any

from harness.errors import BenchError
from harness.formats.text import Bad, File
from harness.record import Cells
from suites.spec import Mode, Precision


class Format(StrEnum):
    """What `Run.source` says of an imported run."""

    JOURNAL = "journal"
    PYTORCH_CSV = "pytorch-csv"
    EXPECTED_ACCURACY = "expected-accuracy"
    ACCURACY_BY_DTYPE = "accuracy-by-dtype"
    EXPECTED_SPEEDUP = "expected-speedup"
    OSS_V3 = "oss-v3"
    USERBENCHMARK = "userbenchmark"
    TIMM = "timm-results"
    COVERAGE = "coverage-2022"
    PR_TIME = "pr-time"
    NOTHING = "nothing"
    """An empty file."""


ABOUT: Mapping[Format, str] = {
    Format.JOURNAL: "a journal of bench",
    Format.PYTORCH_CSV: "results of the PyTorch runner",
    Format.EXPECTED_ACCURACY: "expected outcomes of the PyTorch CI",
    Format.ACCURACY_BY_DTYPE: "outcomes by number format",
    Format.EXPECTED_SPEEDUP: "expected speedups of the PyTorch CI",
    Format.OSS_V3: "OSS benchmark records, v3",
    Format.USERBENCHMARK: "metrics of a TorchBench userbenchmark",
    Format.TIMM: "results of the timm benchmark",
    Format.COVERAGE: "coverage of TorchDynamo in 2022",
    Format.PR_TIME: "compile-time instruction counts",
    Format.NOTHING: "empty",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Where:
    """All that is known of where results belong; unknown is None."""

    suite: str | None = None
    mode: Mode | None = None
    precision: Precision | None = None
    amp_dtype: str | None = None
    device: str | None = None
    """Its type: cpu, cuda, ..."""
    product: str | None = None
    """The machine, in the file's words: `a100`, `x86_zen`."""
    backend: str | None = None
    variant: str | None = None
    dynamic: bool | None = None
    commit: str | None = None
    branch: str | None = None
    trigger: str | None = None
    time: datetime | None = None

    def over(self, other: Where) -> Where:
        """Return what is said here, and else what is said there."""
        mine = {each.name: getattr(self, each.name) for each in fields(self)}
        if mine["precision"] is not None and mine["amp_dtype"] is None:
            other = replace(other, amp_dtype=None)
        return replace(other, **{name: value for name, value in mine.items() if value is not None})


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """What one row says about one model."""

    model: str
    where: Where = Where()
    row: Cells
    values: Mapping[str, Any] = field(default_factory=dict)
    """Fields of `Stated`, without those that are absent."""
    word: str | None = None
    """The status, as it was written."""
    failed: bool = False
    """Its zeros say that it failed to run; the cause is lost."""
    batch_size: int | None = None
    size: int | None = None
    """Of an image, where one model is measured at several."""
    notes: tuple[str, ...] = ()
    order: tuple[int, int] = (0, 0)
    """Attempt and job: a later one is another attempt at the case."""
    upload: str | None = None
    """What was uploaded together; None: what the file's name says."""
    said: Mapping[str, str] = field(default_factory=dict)
    """What our own export adds: outcome, stage, side, text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """What a file says of machine and software, in fields of `Environment`."""

    values: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Parsed:
    """One file, read."""

    file: File
    format: Format
    facts: Sequence[Fact]
    where: Where = Where()
    """What the file as a whole says, its name included."""
    key: str = ""
    """What files of one upload share: the rest of their names."""
    bad: tuple[Bad, ...] = ()
    """Lines that are not what the format says."""
    skipped: tuple[Bad, ...] = ()
    """Lines that are well formed and hold no result."""
    machine: Mapping[str, Machine] = field(default_factory=dict)
    """By product; an empty key is for all."""


def refuse(parsed: Parsed) -> None:
    """Raise where a file has bad lines.

    Raises:
        BenchError: names the first ten, with their reasons.
    """
    if parsed.bad:
        remedy = "Mend the file, or take the good rows with --lenient."
        raise BenchError(f"{parsed.file.path}, {told(parsed.bad)}. {remedy}")


def told(bad: Iterable[Bad], most: int = 10) -> str:
    """Return `lines 3 and 5: why; line 9: why`, the first ten lines by name."""
    found = sorted(bad, key=lambda each: each.line)
    reasons: dict[str, list[int]] = {}
    for each in found[:most]:
        reasons.setdefault(each.why, []).append(each.line)
    parts = [f"{_numbers(numbers)}: {why}" for why, numbers in reasons.items()]
    more = [f"and {len(found) - most} more"] if len(found) > most else []
    return "; ".join(parts + more)


def _numbers(numbers: Sequence[int]) -> str:
    if len(numbers) == 1:
        return f"line {numbers[0]}"
    return f"lines {', '.join(map(str, numbers[:-1]))} and {numbers[-1]}"


def present(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values that are there."""
    return {name: value for name, value in values.items() if value is not None}
