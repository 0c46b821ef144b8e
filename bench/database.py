"""`bench db`: what an operator does to the database."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bench import output
from bench.options import DATABASE, Database, Json
from harness.errors import BenchError

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from server.maintenance.prune import Pruned

app = typer.Typer(
    add_completion=False, no_args_is_help=True, help="Upgrade, check, measure, prune or back up the database."
)

Repair = Annotated[bool, typer.Option("--repair", help="Count anew what can be: summaries, counts, heads, newest.")]
KeepRuns = Annotated[
    str | None, typer.Option("--keep", metavar="SPAN", help="Delete runs that are older, e.g. 2y, 26w, 90d.")
]
KeepSamples = Annotated[
    str | None, typer.Option("--keep-samples", metavar="SPAN", help="Delete older runs' samples; figures stay.")
]
KeepDetails = Annotated[
    str | None, typer.Option("--keep-details", metavar="SPAN", help="Delete older runs' whole records; figures stay.")
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Say what would be deleted, and delete nothing.")]
Target = Annotated[Path, typer.Argument(metavar="PATH", help="A file that is not there yet.")]


@app.command()
def upgrade(database: Database = DATABASE, as_json: Json = False) -> None:
    """Create the tables, or bring them to this version's schema; all of it, or nothing."""
    from server import db  # here and below, so that --help needs no database library
    from server.migrations import HEAD

    before = _revision(database)
    db.connect(database).dispose()
    if as_json:
        output.json_line("db_upgrade", {"before": before, "after": HEAD})
    elif before is None:
        print(f"Created with schema {HEAD}.")
    elif before == HEAD:
        print(f"Schema {HEAD} already: nothing to do.")
    else:
        print(f"Upgraded from schema {before} to {HEAD}.")


@app.command()
def check(repair: Repair = False, database: Database = DATABASE, as_json: Json = False) -> None:
    """Is it whole, and does what is kept for pages equal what a recount says? Exit code 1 if something is wrong."""
    from server.maintenance.check import check as look

    engine, found, left = _opened(database), 0, 0
    for fault in look(engine, repair):
        found += 1
        left += not fault.repaired
        if as_json:
            values = {"kind": fault.kind.value, "where": fault.where, "text": fault.text, "repaired": fault.repaired}
            output.json_line("db_fault", values)
        else:
            print(f"{fault.kind}: {fault.where}: {fault.text}{' (repaired)' if fault.repaired else ''}")
    engine.dispose()
    if as_json:
        output.json_line("db_check", {"faults": found, "left": left})
    elif not found:
        print("Nothing is wrong.")
    if left:
        remedy = (
            "Restore a backup, or `bench import` the journals into a new database."
            if repair
            else "`bench db check --repair` counts anew what can be; else restore a backup."
        )
        raise BenchError(f"{left} thing{'s are' if left != 1 else ' is'} wrong with the database, see above. {remedy}")


@app.command()
def stats(database: Database = DATABASE, as_json: Json = False) -> None:
    """Rows and bytes of each table, runs, oldest and newest, and what a night adds."""
    from dataclasses import asdict

    from server.maintenance.sizes import sizes

    engine = _opened(database)
    found = sizes(engine)
    engine.dispose()
    if as_json:
        moments = {"oldest": found.oldest, "newest": found.newest}
        told = {name: moment and moment.isoformat() for name, moment in moments.items()}
        output.json_line("db_stats", {**asdict(found), **told})
        return
    largest = sorted(found.tables, key=lambda table: (-(table.bytes or 0), -table.rows))
    output.rows(
        ("table", "rows", "MiB"), [(table.name, f"{table.rows:,}", _mebibytes(table.bytes)) for table in largest]
    )
    print(f"\nschema {found.schema}, {_mebibytes(found.bytes) or 'unknown'} MiB, {_count(found.runs, 'run')}")
    if found.oldest and found.newest:
        print(f"oldest {found.oldest:%Y-%m-%d %H:%M}, newest {found.newest:%Y-%m-%d %H:%M} UTC")
    if (growth := found.growth) is not None:
        size = "" if growth.bytes_per_night is None else f", about {_mebibytes(growth.bytes_per_night)} MiB"
        print(
            f"a night adds {growth.runs_per_night:.1f} runs, {growth.results_per_night:,.0f} results{size} "
            f"(mean of {_count(growth.nights, 'night')})"
        )


@app.command()
def prune(
    keep: KeepRuns = None,
    keep_samples: KeepSamples = None,
    keep_details: KeepDetails = None,
    dry_run: DryRun = False,
    database: Database = DATABASE,
    as_json: Json = False,
) -> None:
    """Delete what is older than it has to be kept; a run in progress is never touched."""
    from server.maintenance.prune import Keep, duration
    from server.maintenance.prune import prune as remove

    spans = [None if text is None else duration(text) for text in (keep, keep_samples, keep_details)]
    engine = _opened(database)
    gone = remove(engine, Keep(*spans), dry_run=dry_run)
    engine.dispose()
    if as_json:
        values = {name: getattr(gone, name) for name in ("runs", "results", "samples", "details", "series")}
        output.json_line("db_prune", {"dry_run": dry_run, **values, "in_progress": gone.in_progress})
        return
    for line in _pruned(gone, dry_run):
        print(line)


@app.command()
def backup(path: Target, database: Database = DATABASE, as_json: Json = False) -> None:
    """Copy the database into a file, while others write: SQLite as it is, PostgreSQL with pg_dump."""
    from server.maintenance.backup import backup as copy

    engine = _opened(database)
    size = copy(engine, path)
    restore = f"--database sqlite:///{path}" if engine.dialect.name == "sqlite" else f"pg_restore -d NAME {path}"
    engine.dispose()
    if as_json:
        output.json_line("db_backup", {"path": str(path), "bytes": size})
    else:
        print(f"{path}: {_mebibytes(size)} MiB. To use it: {restore}")


def _revision(database: str) -> str | None:
    from server import db

    if not db.exists(database):
        return None
    engine = db.opened(database)
    with db.explained(engine.url), engine.connect() as connection:
        found = db.revision(connection)
    engine.dispose()
    return found


def _opened(database: str) -> Engine:
    """Open a database that is there; asking after one must not make it.

    Raises:
        BenchError: it is not there, or is of another version.
    """
    from server import db

    if not db.exists(database):
        raise BenchError(f"database {database} is not there. Name it with --database, or `bench db upgrade` makes it.")
    return db.connect(database, may_upgrade=False)


def _pruned(gone: Pruned, dry_run: bool) -> list[str]:
    would = "would be removed" if dry_run else "removed"
    lines = [
        f"{_count(len(gone.runs), 'run')} with {_count(gone.results, 'result')} {would}"
        + (f": {gone.runs[0]} to {gone.runs[-1]}" if gone.runs else "")
    ]
    for count, name in ((gone.samples, "samples"), (gone.details, "details")):
        if count:
            lines.append(f"{name} of {_count(count, 'result')} of runs that stay {would}")
    if gone.series:
        lines.append(f"{gone.series} series without any result left {would}")
    if gone.in_progress:
        lines.append(f"left as they are, in progress: {', '.join(gone.in_progress)}")
    return lines


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'s' * (number != 1)}"


def _mebibytes(size: float | None) -> str:
    return "" if size is None else f"{size / 2**20:,.1f}"
