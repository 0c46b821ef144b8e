"""`bench import`: journals into the database, each wholly or not at all."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from bench import output
from bench.options import DATABASE, Database, Json
from harness.errors import BenchError
from harness.journal import read
from harness.record import JournalLine, Run

app = typer.Typer(add_completion=False)

Files = Annotated[list[Path], typer.Argument(metavar="FILE...", help="Journals: .jsonl or .jsonl.gz.")]


@app.command()
def main(files: Files, database: Database = DATABASE, as_json: Json = False) -> None:
    """Load journals into the database. What is there already stays as it is."""
    from server.store import Store  # here, so that --help needs no database library

    store = Store.connect(database)
    failed = 0
    for path in files:
        try:
            replayed = store.replay(_lines(path))
        except BenchError as error:
            failed += 1
            print(f"bench: {_named(path, error)} Nothing of this file was stored.", file=sys.stderr)
            continue
        counts = {"new": replayed.new, "already_there": replayed.known, "superseded": replayed.late}
        if as_json:
            output.json_line("import", {"file": str(path), "runs": replayed.runs, **counts})
        else:
            runs = ", ".join(run[:8] for run in replayed.runs)
            told = ", ".join(
                f"{count} {name.replace('_', ' ')}" for name, count in counts.items() if count or name == "new"
            )
            print(f"{path}: journal of run {runs}, {sum(counts.values())} records: {told}")
    store.dispose()
    if failed:
        others = " What the others hold is stored." if failed < len(files) else ""
        raise BenchError(f"{failed} of {len(files)} files could not be imported, see above.{others}")


def _lines(path: Path) -> Iterator[JournalLine]:
    """Yield the lines of a journal, which begins with its run.

    Raises:
        BenchError: it does not, or it cannot be read.
    """
    if path.is_dir():
        raise BenchError(f"{path}: is a folder. Name the journals in it: {path}/*.jsonl, for example.")
    lines = read(path)
    first = next(lines, None)
    if not isinstance(first, Run):
        raise BenchError(f"{path}: does not begin with a run. It is no journal of bench, or its first line was lost.")
    yield first
    yield from lines


def _named(path: Path, error: BenchError) -> str:
    """Return the error's sentence with the file in front, where it is not there already."""
    text = str(error)
    return text if text.startswith(str(path)) else f"{path}: {text}"
