"""Matrix x models x device profile -> the ordered cases of a run. Pure: reads no file, asks no machine.

Order: suites as named; within a suite all FP32 cases before those in reduced precision, so that an
interrupted run leaves a complete FP32 picture; the fewest parameters first, as the cheapest.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from fnmatch import fnmatchcase

from harness.errors import UsageError, close_to
from harness.record import NO_BACKEND, Case, CompileScope, DeviceProfile, OptimizerKind, Planned
from suites.spec import Attention, Mode, ModelSpec, Precision, Preset, Skip, SuiteSpec, Tier

BOTH = (Mode.INFERENCE, Mode.TRAINING)
FILES = "suites.user"
"""Builder of the models that are people's own files."""
CHECKOUT = "suites.checkout"
"""Builder of the models in a person's own checkout of TorchBench."""


@dataclass(frozen=True)
class Matrix:
    """What is asked for: which models, in which configurations. None and empty: not asked, so the default.

    Args:
        models, excludes: names, or globs with `*`, `?` or `[`; either may carry the suite, as in `timm/lcnet*`.
        limit: at most so many cases, the first in order.
        modes: None: those of the tier, or else both.
        batch_size: for every model, in place of its own.
        shard: `(i, n)`, the i-th of n parts, counted from 1.
    """

    suites: tuple[str, ...]
    models: tuple[str, ...] = ()
    excludes: tuple[str, ...] = ()
    tier: str | None = None
    limit: int | None = None
    modes: tuple[Mode, ...] | None = None
    precisions: tuple[Precision, ...] = (Precision.FP32,)
    tf32: bool = False
    backend: str = "inductor"
    compile_mode: str = "default"
    compile_scope: CompileScope = CompileScope.MODULE
    optimizer: OptimizerKind = OptimizerKind.NONE
    dynamic: bool = False
    deterministic: bool = False
    attention: Attention = Attention.FUSED
    preset: Preset = Preset.FULL
    batch_size: int | None = None
    timeout_s: float | None = None
    shard: tuple[int, int] | None = None


def plan(matrix: Matrix, suites: Sequence[SuiteSpec], profile: DeviceProfile, today: date) -> tuple[Planned, ...]:
    """Return the cases of a run in the order in which they run; skipped ones are among them, with their reason.

    Args:
        suites: the suites that `matrix.suites` names, in that order.
        today: a skip holds up to and including its last day.

    Raises:
        UsageError: an option contradicts another or the profile, a name is unknown, or nothing is left.
    """
    _refuse_contradictions(matrix, profile)
    _refuse_unknown_names(matrix, suites)
    _refuse_nothing(matrix, suites)
    _refuse_attention_of_files(matrix, suites)
    _refuse_small(matrix, suites)
    cases = tuple(planned for suite in suites for planned in _suite_cases(matrix, suite, profile, today))
    for precision in matrix.precisions:
        if not any(each.case.precision == precision for each in cases):
            raise UsageError(
                f"--{precision.value}: tier {matrix.tier} runs none of these models in it. Leave out "
                f"--{precision.value} or --tier {matrix.tier}."
            )
    if matrix.optimizer != OptimizerKind.NONE and all(each.case.mode == Mode.INFERENCE for each in cases):
        raise UsageError("--optimizer changes only training, and this plan holds no training. Add --mode training.")
    cases = cases[: matrix.limit]
    if matrix.shard is None:
        return cases
    index, count = matrix.shard
    if not cases[index - 1 :: count]:
        raise UsageError(f"--shard {index}/{count}: nothing is left, as the whole plan holds {len(cases)} cases.")
    return cases[index - 1 :: count]


def parse_shard(text: str) -> tuple[int, int]:
    """Return `(2, 4)` for `2/4`, the second of four parts.

    Raises:
        UsageError: it is not of that form, or not between 1 and the number of parts.
    """
    index, slash, count = text.partition("/")
    if not (slash and index.isascii() and index.isdigit() and count.isascii() and count.isdigit()):
        raise UsageError(f"--shard {text!r}: write it as i/n, e.g. 2/4 for the second of four parts.")
    if not 1 <= int(index) <= int(count):
        raise UsageError(f"--shard {text}: the parts of {int(count)} are numbered 1 to {max(int(count), 1)}.")
    return int(index), int(count)


def matches(pattern: str, suite: str, model: str) -> bool:
    """Say whether a model is meant: exactly by name, or by a glob; never by a mere part of its name."""
    return any(name == pattern or fnmatchcase(name, pattern) for name in (model, f"{suite}/{model}"))


