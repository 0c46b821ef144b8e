"""The options that say what is to be run, declared once for `bench run` and `bench plan`:

    @app.command()
    @selecting
    def main(selection: Selection, database: Database = DATABASE, as_json: Json = False) -> None: ...

Each field of `Selection` is an option of such a command.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Sequence
from dataclasses import MISSING, dataclass, field, fields
from enum import StrEnum
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, get_type_hints

import typer

from bench.past import durations
from harness import config
from harness.budget import Fitted, fit
from harness.errors import UsageError, close_to
from harness.host import detect
from harness.plan import Matrix, parse_shard, plan
from harness.record import CompileScope, DeviceProfile, Measure, OptimizerKind, Planned, now
from harness.reference import ReferenceConfiguration
from server.settings import DEFAULT_DATABASE
from suites import checkout, user
from suites.find import missing_part
from suites.spec import PRECISIONS, Attention, Mode, Preset, SuiteSpec

Database = Annotated[
    str,
    typer.Option(
        "--database", metavar="URL", envvar="BENCH_DATABASE", help="Where results are kept: a SQLAlchemy URL."
    ),
]
TokenFile = Annotated[
    Path | None,
    typer.Option(
        "--token-file",
        metavar="FILE",
        envvar="BENCH_TOKEN_FILE",
        help="A file that holds the token for --server. Or the token itself, in BENCH_TOKEN.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="One JSON object per line, for machines.")]
DATABASE = DEFAULT_DATABASE
AUTO = "auto"
ALL = "all"
"""In place of a suite: those of the published figures."""
TORCHBENCH = "torchbench"
"""The suite in whose place `--torchbench` puts a checkout's models."""

if TYPE_CHECKING:
    from harness.courier import Server

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
        list[str],
        typer.Option("--suite", metavar="NAME", help="A suite, or all (the 163 models). Repeatable."),
    ] = field(default_factory=list)
    torchbench: Annotated[
        Path | None,
        typer.Option(
            "--torchbench",
            metavar="PATH",
            envvar="TORCHBENCH_DIR",
            help="Suite torchbench is the models of this checkout; without --suite, these.",
        ),
    ] = None
    model: Annotated[
        list[str],
        typer.Option(
            "--model",
            metavar="MODEL",
            help="Only these: a name or a glob. Or a model of your own: name.py, package.module:function. Repeatable.",
        ),
    ] = field(default_factory=list)
    exclude: Annotated[list[str], typer.Option("--exclude", metavar="GLOB", help="Not these models. Repeatable.")] = (
        field(default_factory=list)
    )
    tier: Annotated[str | None, typer.Option("--tier", help="A named part of each suite: quick or full.")] = None
    limit: Annotated[int | None, typer.Option("--limit", help="At most so many cases, the cheapest first.")] = None
    limit_seconds: Annotated[
        float | None,
        typer.Option("--limit-seconds", metavar="S", help="Only what fits into so many seconds, of every kind some."),
    ] = None
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
            models=self._models(),
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
            "precisions": tuple(each for each in PRECISIONS if getattr(self, each.value)) or None,
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
        own = [text for text in self.model if user.parse(text)]
        if not self.suite and self.torchbench is not None and (not own or len(own) < len(self.model)):
            return named_suites([TORCHBENCH], own, self._checkout())
        if not self.suite and not own:
            known = ", ".join((*config.suites(), ALL))
            raise UsageError(f"Name a suite with --suite: {known}, or a model of your own with --model (name.py).")
        if not self.suite and len(own) < len(self.model):
            name = next(text for text in self.model if text not in own)
            raise UsageError(f"--model {name}: in which suite? Name it with --suite. A model of your own ends in .py.")
        return named_suites(self.suite, own, self._checkout() if TORCHBENCH in self.suite else None)

    def _checkout(self) -> SuiteSpec | None:
        if self.torchbench is None:
            return None
        try:
            return checkout.suite(self.torchbench, "cuda" if self.profile().kind == "cuda" else "cpu")
        except ValueError as error:
            raise UsageError(
                f"--torchbench: {error}. Give the folder that holds torchbenchmark/, here or in TORCHBENCH_DIR."
            ) from error

    def _models(self) -> tuple[str, ...]:
        """Return the names and globs; a model of one's own is added to what they choose, not chosen from."""
        own = {str(found) for text in self.model if (found := user.parse(text))}
        names = [text for text in self.model if not user.parse(text)]
        if not names or not own:
            return tuple(names)
        suite = self.suites()[-1]
        return (*names, *(f"{suite.name}/{model.name}" for model in suite.models if model.build in own))

    def profile(self) -> DeviceProfile:
        """Return the device profile, as `--as` needs it; `auto` is the one that says most about this machine."""
        profile = detect.choose(profiles(), detect.look()) if self.device == AUTO else config.device(self.device)
        reference = self.reference_configuration()
        return reference.on(profile) if reference is not None else profile

    def plan(self) -> tuple[Planned, ...]:
        """Return the ordered cases; see `fitted`."""
        return self.fitted().plan

    def fitted(self, database: str = DATABASE, measure: Measure = Measure.ALL) -> Fitted:
        """Return the ordered cases and what fits of them; see `harness.plan.plan` and `harness.budget.fit`.

        A day is one in UTC, as all times of a run are. The limit is that of the shard.

        Args:
            database: where durations of before are.
            measure: what the run will measure.
        """
        matrix, profile = self.matrix(), self.profile()
        planned = plan(matrix, self.suites(), profile, now().date())
        if self.limit_seconds is None:
            return Fitted.whole(planned)
        return fit(planned, durations(database, profile.name, matrix.backend, measure), self.limit_seconds)


