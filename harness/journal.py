"""The journal of a run: append-only JSON lines, synced one by one, and its replay.

A line is on the disk before anybody is told of it. A process killed while it writes leaves a
torn last line, which readers pass over and the next writer cuts off.
"""

from __future__ import annotations

import contextlib
import fcntl
import gzip
import os
import zlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

from pydantic import ValidationError

from harness.errors import BenchError, UsageError, close_to
from harness.record import LINE, JournalLine, Record, Run, Start

FOLDER = Path("runs")


class Journal:
    """Appends lines to one file; one writer at a time.

    Raises:
        BenchError: another process writes to it, or the disk takes no more (nothing written before is lost).
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = open(path, "ab+")  # noqa: SIM115  (held for the life of the journal)
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._file.close()
            raise BenchError(f"{path}: another process is writing this run. Wait for it, or stop it first.") from None
        except OSError as error:
            reason = error.strerror
            raise BenchError(f"{path}: cannot be written: {reason}. Choose another working directory.") from None
        self._cut_torn_line()

    def write(self, line: JournalLine) -> None:
        end = self._file.seek(0, os.SEEK_END)
        try:
            self._file.write(line.model_dump_json().encode() + b"\n")
            self._file.flush()
            os.fsync(self._file.fileno())
        except OSError as error:
            self._undo(end)
            raise BenchError(
                f"{self.path}: cannot be written: {error.strerror}. What was written before is safe. "
                f"Make room, then `bench run --resume {self.path.stem}`."
            ) from None

    def close(self) -> None:
        self._file.close()

    def __enter__(self) -> Journal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _cut_torn_line(self) -> None:
        self._file.seek(0)
        whole = 0
        for line in self._file:
            whole += len(line) if line.endswith(b"\n") else 0
        self._file.truncate(whole)

    def _undo(self, end: int) -> None:
        with contextlib.suppress(OSError):  # closing drops what the failed flush still holds, or fails like it
            self._file.close()
        os.truncate(self.path, end)


def read(path: Path) -> Iterator[JournalLine]:
    """Yield the lines of a journal, plain or gzipped. A torn last line is passed over.

    Raises:
        BenchError: no such file, not a journal, or a broken line before the last; names file and line.
    """
    try:
        with gzip.open(path, "rb") if path.suffix == ".gz" else open(path, "rb") as file:
            for number, text in enumerate(file, 1):
                if not text.strip():
                    continue
                try:
                    yield LINE.validate_json(text)
                except ValidationError as error:
                    if not text.endswith(b"\n") and number > 1:
                        return
                    raise BenchError(f"{path}, line {number}: {_reason(error)}") from None
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise BenchError(f"{path}: cannot be read: {reason}. A journal is a `.jsonl` or `.jsonl.gz` file.") from None


def _reason(error: ValidationError) -> str:
    first = error.errors(include_url=False, include_input=False)[0]
    if first["type"] == "json_invalid":
        return f"not JSON ({first['ctx']['error']}). A journal is a file of JSON lines, as `bench run` writes it."
    where = ".".join(str(part) for part in first["loc"]) or "the line"
    return f"{where}: {first['msg']}. Was it written by another version of bench?"


@dataclass
class History:
    """What a journal says so far: the run, the newest record of each case, the attempts begun.

    `killed` counts, per case, the attempts during which the harness itself was killed.
    """

    run: Run
    records: dict[str, Record] = field(default_factory=dict)
    attempts: dict[str, int] = field(default_factory=dict)
    killed: Counter[str] = field(default_factory=Counter)


def replay(path: Path) -> History:
    """Return the history in a journal.

    Raises:
        BenchError: as `read`, or the journal does not begin with its run.
    """
    lines = read(path)
    run = next(lines, None)
    if not isinstance(run, Run):
        raise BenchError(f"{path}: does not begin with a run. It is no journal of bench, or its first line was lost.")
    history = History(run)
    in_hand: str | None = None
    for line in lines:
        if isinstance(line, Start) and in_hand:
            history.killed[in_hand] += 1
        in_hand = line.case_id if isinstance(line, Start) else None
        if isinstance(line, Start):
            history.attempts[line.case_id] = max(line.attempt, history.attempts.get(line.case_id, 0))
        elif isinstance(line, Record):
            known = history.records.get(line.case.id)
            if known is None or line.attempt >= known.attempt:
                history.records[line.case.id] = line
    if in_hand:
        history.killed[in_hand] += 1
    return history


def find(run: str, folder: Path = FOLDER) -> Path:
    """Return the journal of a run, by unique prefix of its id, `latest`, or the path of a journal.

    Raises:
        UsageError: no such run, or several.
    """
    if run.endswith(".jsonl"):
        if Path(run).is_file():
            return Path(run)
        raise UsageError(f"{run}: no such journal.")
    known = {path.stem: path for path in sorted(folder.glob("*.jsonl"))}
    if not known:
        raise UsageError(f"no run in {folder}/. Start one with `bench run --suite toy`.")
    if run == "latest":
        return known[max(known)]
    fits = [path for stem, path in known.items() if stem.startswith(run)]
    if len(fits) == 1:
        return fits[0]
    if not fits:
        raise UsageError(f"no run {run!r} in {folder}/.{close_to(run, known)} `latest` is the newest.")
    some = ", ".join(path.stem for path in fits[:4])
    raise UsageError(f"{run!r} fits {len(fits)} runs in {folder}/: {some}. Give more of it.")