def _refuse_contradictions(matrix: Matrix, profile: DeviceProfile) -> None:
    for option, value in (
        ("--limit", matrix.limit),
        ("--batch-size", matrix.batch_size),
        ("--timeout", matrix.timeout_s),
    ):
        if value is not None and not 0 < value < math.inf:
            raise UsageError(f"{option} {value}: must be above 0, and finite.")
    if matrix.shard is not None and not 1 <= matrix.shard[0] <= matrix.shard[1]:
        parse_shard(f"{matrix.shard[0]}/{matrix.shard[1]}")
    if not matrix.precisions:
        raise UsageError("No precision is named. Give one of --fp32, --amp, --bf16, --fp16.")
    if matrix.tf32 and Precision.FP32 not in matrix.precisions:
        raise UsageError("--tf32 changes only FP32, which is not asked for. Add --fp32, or leave it out.")
    if matrix.tf32 and not profile.tf32:
        raise UsageError(
            f"--tf32 needs an NVIDIA GPU with TF32 units, and device {profile.name} has none. Leave it out."
        )
    if matrix.compile_mode != "default" and matrix.backend != "inductor":
        raise UsageError(
            f"--compile-mode {matrix.compile_mode} changes only the inductor backend, not {matrix.backend}. "
            "Leave one of them out."
        )
    if matrix.backend == NO_BACKEND:
        for option, said in (("--dynamic", matrix.dynamic), ("--compile-scope step", matrix.compile_scope == "step")):
            if said:
                raise UsageError(
                    f"{option} changes what is compiled, and --backend none compiles nothing. Leave it out."
                )
    if matrix.optimizer != OptimizerKind.NONE and matrix.modes == (Mode.INFERENCE,):
        raise UsageError("--optimizer changes only training. Leave it out, or add --mode training.")


def _refuse_unknown_names(matrix: Matrix, suites: Sequence[SuiteSpec]) -> None:
    for suite in suites:
        if matrix.tier is not None and matrix.tier not in (known := suite.every_tier):
            raise UsageError(
                f"Suite {suite.name} has no tier {matrix.tier!r}.{close_to(matrix.tier, known)} "
                f"It has: {', '.join(known)}."
            )
    everything = [(suite.name, model.name) for suite in suites for model in suite.models]
    for option, patterns in (("--model", matrix.models), ("--exclude", matrix.excludes)):
        for pattern in patterns:
            if not any(matches(pattern, *names) for names in everything):
                raise UsageError(_no_such_model(option, pattern, suites))


def _refuse_nothing(matrix: Matrix, suites: Sequence[SuiteSpec]) -> None:
    """Every --model must find a model in the tier as well, and --exclude must leave one."""
    selected = [(suite.name, model.name) for suite in suites for model in _of_tier(suite, matrix.tier)]
    if not selected:
        raise UsageError(f"Nothing to run: suite {', '.join(matrix.suites)} holds no model.")
    for pattern in matrix.models:
        if not any(matches(pattern, *names) for names in selected):
            raise UsageError(f"--model {pattern}: not in tier {matrix.tier}. Leave out --tier {matrix.tier}.")
    wanted = [names for names in selected if not matrix.models or _any_matches(matrix.models, *names)]
    if all(_any_matches(matrix.excludes, *names) for names in wanted):
        raise UsageError(f"Nothing to run: --exclude {' --exclude '.join(matrix.excludes)} removes every model.")


def _refuse_attention_of_files(matrix: Matrix, suites: Sequence[SuiteSpec]) -> None:
    files = next((suite for suite in suites if suite.module == FILES), None)
    if files is not None and matrix.attention != Attention.FUSED:
        raise UsageError(
            f"--attention {matrix.attention}: a model file chooses its own attention ({files.models[0].name}). "
            "Leave the file out, or what asks for it (--attention, --as)."
        )
    if matrix.attention != Attention.FUSED and any(suite.module == CHECKOUT for suite in suites):
        raise UsageError(
            f"--attention {matrix.attention}: the models of a checkout choose their own attention. Leave out "
            "--torchbench (or TORCHBENCH_DIR), or what asks for it (--attention, --as)."
        )


def _refuse_small(matrix: Matrix, suites: Sequence[SuiteSpec]) -> None:
    if matrix.preset == Preset.FULL:
        return
    for suite in suites:
        for model in _selected(matrix, suite):
            if model.small is None:
                raise UsageError(
                    f"--preset small: {suite.name}/{model.name} has no small preset. Leave it out with --exclude, or "
                    "give its entry a `small`."
                )


def _no_such_model(option: str, pattern: str, suites: Sequence[SuiteSpec]) -> str:
    outside = [
        f"{name} is none of {suite.name}'s models: {why}."
        for suite in suites
        for name, why in suite.outside.items()
        if _means(pattern, suite.name, name)
    ]
    if outside:
        return f"{option} {pattern}: {' '.join(outside)}"
    names = [model.name for suite in suites for model in suite.models]
    full = [f"{suite.name}/{model.name}" for suite in suites for model in suite.models]
    near = close_to(pattern, full if "/" in pattern else names)
    holding = sum(pattern in name for name in full)
    as_glob = f" Part of a name is written as a glob: '*{pattern}*' finds {holding}." if holding else ""
    where = ", ".join(each.name for each in suites)
    listed = " ".join(f"--suite {each.name}" for each in suites if each.module not in (FILES, CHECKOUT))
    see = f" See `bench list models {listed}`." if listed else ""
    return f"{option} {pattern}: no such model in {where}.{near}{as_glob}{see}"


