"""`bench push`: whole journals to a server; what it has already is not sent again."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from bench import output
from bench.options import Json, TokenFile, server_at
from harness.errors import BenchError

app = typer.Typer(add_completion=False)

Files = Annotated[list[Path], typer.Argument(metavar="JOURNAL...", help=".jsonl or .jsonl.gz.")]
To = Annotated[str, typer.Option("--server", metavar="URL", envvar="BENCH_SERVER", help="Where to send them.")]


@app.command()
def main(files: Files, server: To, token_file: TokenFile = None, as_json: Json = False) -> None:
    """Send journals to a server. What was sent before is not sent again."""
    from harness.remote import push  # here, so that --help needs no HTTP library

    where = server_at(server, token_file)
    failed = 0
    for path in files:
        try:
            runs, sent = push(where, path)
        except BenchError as error:
            failed += 1
            print(f"bench: {error}", file=sys.stderr)
            continue
        counts = {"new": sent.new, "already_there": sent.known, "superseded": sent.late, "refused": sent.refused}
        if as_json:
            output.json_line("push", {"file": str(path), "runs": runs, **counts, "why": sent.why})
        else:
            named = ", ".join(run[:8] for run in runs)
            told = ", ".join(
                f"{count} {name.replace('_', ' ')}" for name, count in counts.items() if count or name == "new"
            )
            print(f"{path}: run {named}, {sum(counts.values())} records: {told}")
        for why in sent.why:
            print(f"bench: {path}: {why}", file=sys.stderr)
        failed += bool(sent.why)
    if failed:
        raise BenchError(f"{failed} of {len(files)} journals did not arrive as a whole, see above.")
