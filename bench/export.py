"""`bench export`: a run as files that others read."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from bench.options import DATABASE, Database
from harness.errors import BenchError, UsageError
from harness.formats import flat, oss_write, pytorch_write
from harness.journal import replay
from harness.record import Record, Run

app = typer.Typer(add_completion=False)


class Format(StrEnum):
    """What to write: a folder of CSV files as the PyTorch runner has them, or one file."""

    PYTORCH_CSV = "pytorch-csv"
    OSS_V3 = "oss-v3"
    CSV = "csv"
    JSON = "json"
    PARQUET = "parquet"


@app.command()
def main(
    run: Annotated[str, typer.Argument(metavar="RUN", help="Id, prefix or latest, in the database; or a journal.")],
    format: Annotated[Format, typer.Option("--format", help="What to write.")],
    target: Annotated[Path, typer.Option("--output", metavar="PATH", help="A new file; of pytorch-csv a folder.")],
    skips: Annotated[
        bool, typer.Option("--skips", help="pytorch-csv: skipped cases as pass_due_to_skip, which counts as a pass.")
    ] = False,
    database: Database = DATABASE,
) -> None:
    """Write a run as files that others read. Nothing that is there is overwritten."""
    head, records = _read(run, database)
    if format == Format.PYTORCH_CSV:
        written = _folder(target, pytorch_write.files(head, records, skips=skips))
    else:
        if skips:
            raise UsageError("--skips goes with --format pytorch-csv alone. Leave it out.")
        with _new(target) as partial:
            _write(format, head, records, partial)
        written = [target]
    print(f"run {head.id[:8]}: {', '.join(map(str, written))}", file=sys.stdout)


def _read(name: str, database: str) -> tuple[Run, Iterable[Record]]:
    if name.endswith((".jsonl", ".jsonl.gz")):
        history = replay(Path(name))
        return history.run, history.records.values()
    from server import db
    from server.queries import Queries

    queries = Queries(db.connect(database))
    head = queries.head(name)
    return head, queries.records(head.id)


def _write(format: Format, head: Run, records: Iterable[Record], path: Path) -> None:
    if format == Format.PARQUET:
        flat.write_parquet(flat.rows(head, records), path)
        return
    if format == Format.OSS_V3:
        pieces: Iterable[str] = (f"{line}\n" for line in oss_write.lines(head, records))
    elif format == Format.CSV:
        pieces = flat.csv_text(flat.rows(head, records))
    else:
        pieces = flat.json_text(flat.rows(head, records))
    with path.open("w", encoding="utf-8", newline="") as file:
        file.writelines(pieces)


def _folder(folder: Path, files: Iterable[tuple[str, str]]) -> list[Path]:
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"--output {folder}: is there already. Name a new or an empty folder.")
    texts = dict(files)  # all of it before the first file: a run that cannot be written leaves nothing
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in texts.items():
            (folder / name).write_text(text, encoding="utf-8", newline="")
    except OSError as error:
        raise BenchError(f"{folder}: cannot be written: {error.strerror}. Name another folder.") from None
    return [folder / name for name in texts]


@contextmanager
def _new(path: Path) -> Iterator[Path]:
    """Yield a name beside `path`, which becomes `path` when all is written; else nothing is left.

    Raises:
        UsageError: it is there already.
        BenchError: it cannot be written.
    """
    if path.exists():
        raise UsageError(f"--output {path}: is there already. Name a new file.")
    partial = None
    try:
        handle, name = tempfile.mkstemp(dir=path.absolute().parent, prefix=f".{path.name}.")
        os.close(handle)
        partial = Path(name)
        yield partial
        partial.chmod(0o644)
        partial.rename(path)
    except OSError as error:
        raise BenchError(f"{path}: cannot be written: {error.strerror}. Name another file.") from None
    finally:
        if partial is not None:
            partial.unlink(missing_ok=True)
