"""A file -> its rows of cells with their line numbers, and a cell -> a number. Knows no format.

Files edited by hand or by another system have a mark at the start, other line ends, blank lines and comments: none of
that is content. A row that is no row is `Bad`, with its line; nothing is guessed.
"""

from __future__ import annotations

import csv
import gzip
import io
import re
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path

from harness.errors import BenchError

HEAD_BYTES = 1 << 16
"""Enough of a file to know what it is."""

_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")
_THOUSANDS = re.compile(r"[+-]?\d{1,3}(,\d{3})+(\.\d+)?")
_NOT_FINITE = re.compile(r"[+-]?(nan|inf|infinity)", re.IGNORECASE)
_CONFLICT = ("<<<<<<<", "=======", ">>>>>>>", "|||||||")


@dataclass(frozen=True, slots=True)
class Bad:
    """A line that is not what its format says, and why."""

    line: int
    why: str


class BadRow(ValueError):
    """A row that cannot be taken as it is; the reader of its file makes a `Bad` of it."""


@dataclass(frozen=True)
class File:
    """A file on the disk, plain or gzipped."""

    path: Path

    @property
    def name(self) -> str:
        """Without folders and without `.gz`."""
        return self.path.name.removesuffix(".gz")

    @property
    def folder(self) -> str:
        """Name of the folder it lies in."""
        return self.path.absolute().parent.name

    @cached_property
    def written_at(self) -> datetime:
        return datetime.fromtimestamp(self.path.stat().st_mtime, UTC)

    @cached_property
    def head(self) -> str:
        """Its first lines; the last may be cut."""
        return self._read(HEAD_BYTES).decode("utf-8-sig", errors="replace")

    @cached_property
    def text(self) -> str:
        """All of it.

        Raises:
            BenchError: it cannot be read, or is no UTF-8.
        """
        try:
            return self._read(-1).decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise BenchError(f"{self.path}: is no UTF-8 text (byte {error.start}). Save it as UTF-8.") from None

    def _read(self, size: int) -> bytes:
        if self.path.is_dir():
            raise BenchError(f"{self.path}: is a folder. Name the files in it: {self.path}/*, for example.")
        try:
            with gzip.open(self.path, "rb") if self.path.suffix == ".gz" else self.path.open("rb") as file:
                return file.read(size)
        except (OSError, EOFError, zlib.error) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise BenchError(f"{self.path}: cannot be read: {reason}. Name a result file.") from None


@dataclass
class Row:
    """One row by the names of its columns. `notes` gathers what was odd in it."""

    line: int
    cells: Mapping[str, str]
    notes: list[str] = field(default_factory=list)

    def text(self, name: str) -> str:
        return self.cells.get(name, "")

    def number(self, name: str, *, negative: bool = False) -> float | None:
        """Return a cell's number; None where it is empty, not there, not finite, or a word, the last two with a note.

        Raises:
            BadRow: it is negative, and what it measures cannot be.
        """
        text = self.text(name)
        try:
            value = number(text)
        except ValueError as error:
            self.notes.append(f"{name}: {error}")
            return None
        if value is not None and value < 0 and not negative:
            raise BadRow(f"{name} is {text}, and cannot be negative")
        return value

    def count(self, name: str) -> int | None:
        """Return a cell's whole number; None where there is none.

        Raises:
            BadRow: it is negative.
        """
        value = self.number(name)
        if value is not None and value != int(value):
            self.notes.append(f"{name}: {self.text(name)} is no whole number")
            return None
        return None if value is None else int(value)


@dataclass(frozen=True)
class Table:
    """The rows under a header, and the lines that are none."""

    header: tuple[str, ...]
    rows: tuple[Row, ...]
    bad: tuple[Bad, ...]


def number(text: str) -> float | None:
    """Return the number that a cell holds; None where it is empty. `1.25x` and `1,234.5` are numbers.

    Raises:
        ValueError: it is a word, or not finite; the message says which.
    """
    text = text.strip()
    if not text:
        return None
    if _NOT_FINITE.fullmatch(text):
        raise ValueError(f"{text} is not finite")
    plain = text.removesuffix("x").removesuffix("×").rstrip()
    if _THOUSANDS.fullmatch(plain):
        plain = plain.replace(",", "")
    if not _NUMBER.fullmatch(plain):
        raise ValueError(f'"{text}" is no number')
    return float(plain)


def lines(text: str) -> Iterator[tuple[int, list[str]] | Bad]:
    """Yield each row of comma-separated text with the number of its first line, and what is none.

    Blank rows are passed over; cells are stripped. Comments are rows as well: whoever knows the header tells.
    """
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    before = 0
    while True:
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            yield Bad(before + 1, f"not comma-separated text ({error})")
            before = reader.line_num
            continue
        line, before = before + 1, reader.line_num
        stripped = [cell.strip() for cell in cells]
        if len(cells) == 1 and stripped[0].startswith(_CONFLICT):
            yield Bad(line, f"a mark of a merge conflict ({stripped[0][:7]})")
        elif any(stripped):
            yield line, stripped


def header(text: str) -> tuple[int, tuple[str, ...]] | None:
    """Return line and names of the header: the first row that is no comment, or a comment that names columns."""
    for found in lines(text):
        if isinstance(found, Bad):
            continue
        line, cells = found
        first = cells[0].removeprefix("#").strip()
        if not cells[0].startswith("#") or (len(cells) > 1 and first == "name"):
            return line, (first, *cells[1:])
    return None


def table(text: str) -> Table:
    """Return the rows under the header of comma-separated text."""
    found = header(text)
    start, names = found or (0, ())
    rows: list[Row] = []
    bad: list[Bad] = []
    for each in lines(text):
        if isinstance(each, Bad):
            bad.append(each)
            continue
        line, cells = each
        if line <= start or cells[0].startswith("#"):
            continue
        if len(cells) != len(names):
            bad.append(Bad(line, f"{len(cells)} cells, and the header has {len(names)}"))
        else:
            rows.append(Row(line, dict(zip(names, cells, strict=True))))
    return Table(names, tuple(rows), tuple(bad))


def when(value: str | float) -> datetime:
    """Return a moment in UTC: Unix seconds, or ISO 8601 with `T` or a space. Without a zone it is UTC, wherever read.

    Raises:
        ValueError: it is none.
    """
    if isinstance(value, str) and not _NUMBER.fullmatch(value):
        found = datetime.fromisoformat(value.strip())
        return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
    try:
        return datetime.fromtimestamp(float(value), UTC)
    except (OverflowError, OSError) as error:
        raise ValueError(f"{value} is no moment: {error}") from None
