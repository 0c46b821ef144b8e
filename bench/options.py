"""The options that say what is to be run, declared once for `bench run` and `bench plan`:

    @app.command()
    @selecting
    def main(selection: Selection, database: Database = DATABASE, as_json: Json = False) -> None: ...

Each field of `Selection` is an option of such a command.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import MISSING, dataclass, field, fields
from enum import StrEnum
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_type_hints

import typer

from harness import config
from harness.errors import UsageError
from harness.host import detect
from harness.plan import Matrix, parse_shard, plan
from harness.record import CompileScope, DeviceProfile, OptimizerKind, Planned, now
from harness.reference import ReferenceConfiguration
from server.settings import DEFAULT_DATABASE
from suites import user
from suites.spec import Attention, Mode, Precision, Preset, SuiteSpec

Database = Annotated[
    str,
    typer.Option(
        "--database", metavar="URL", envvar="BENCH_DATABASE", help="Where results are kept: a SQLAlchemy URL."
    ),
]
Json = Annotated[bool, typer.Option("--json", help="One JSON object per line, for machines.")]
DATABASE = DEFAULT_DATABASE
AUTO = "auto"

T = TypeVar("T")


class ModeChoice(StrEnum):
    INFERENCE = "inference"
    TRAINING = "training"
    BOTH = "both"


MODES = {
    ModeChoice.INFERENCE: (Mode.INFERENCE,),
    ModeChoice.TRAINING: (Mode.TRAINING,),
    ModeChoice.BOTH: (Mode.INFERENCE, Mode.TRAINING),
}


@dataclass(frozen=True)
class Selection:
    """What the options say, as they were typed. One field per option."""

    suite: Annotated[
        list[str], typer.Option("--suite", metavar="NAME", help="A suite, or a model file (name.py). Repeatable.")
    ] = field(default_factory=list)
    model: Annotated[
        list[str], typer.Option("--model", metavar="GLOB", help="Only these models: a name or a glob. Repeatable.")
    ] = field(default_factory=list)
    exclude: Annotated[list[str], typer.Option("--exclude", metavar="GLOB", help="Not these models. Repeatable.")] = (
        field(default_factory=list)
    )
    tier: Annotated[str | None, typer.Option("--tier", help="A named part of the suite, e.g. quick.")] = None
    limit: Annotated[int | None, typer.Option("--limit", help="At most so many cases, the cheapest first.")] = None
    mode: Annotated[ModeChoice | None, typer.Option("--mode", help="Default: the tier's, or else both.")] = None
    fp32: Annotated[bool, typer.Option("--fp32", help="Single precision; the default.")] = False
    amp: Annotated[bool, typer.Option("--amp", help="Automatic mixed precision.")] = False
    bf16: Annotated[bool, typer.Option("--bf16", help="Model and inputs in bfloat16.")] = False
    fp16: Annotated[bool, typer.Option("--fp16", help="Model and inputs in float16.")] = False
    tf32: Annotated[bool, typer.Option("--tf32", help="FP32 with TF32 matrix products, on NVIDIA GPUs.")] = False
    backend: Annotated[
        str | None, typer.Option("--backend", help="Any that torch lists, or none: eager alone. Default: inductor.")
    ] = None
    compile_mode: Annotated[
        str | None, typer.Option("--compile-mode", help="Mode of the inductor backend. Default: default.")
    ] = None
    compile_scope: Annotated[
        CompileScope | None,
        typer.Option("--compile-scope", help="Compile the module, or the whole step. Default: module."),
    ] = None
    optimizer: Annotated[
        OptimizerKind | None, typer.Option("--optimizer", help="Step after each backward pass. Default: none.")
    ] = None
    dynamic: Annotated[bool, typer.Option("--dynamic", help="Compile for dynamic shapes.")] = False
    deterministic: Annotated[bool, typer.Option("--deterministic", help="Deterministic kernels only.")] = False
    attention: Annotated[
        Attention | None,
        typer.Option("--attention", help="The library's fused attention, its default, or spelled out as in 2022."),
    ] = None
    preset: Annotated[
        Preset | None,
        typer.Option("--preset", help="Models as published, or cut down to run in seconds. Default: full."),
    ] = None
    device: Annotated[str, typer.Option("--device", metavar="PROFILE", help="See `bench list devices`.")] = AUTO
    batch_size: Annotated[int | None, typer.Option("--batch-size", help="In place of each model's own.")] = None
    timeout: Annotated[
        float | None, typer.Option("--timeout", help="Seconds a case may take. Default: the device's.")
    ] = None
    shard: Annotated[str | None, typer.Option("--shard", metavar="I/N", help="The I-th of N parts of the plan.")] = None
    reference: Annotated[
        str | None,
        typer.Option("--as", metavar="NAME", help="As published figures were measured: see `bench list references`."),
    ] = None

    def matrix(self) -> Matrix:
        """Return what is asked for, in the planner's words."""
        reference, said = self.reference_configuration(), self._said()
        return Matrix(
            suites=tuple(suite.name for suite in self.suites()),
            models=tuple(self.model),
            excludes=tuple(self.exclude),
            tier=self.tier,
            limit=self.limit,
            timeout_s=self.timeout,
            shard=parse_shard(self.shard) if self.shard is not None else None,
            **(reference.agreed(said) if reference is not None else said),
        )

    def _said(self) -> dict[str, Any]:
        """Return the options that say how a case is measured, those that were typed, as fields of a matrix."""
        values = {
            "modes": MODES[self.mode] if self.mode is not None else None,
            "precisions": tuple(each for each in Precision if getattr(self, each.value)) or None,
            "tf32": self.tf32 or None,
            "backend": self.backend,
            "compile_mode": self.compile_mode,
            "compile_scope": self.compile_scope,
            "optimizer": self.optimizer,
            "dynamic": self.dynamic or None,
            "deterministic": self.deterministic or None,
            "attention": self.attention,
            "preset": self.preset,
            "batch_size": self.batch_size,
        }
        return {name: value for name, value in values.items() if value is not None}

    def reference_configuration(self) -> ReferenceConfiguration | None:
        """Return the configuration that `--as` names."""
        return config.reference(self.reference) if self.reference is not None else None

    def suites(self) -> list[SuiteSpec]:
        """Return the suites named; see `named_suites`."""
        if not self.suite:
            raise UsageError(f"Name a suite with --suite: {', '.join(config.suites())}, or a model file (name.py).")
        return named_suites(self.suite)

    def profile(self) -> DeviceProfile:
        """Return the device profile, as `--as` needs it; `auto` is the one that says most about this machine."""
        profile = detect.choose(profiles(), detect.look()) if self.device == AUTO else config.device(self.device)
        reference = self.reference_configuration()
        return reference.on(profile) if reference is not None else profile

    def plan(self) -> tuple[Planned, ...]:
        """Return the ordered cases; see `harness.plan.plan`. A day is one in UTC, as all times of a run are."""
        return plan(self.matrix(), self.suites(), self.profile(), now().date())


