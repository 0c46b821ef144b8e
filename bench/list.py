"""`bench list`: what there is to run, what it can run on, and what has been run."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from bench import output
from bench.options import DATABASE, Database, Json, named_suites
from harness import config, report
from harness.errors import BenchError
from harness.record import DeviceProfile
from suites.spec import MODES, ModelSpec, SuiteSpec

if TYPE_CHECKING:
    from server.schemas import Run

app = typer.Typer(add_completion=False, no_args_is_help=True, help="Show suites, models, devices, references, runs.")

Suites = Annotated[
    list[str],
    typer.Option("--suite", metavar="NAME", help="Only this suite, all (the 163 models), or a model file. Repeatable."),
]
Limit = Annotated[int, typer.Option("--limit", min=1, help="At most so many runs.")]


@app.command()
def suites(as_json: Json = False) -> None:
    """Suites, with the number of their models and their tiers."""
    found, wrong = config.every_suite()
    if as_json:
        for suite in found:
            told = suite.model_dump(mode="json", include={"name", "about", "module", "published", "tolerance"})
            tiers = {name: tier.model_dump(mode="json") for name, tier in suite.every_tier.items()}
            output.json_line("suite", {**told, "tiers": tiers, "models": len(suite.models)})
    else:
        output.rows(
            ("suite", "models", "tiers", "about"),
            [(each.name, str(len(each.models)), ", ".join(each.every_tier), each.about) for each in found],
        )
    _complain(wrong)


@app.command()
def models(suite: Suites = [], as_json: Json = False) -> None:  # noqa: B006 - typer copies it
    """Models, with the batch sizes of their list, which a device divides; then names that are none, with the reason."""
    suites, wrong = (named_suites(suite), []) if suite else config.every_suite()
    found = [(each.name, model) for each in suites for model in each.models]
    outside = [(each.name, name, why) for each in suites for name, why in each.outside.items()]
    if as_json:
        for name, model in found:
            output.json_line("model", {"suite": name, **model.model_dump(mode="json")})
        for name, none, why in outside:
            output.json_line("outside", {"suite": name, "name": none, "why": why})
        return _complain(wrong)
    columns = ("model", "family", "parameters", "batch", "input size", "small")
    output.rows(columns, [(f"{name}/{model.name}", *_cells(model)) for name, model in found])
    if outside:
        print()
        output.rows(("outside", "why"), [(f"{name}/{none}", why) for name, none, why in outside])
    print(f"\n{_total(suites)}")
    _complain(wrong)


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


def _complain(wrong: Sequence[BenchError]) -> None:
    """End the command with what is wrong with suites that could not be shown; those that could, were."""
    for error in wrong:
        print(f"bench: {error}", file=sys.stderr)
    if wrong:
        raise typer.Exit(BenchError.exit_code)


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
        run.host or "",
        run.torch or "",
        run.command,
    )


def _total(suites: Sequence[SuiteSpec]) -> str:
    """Return `163 models: 46 huggingface, 61 timm, 56 torchbench`."""
    count = sum(len(each.models) for each in suites)
    each_suite = ", ".join(f"{len(each.models)} {each.name}" for each in suites)
    return f"{count} model{'s' * (count != 1)}: {each_suite}"


def _cells(model: ModelSpec) -> tuple[str, ...]:
    parameters = "" if model.parameters is None else f"{model.parameters:,}"
    batches = [str(model.batch[mode]) if mode in model.batch else "" for mode in MODES]
    sizes = ["x".join(map(str, size)) for size in (model.eval_input_size or model.input_size, model.input_size) if size]
    return (
        model.family or "",
        parameters,
        "/".join(dict.fromkeys(filter(None, batches))),
        "/".join(dict.fromkeys(sizes)),
        "yes" if model.small is not None else "",
    )
