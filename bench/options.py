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
from harness.plan import Matrix, parse_shard, plan
from harness.record import CompileScope, DeviceProfile, OptimizerKind, Planned
from server.settings import DEFAULT_DATABASE
from suites import user
from suites.spec import Attention, Mode, Precision, SuiteSpec

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
    backend: Annotated[str, typer.Option("--backend", help="Any backend that torch lists.")] = "inductor"
    compile_mode: Annotated[str, typer.Option("--compile-mode", help="Mode of the inductor backend.")] = "default"
    compile_scope: Annotated[
        CompileScope, typer.Option("--compile-scope", help="Compile the module, or the whole step.")
    ] = CompileScope.MODULE
    optimizer: Annotated[
        OptimizerKind, typer.Option("--optimizer", help="Optimizer step after each backward pass.")
    ] = OptimizerKind.NONE
    dynamic: Annotated[bool, typer.Option("--dynamic", help="Compile for dynamic shapes.")] = False
    deterministic: Annotated[bool, typer.Option("--deterministic", help="Deterministic kernels only.")] = False
    attention: Annotated[
        Attention, typer.Option("--attention", help="The library's fused attention, or spelled out as in 2022.")
    ] = Attention.FUSED
    device: Annotated[str, typer.Option("--device", metavar="PROFILE", help="See `bench list devices`.")] = AUTO
    batch_size: Annotated[int | None, typer.Option("--batch-size", help="In place of each model's own.")] = None
    timeout: Annotated[
        float | None, typer.Option("--timeout", help="Seconds a case may take. Default: the device's.")
    ] = None
    shard: Annotated[str | None, typer.Option("--shard", metavar="I/N", help="The I-th of N parts of the plan.")] = None

    def matrix(self) -> Matrix:
        """Return what is asked for, in the planner's words."""
        named = [each for each in Precision if getattr(self, each.value)]
        return Matrix(
            suites=tuple(suite.name for suite in self.suites()),
            models=tuple(self.model),
            excludes=tuple(self.exclude),
            tier=self.tier,
            limit=self.limit,
            modes=MODES[self.mode] if self.mode is not None else None,
            precisions=tuple(named) or (Precision.FP32,),
            tf32=self.tf32,
            backend=self.backend,
            compile_mode=self.compile_mode,
            compile_scope=self.compile_scope,
            optimizer=self.optimizer,
            dynamic=self.dynamic,
            deterministic=self.deterministic,
            attention=self.attention,
            batch_size=self.batch_size,
            timeout_s=self.timeout,
            shard=parse_shard(self.shard) if self.shard is not None else None,
        )

    def suites(self) -> list[SuiteSpec]:
        """Return the suites named; see `named_suites`."""
        if not self.suite:
            raise UsageError(f"Name a suite with --suite: {', '.join(config.suites())}, or a model file (name.py).")
        return named_suites(self.suite)

    def profile(self) -> DeviceProfile:
        """Return the device profile; `auto` is the CPU, the only kind of device there is so far."""
        return config.device("cpu" if self.device == AUTO else self.device)

    def plan(self) -> tuple[Planned, ...]:
        """Return the ordered cases; see `harness.plan.plan`."""
        return plan(self.matrix(), self.suites(), self.profile())


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
