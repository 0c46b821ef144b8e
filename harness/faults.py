"""Files that contradict themselves: what their types allow, and what still cannot be meant. Pure; reads no file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from harness.errors import close_to
from harness.lines import Where
from harness.record import DeviceProfile
from suites.spec import FULL_TIER, MODES, PRECISIONS, ModelSpec, Skip, Small, SuiteSpec, Tier

KINDS = ("cpu", "cuda", "mps")
TOLERANCE_KEYS = [*MODES, *PRECISIONS]
AMP_DTYPES = ("bfloat16", "float16")
"""The formats that autocast computes in."""
OURS = {
    "BENCH_CONFIGS": "is read before a device is known",
    "BENCH_PRELOAD": "names what the workers import",
    "CUBLAS_WORKSPACE_CONFIG": "is set by --deterministic",
    "OMP_NUM_THREADS": 'is what "threads" is for',
    "PYTHONHASHSEED": "is drawn anew for each start: one value would hide how far starts differ",
    "TMPDIR": "is a folder of its own for each case",
    "TORCHINDUCTOR_CACHE_DIR": "is a folder of its own for each case",
    "TRITON_CACHE_DIR": "is a folder of its own for each case",
}
"""Environment variables that are not a profile's to set, with the reason."""


@dataclass(frozen=True)
class Fault:
    """What is wrong at a place of a file, and what to do: the end of a sentence that begins with the place."""

    where: Where
    text: str


def of_suite(suite: SuiteSpec, devices: Sequence[str]) -> Iterator[Fault]:
    """Yield what cannot be meant in a suite's file, that of the whole file first.

    Args:
        devices: names of all device profiles, which a skip may name.
    """
    for name, what in (("user", "that of model files given by name"), ("all", "that of `--suite all`")):
        if suite.name == name:
            yield Fault((), f'a suite named "{name}" would be {what}. Name the file otherwise.')
    if not suite.models:
        yield Fault(("model",), "the suite names no model. Add a [[model]].")
    if not all(part.isidentifier() for part in suite.module.split(".")):
        yield Fault(
            ("module",), f'field "module" is "{suite.module}", which cannot be imported. Write it as suites.timm.'
        )
    for mode in MODES:
        if mode not in suite.tolerance:
            yield Fault(("tolerance",), f'field "tolerance.{mode}" is missing. Add it under [tolerance].')
    yield from _tolerances(("tolerance",), suite.tolerance)
    names = [model.name for model in suite.models]
    for index, model in enumerate(suite.models):
        where = ("model", index)
        if names.index(model.name) != index:
            yield Fault((*where, "name"), f"there are {names.count(model.name)} such entries. Keep one.")
        yield from _of_model(where, model)
        yield from _tolerances((*where, "tolerance"), model.tolerance)
        if model.small is not None:
            yield from _tolerances((*where, "small", "tolerance"), model.small.tolerance)
        yield from _of_skips((*where, "skip"), model.skip, devices)
        if model.small is not None:
            yield from _of_small((*where, "small"), model.small, model)
    yield from _of_outside(("outside",), suite.outside, names)
    if FULL_TIER in suite.tiers:
        yield Fault(("tier", FULL_TIER), f'each suite has a tier "{FULL_TIER}", that of every model. Rename this one.')
    for name, tier in suite.tiers.items():
        yield from _of_tier(("tier", name), tier, names)


def _tolerances(where: Where, keys: Iterable[str]) -> Iterator[Fault]:
    for key in keys:
        if key not in TOLERANCE_KEYS:
            yield Fault(
                (*where, key),
                f'field "tolerance" has "{key}", which is no mode or precision.{close_to(key, TOLERANCE_KEYS)} '
                f"Use one of {', '.join(TOLERANCE_KEYS)}.",
            )


def _of_model(where: Where, model: ModelSpec) -> Iterator[Fault]:
    if not model.name:
        yield Fault((*where, "name"), 'field "name" is empty. Give the model a name.')
    if model.build == model.name:
        yield Fault((*where, "build"), 'field "build" says what "name" says. Leave it out.')
    largest = max(model.batch.values(), default=None)
    if model.accuracy_batch is not None and largest is not None and model.accuracy_batch > largest:
        yield Fault(
            (*where, "accuracy_batch"),
            f'field "accuracy_batch" is {model.accuracy_batch}, more than any batch of the entry ({largest}). '
            "Lower it, or leave it out.",
        )
    train, test = model.input_size, model.eval_input_size
    if test is not None and train is None:
        yield Fault(
            (*where, "eval_input_size"), 'field "eval_input_size" stands without "input_size". Give that as well.'
        )
    if train is not None and test is not None and (len(train) != len(test) or train[0] != test[0]):
        yield Fault(
            (*where, "eval_input_size"),
            f'field "eval_input_size" is {list(test)}, and "input_size" {list(train)}: they may differ in height and '
            "width, not in channels. Correct one of them.",
        )