def profiles() -> list[DeviceProfile]:
    """Return all device profiles, by name."""
    return [config.device(name) for name in config.devices()]


def named_suites(names: Sequence[str]) -> list[SuiteSpec]:
    """Return the suites in that order; all model files together are one suite, `user`, at the end."""
    files = [Path(name) for name in names if name.endswith(".py")]
    for file in files:
        if not file.is_file():
            raise UsageError(f"--suite {file}: there is no such file.")
    named = [config.suite(name) for name in dict.fromkeys(names) if not name.endswith(".py")]
    return [*named, user.suite(files)] if files else named


def selecting(command: Callable[..., T]) -> Callable[..., T]:
    """Give a command one option per field of `Selection` in place of its parameter `selection`."""
    hints = get_type_hints(Selection, include_extras=True)
    shared = [
        inspect.Parameter(
            each.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=each.default if each.default is not MISSING else [],
            annotation=hints[each.name],
        )
        for each in fields(Selection)
    ]
    own = [
        each.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        for each in inspect.signature(command, eval_str=True).parameters.values()
        if each.name != "selection"
    ]

    @wraps(command)
    def wrapper(**values: Any) -> T:
        chosen = Selection(**{each.name: values.pop(each.name) for each in shared})
        return command(selection=chosen, **values)

    parameters = [*shared, *own]
    vars(wrapper)["__signature__"] = inspect.Signature(parameters)
    wrapper.__annotations__ = {each.name: each.annotation for each in parameters}
    return wrapper
