"""`bench list`: what there is to run, what it can run on, and what has been run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from bench import output
from bench.options import DATABASE, Database, Json, named_suites
from harness import config, report
from harness.record import DeviceProfile
from suites.spec import Mode, ModelSpec

if TYPE_CHECKING:
    from server.schemas import Run

app = typer.Typer(add_completion=False, no_args_is_help=True, help="Show suites, models, devices, references, runs.")

Suites = Annotated[
    list[str], typer.Option("--suite", metavar="NAME", help="Only this suite, or a model file (name.py). Repeatable.")
]
Limit = Annotated[int, typer.Option("--limit", min=1, help="At most so many runs.")]


@app.command()
def suites(as_json: Json = False) -> None:
    """Suites, with the number of their models and their tiers."""
    found = [config.suite(name) for name in config.suites()]
    if as_json:
        for suite in found:
            told = suite.model_dump(mode="json", include={"name", "about", "module", "tolerance", "tiers"})
            output.json_line("suite", {**told, "models": len(suite.models)})
        return
    output.rows(
        ("suite", "models", "tiers", "about"),
        [(each.name, str(len(each.models)), ", ".join(each.tiers), each.about) for each in found],
    )


@app.command()
def models(suite: Suites = [], as_json: Json = False) -> None:  # noqa: B006 - typer copies it
    """Models, with the batch sizes of their list; a device divides these."""
    found = [(each.name, model) for each in named_suites(suite or config.suites()) for model in each.models]
    if as_json:
        for name, model in found:
            output.json_line("model", {"suite": name, **model.model_dump(mode="json")})
        return
    columns = ("model", "family", "parameters", "batch", "input size")
    output.rows(columns, [(f"{name}/{model.name}", *_cells(model)) for name, model in found])


@app.command()
def devices(as_json: Json = False) -> None:
    """Device profiles, for --device; verified: by which journals of real runs in examples/."""
    found = [config.device(name) for name in config.devices()]
    if as_json:
        for device in found:
            output.json_line("device", device.model_dump(mode="json"))
        return
    output.rows(
        ("device", "kind", "product", "batch divisor", "limit", "verified", "about"),
        [_device_cells(device) for device in found],
    )


@app.command()
def references(as_json: Json = False) -> None:
    """Configurations of published figures, for --as."""
    for reference in (config.reference(name) for name in config.references()):
        if as_json:
            output.json_line("reference", reference.model_dump(mode="json"))
        else:
            print("\n".join(report.reference_lines(reference)))


@app.command()
def runs(limit: Limit = 20, database: Database = DATABASE, as_json: Json = False) -> None:
    """Runs in the database, newest first."""
    from server.db import connect  # here, so that the other lists need no database
    from server.queries import Queries

    queries = Queries(connect(database))
    found = queries.runs(limit=limit)
    if as_json:
        for run in found:
            output.json_line("listed_run", run.model_dump(mode="json"))
        return
    if not found:
        print("No runs in the database yet. `bench run` makes one, `bench import` brings some in.")
        return
    columns = ("run", "started (UTC)", "state", "passed", "skipped", "device", "host", "torch", "command")
    output.rows(columns, [_run_cells(run) for run in found])
    if (count := queries.count()) > len(found):
        print(f"{len(found)} of {count} runs; --limit {count} shows all.")


def _device_cells(device: DeviceProfile) -> tuple[str, ...]:
    return (
        device.name,
        device.kind,
        device.product or device.architecture or "any",
        str(device.batch_divisor),
        f"{device.timeout_s:g} s",
        _verified(device.verified_by),
        device.about,
    )


def _verified(journals: Sequence[str]) -> str:
    """Return the first journal of a real run, and how many more there are."""
    if not journals:
        return "unverified"
    return journals[0] + (f" and {len(journals) - 1} more" if len(journals) > 1 else "")


def _run_cells(run: Run) -> tuple[str, ...]:
    return (
        run.id,
        f"{run.started_at:%Y-%m-%d %H:%M}",
        run.state,
        f"{run.passed} of {run.planned - run.skipped}",
        str(run.skipped or ""),
        run.device,
        run.host,
        run.torch or "",
        run.command,
    )


def _cells(model: ModelSpec) -> tuple[str, ...]:
    parameters = "" if model.parameters is None else f"{model.parameters:,}"
    batches = [str(model.batch[mode]) if mode in model.batch else "" for mode in Mode]
    sizes = ["x".join(map(str, size)) for size in (model.eval_input_size or model.input_size, model.input_size) if size]
    return (
        model.family or "",
        parameters,
        "/".join(dict.fromkeys(filter(None, batches))),
        "/".join(dict.fromkeys(sizes)),
    )