def _means(pattern: str, suite: str, outside: str) -> bool:
    """Say whether a name or glob means one outside of a suite, which may be a glob itself."""
    bare = pattern.removeprefix(f"{suite}/")
    return matches(bare, suite, outside) or matches(outside, suite, bare)


def _any_matches(patterns: Iterable[str], suite: str, model: str) -> bool:
    return any(matches(pattern, suite, model) for pattern in patterns)


def _of_tier(suite: SuiteSpec, tier: str | None) -> tuple[ModelSpec, ...]:
    if tier is None:
        return suite.models
    chosen = suite.every_tier[tier].models
    return tuple(model for model in suite.models if model.name in chosen)


def _suite_cases(matrix: Matrix, suite: SuiteSpec, profile: DeviceProfile, today: date) -> list[Planned]:
    tier = suite.every_tier[matrix.tier] if matrix.tier is not None else None
    modes = matrix.modes or (tier.modes if tier else ()) or BOTH
    cases = [
        _planned(matrix, suite, model.at(matrix.preset), mode, precision, profile, today)
        for model in sorted(_selected(matrix, suite), key=_size)
        for mode in dict.fromkeys(modes)
        for precision in dict.fromkeys(matrix.precisions)
        if _in_tier(tier, model, precision)
    ]
    return sorted(cases, key=lambda planned: planned.case.precision != Precision.FP32)


def _selected(matrix: Matrix, suite: SuiteSpec) -> list[ModelSpec]:
    return [
        model
        for model in _of_tier(suite, matrix.tier)
        if not matrix.models or _any_matches(matrix.models, suite.name, model.name)
        if not _any_matches(matrix.excludes, suite.name, model.name)
    ]


def _in_tier(tier: Tier | None, model: ModelSpec, precision: Precision) -> bool:
    if tier is None or tier.reduced_precision is None or precision == Precision.FP32:
        return True
    return model.name in tier.reduced_precision


def _size(model: ModelSpec) -> tuple[bool, int]:
    """Sort key; a sort is stable, so models of unknown size stay last, as their file names them."""
    return model.parameters is None, model.parameters or 0


def _planned(
    matrix: Matrix,
    suite: SuiteSpec,
    model: ModelSpec,
    mode: Mode,
    precision: Precision,
    profile: DeviceProfile,
    today: date,
) -> Planned:
    batch_size = _batch_size(matrix, model, mode, profile)
    checked = model.accuracy_batch or suite.accuracy_batch
    smaller = checked is not None and (batch_size is None or checked < batch_size)
    case = Case(
        device=profile.name,
        mode=mode,
        precision=precision,
        amp_dtype=profile.amp_dtype if precision == Precision.AMP else None,
        tf32=matrix.tf32 and precision == Precision.FP32,
        backend=matrix.backend,
        compile_mode=matrix.compile_mode,
        compile_scope=matrix.compile_scope,
        optimizer=matrix.optimizer if mode == Mode.TRAINING else OptimizerKind.NONE,
        dynamic=matrix.dynamic,
        deterministic=matrix.deterministic,
        attention=matrix.attention,
        preset=matrix.preset,
        suite=suite.name,
        model=model.name,
        batch_size=batch_size,
    )
    skip, expired = _skip(model, case, profile, today)
    return Planned(
        case=case,
        spec=model,
        module=suite.module,
        tolerance=tolerance(suite, model, mode, precision),
        timeout_s=matrix.timeout_s if matrix.timeout_s is not None else profile.timeout_s,
        accuracy_batch=checked if smaller else None,
        skip=skip,
        expired=expired,
    )


def _batch_size(matrix: Matrix, model: ModelSpec, mode: Mode, profile: DeviceProfile) -> int | None:
    if matrix.batch_size is not None:
        return matrix.batch_size
    listed = model.batch.get(mode)
    if listed is None or matrix.preset == Preset.SMALL:  # a small preset is as small on every device
        return listed
    return max(listed // profile.batch_divisor, 1)


def tolerance(suite: SuiteSpec, model: ModelSpec, mode: Mode, precision: Precision) -> float:
    """Return the model's tolerance before the suite's, and in each the precision's before the mode's.

    Raises:
        UsageError: neither says anything about this mode.
    """
    for table in (model.tolerance, suite.tolerance):
        for key in (precision, mode):
            if key.value in table:
                return table[key.value]
    raise UsageError(f"Suite {suite.name} gives no tolerance for {mode.value}. Add it under [tolerance] in its file.")


def _skip(model: ModelSpec, case: Case, profile: DeviceProfile, today: date) -> tuple[str | None, str | None]:
    """Return why a case is not run, and else which skip of it has expired."""
    expired = None
    for skip in model.skip:
        if not _applies(skip, case, profile):
            continue
        if skip.until is None or today <= skip.until:
            return skip.why, None
        expired = expired or f"{skip.why} (until {skip.until})"
    return None, expired


def _applies(skip: Skip, case: Case, profile: DeviceProfile) -> bool:
    """A skip's device is the name of a profile or a kind of device."""
    return (
        skip.device in (None, profile.name, profile.kind)
        and skip.mode in (None, case.mode)
        and skip.precision in (None, case.precision)
    )