def _of_small(where: Where, small: Small, model: ModelSpec) -> Iterator[Fault]:
    size, whole = small.input_size, model.input_size
    if size is not None and whole is None:
        yield Fault((*where, "input_size"), 'field "small.input_size" stands without "input_size". Give that as well.')
    elif (
        size is not None and whole is not None and (len(size) != len(whole) or (len(size) == 3 and size[0] != whole[0]))
    ):
        yield Fault(
            (*where, "input_size"),
            f'field "small.input_size" is {list(size)}, and "input_size" {list(whole)}: they may differ in height and '
            "width, not in channels. Correct one of them.",
        )
    lengths, repeats = model.length.values(), model.repeats
    for field, value, most in (
        ("length", small.length, min(lengths, default=None)),
        ("repeats", small.repeats, repeats),
    ):
        if value is not None and most is not None and value > most:
            yield Fault((*where, field), f'field "small.{field}" is {value}, more than "{field}" ({most}). Lower it.')


def _of_outside(where: Where, outside: Mapping[str, str], names: Sequence[str]) -> Iterator[Fault]:
    """A name outside may be a glob."""
    for name, why in outside.items():
        if inside := next((model for model in names if fnmatchcase(model, name)), None):
            yield Fault(
                (*where, name), f'field "outside" names "{name}", which is a model of the suite ("{inside}"). Keep one.'
            )
        if not why:
            yield Fault((*where, name), f'field "outside" gives no reason for "{name}". Add it.')


def _of_skips(where: Where, skips: Sequence[Skip], devices: Sequence[str]) -> Iterator[Fault]:
    for index, skip in enumerate(skips):
        known = [*devices, *KINDS]
        if skip.device is not None and skip.device not in known and ":" not in skip.device:
            yield Fault(
                (*where, index, "device"),
                f'field "skip.{index}.device" is "{skip.device}", neither a device profile nor a kind of device '
                f"({', '.join(KINDS)}).{close_to(skip.device, known)} Correct it.",
            )
        for other, wider in enumerate(skips):
            if other != index and _covers(wider, skip) and not (other > index and _covers(skip, wider)):
                yield Fault(
                    (*where, index),
                    f'field "skip.{index}" holds nowhere that "skip.{other}" does not. Keep one of them.',
                )


def _covers(wider: Skip, skip: Skip) -> bool:
    """Say whether one skip holds wherever and as long as the other does."""
    lasts = wider.until is None or (skip.until is not None and skip.until <= wider.until)
    return lasts and all(
        getattr(wider, name) in (None, getattr(skip, name)) for name in ("device", "mode", "precision")
    )


def _of_tier(where: Where, tier: Tier, names: Sequence[str]) -> Iterator[Fault]:
    if not tier.models:
        yield Fault((*where, "models"), 'field "models" is empty. Name some, or remove the tier.')
    for field, listed, known, whole in (
        ("models", tier.models, names, "suite"),
        ("reduced_precision", tier.reduced_precision or (), tier.models, "tier"),
    ):
        for index, name in enumerate(listed):
            if name not in known:
                yield Fault(
                    (*where, field, index),
                    f'field "{field}" names "{name}", which is no model of the {whole}.{close_to(name, known)} '
                    "Correct it.",
                )
            elif name in listed[:index]:
                yield Fault((*where, field, index), f'field "{field}" names "{name}" twice. Keep one.')


def of_device(device: DeviceProfile) -> Iterator[Fault]:
    """Yield what cannot be meant in a device's file."""
    if device.name == "auto":
        yield Fault((), 'a device named "auto" could not be told from `--device auto`. Name the file otherwise.')
    if device.name in KINDS and device.kind != device.name:
        yield Fault(
            ("kind",),
            f'field "kind" is "{device.kind}" in a file named "{device.name}": a skip for that kind would meet both. '
            "Name the file otherwise.",
        )
    if device.kind in ("cpu", "mps"):
        for field, said, meant in (
            ("lock_clocks", device.lock_clocks, "no driver holds its clock"),
            ("clock_mhz", device.clock_mhz is not None, "no driver holds its clock"),
            (
                "device_reserve_bytes",
                device.device_reserve_bytes > 0,
                "its memory is the host's, see memory_reserve_bytes",
            ),
            ("tf32", device.tf32, "TF32 units are NVIDIA's"),
        ):
            if said:
                yield Fault((field,), f'field "{field}" does not go with kind "{device.kind}": {meant}. Remove it.')
    if device.clock_mhz is not None and not device.lock_clocks:
        yield Fault(
            ("clock_mhz",), 'field "clock_mhz" does nothing without "lock_clocks = true". Add that, or remove it.'
        )
    if device.amp_dtype not in AMP_DTYPES:
        yield Fault(
            ("amp_dtype",),
            f'field "amp_dtype" is "{device.amp_dtype}", which autocast does not compute in.'
            f"{close_to(device.amp_dtype, AMP_DTYPES)} Use one of {', '.join(AMP_DTYPES)}.",
        )
    if device.max_seconds > device.timeout_s:
        yield Fault(
            ("max_seconds",),
            f'field "max_seconds" is {device.max_seconds:g}, more than a whole case may take ("timeout_s", '
            f"{device.timeout_s:g}). Lower the one, or raise the other.",
        )
    for field in ("memory_reserve_bytes", "device_reserve_bytes"):
        if (value := getattr(device, field)) < 0:
            yield Fault((field,), f'field "{field}" is {value}. It cannot be below 0.')
    for name in device.environment:
        if name in OURS:
            yield Fault(("environment", name), f'field "environment" sets {name}, which {OURS[name]}. Remove it.')
