"""`bench compare`: two runs, or journals, and one verdict per case."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated

import typer

from bench import output
from bench.options import DATABASE, Database, Json
from harness import config, report_compare
from harness.compare import Comparison, Refused, compare
from harness.compare_points import Point, fingerprint, point_of, point_of_plan
from harness.compare_values import change_values, cohort_values, comparison_values, refused_values
from harness.errors import UsageError
from harness.journal import replay
from harness.record import Environment
from harness.report_compare import Side
from harness.report_markdown import markdown

app = typer.Typer(add_completion=False)

FOUND_AGAINST = 3
"""A case regressed, or its outcome got worse."""

JOURNALS = (".jsonl", ".jsonl.gz")

Base = Annotated[str, typer.Argument(metavar="BASE", help="A run: id, unique prefix of it, latest, or a journal.")]
Head = Annotated[str, typer.Argument(metavar="HEAD", help="The run that is held against it.")]
Across = Annotated[bool, typer.Option("--across", help="Compare across machines, device profiles and batch sizes too.")]
Every = Annotated[bool, typer.Option("--all", help="Show the cases that are the same, too.")]
AsMarkdown = Annotated[bool, typer.Option("--markdown", help="For an issue or a pull request.")]


@app.command()
def main(
    base: Base,
    head: Head,
    across: Across = False,
    every: Every = False,
    as_markdown: AsMarkdown = False,
    database: Database = DATABASE,
    as_json: Json = False,
) -> None:
    """Say what regressed, improved, stayed the same or cannot be told. Exit code 3: something got worse."""
    if as_json and as_markdown:
        raise UsageError("--json and --markdown are two forms of one answer: choose one.")
    old, new = _load(base, database), _load(head, database)
    answer = compare(
        old.points,
        new.points,
        across=across,
        environments=(old.environment, new.environment),
        families=_families(),
    )
    if isinstance(answer, Refused):
        if as_json:
            output.json_line("refused", refused_values(answer, asdict(old.side), asdict(new.side)))
        raise UsageError(report_compare.refusal(answer))
    if not any(each.base and each.head for each in answer.changes):
        raise UsageError(report_compare.nothing_common(len(old.points), len(new.points), across))
    if as_json:
        _print_json(answer, old.side, new.side, every)
    elif as_markdown:
        print(markdown(answer, old.side, new.side, unchanged=every))
    else:
        print("\n".join(report_compare.lines(answer, old.side, new.side, unchanged=every)))
    if answer.against:
        raise typer.Exit(FOUND_AGAINST)


def _print_json(answer: Comparison, base: Side, head: Side, every: bool) -> None:
    output.json_line("compared", comparison_values(answer, asdict(base), asdict(head)))
    for change in report_compare.shown(answer, every):
        output.json_line("change", change_values(change))
    for cohort in answer.cohorts:
        output.json_line("cohort", cohort_values(cohort))


@dataclass(frozen=True)
class Loaded:
    """A side as it was found."""

    side: Side
    environment: Environment
    points: list[Point]


def _load(name: str, database: str) -> Loaded:
    """Return a side by its name: a journal's path, or else a run of the database.

    Raises:
        UsageError: there is neither.
    """
    if Path(name).is_file():
        return _journal(Path(name))
    if name.endswith(JOURNALS):
        raise UsageError(f"{name}: no such journal.")
    return _stored(name, database)


def _journal(path: Path) -> Loaded:
    history = replay(path)
    run, hard = history.run, fingerprint(history.run.environment)
    points = [
        point_of(history.records[planned.case.id], hard)
        if planned.case.id in history.records
        else point_of_plan(planned, hard)
        for planned in run.plan
    ]
    side = report_compare.side_of(run.id, run.started_at, run.profile.name, run.environment)
    return Loaded(side, run.environment, points)


def _stored(name: str, database: str) -> Loaded:
    from server import db  # here, so that journals are compared without a database library
    from server.queries import NotFound, Queries
    from server.schemas import RunState

    if not db.exists(database):
        raise UsageError(f"{name!r} is no file, and there is no database {database}. Name two journals, or --database.")
    engine = db.connect(database)
    try:
        queries = Queries(engine)
        run = queries.run(name)
        points = queries.points(run.id)
    except NotFound as error:
        raise UsageError(str(error)) from None
    finally:
        engine.dispose()
    side = report_compare.side_of(run.id, run.started_at, run.device, run.environment)
    if run.state == RunState.RUNNING:
        side = replace(side, about=f"{side.about}, still running")
    return Loaded(side, run.environment, points)


def _families() -> dict[str, str]:
    """Return the family of every model that a suite file names."""
    suites, _ = config.every_suite()
    return {f"{suite.name}/{model.name}": model.family for suite in suites for model in suite.models if model.family}