def server_at(url: str, token_file: Path | None) -> Server:
    """Return the server that `--server` and `--token-file` name; its token may be in the environment, too.

    There is no option for the token itself: everybody on a machine sees how a command was called.

    Raises:
        UsageError: the address is none, or there is no token.
    """
    from harness.courier import server  # here, so that plans and help need no HTTP library

    return server(url, token_file, os.environ.get("BENCH_TOKEN"))


def profiles() -> list[DeviceProfile]:
    """Return all device profiles, by name."""
    return [config.device(name) for name in config.devices()]


def named_suites(
    names: Sequence[str], models: Sequence[str] = (), torchbench: SuiteSpec | None = None
) -> list[SuiteSpec]:
    """Return the suites in that order; all models of one's own together are one suite, `user`, at the end.

    Args:
        names: of suites; `all` stands for those of the published figures. One may be a model of one's own as well.
        models: of one's own, each a file or a function; see `suites.user`.
        torchbench: in place of the suite of that name, where it is named itself; `all` means ours.
    """
    own = [name for name in names if user.parse(name)]
    for option, texts in (("--suite", own), ("--model", models)):
        for text in texts:
            _refuse_missing(option, text)
    named: dict[str, SuiteSpec] = {}
    for name in names:
        if name not in own:
            chosen = torchbench if torchbench is not None and name == TORCHBENCH else None
            found = [chosen] if chosen else config.published() if name == ALL else [config.suite(name)]
            named |= {each.name: each for each in found}
    return [*named.values(), *([user.suite([*own, *models])] if own or models else [])]


def _refuse_missing(option: str, text: str) -> None:
    """What is there is looked at without importing it; what it holds is found out when the model is built."""
    own = user.parse(text)
    if own is None:
        return
    if own.file is not None:
        if not own.file.is_file():
            close = close_to(own.file.name, (each.name for each in own.file.parent.glob("*.py")))
            raise UsageError(f"{option} {text}: there is no such file.{close} Correct the path.")
    elif missing := missing_part(own.place, Path.cwd()):
        raise UsageError(
            f"{option} {text}: there is no module {missing}, neither in {Path.cwd()} nor installed. "
            "Correct the name, change directory, or install it."
        )


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
