"""What the name of a result file says: `inductor_VARIANT_SUITE_DTYPE_MODE_DEVICE_ARCH_TARGET.csv`.

Read from the right with closed lists, since variants and suites contain underscores. What no list knows stays as it is
written, and what the name does not say stays unknown. `of` reads a name, `written` makes one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePath

from harness.formats.facts import Where
from harness.formats.text import when
from harness.record import UNKNOWN, CompileScope, Configuration, OptimizerKind
from suites.spec import MODES, Attention, Mode, Precision, Preset

SUITES: Mapping[str, str] = {"timm_models": "timm", "torchbench": "torchbench", "huggingface": "huggingface"}
"""Their names of the suites, and ours."""

DTYPES: Mapping[str, tuple[Precision, str | None]] = {
    "float32": (Precision.FP32, None),
    "float16": (Precision.FP16, None),
    "bfloat16": (Precision.BF16, None),
    "amp": (Precision.AMP, None),
    "amp_bf16": (Precision.AMP, "bfloat16"),
    "amp_fp16": (Precision.AMP, "float16"),
    "quant": (Precision.UNKNOWN, None),
    "notset": (Precision.UNKNOWN, None),
}
"""Their words for number formats, with the format of autocast."""

DEVICES = ("cuda", "cpu", "rocm", "xpu", "mps", "hpu")
TARGETS = ("accuracy", "performance")

PLAIN = "default"
"""In the place of a variant where there is none."""

NO_MODE = "nomode"
"""In the place of a mode that is unknown, in names that we write."""

QUANTIZED = "quant"
"""A number format that is none of ours: it stays a word of the variant, so that such runs are told apart."""

_COMPANION = re.compile(r"_(compilation_metrics|graph_breaks(_deduped)?)$")
_COMMIT = re.compile(r"_?(?P<commit>[0-9a-f]{40}|[0-9a-f]{10})$")
_DATE = re.compile(r"[-_]?(?P<date>\d{4}-\d\d-\d\d|\d{14})$")
_BACKENDS: Mapping[str, str] = {"dynamo_eager": "eager", "aot_eager": "aot_eager", "inductor": "inductor"}


@dataclass(frozen=True, slots=True)
class Name:
    """What a name says, whether it is of an accuracy or a performance run, and what its upload shares."""

    where: Where
    target: str | None
    key: str
    """What is left when suite, dtype, mode and target are taken out: files of one upload share it."""


def of(path: str | PurePath) -> Name:
    """Return what the name of a file says; a name that is a date and a commit leaves the rest to its folder."""
    path = PurePath(path)
    stem = path.name.split(".csv")[0].split(".json")[0]
    stem = _COMPANION.sub("", stem)
    rest, commit, time = _dated(stem)
    if (commit or time) and _suite(rest) is None and _is_whole(path.parent.name):
        rest = path.parent.name
    target = next((word for word in TARGETS if re.search(rf"(^|_){word}$", rest)), None)
    if target:
        rest = rest[: -len(target)].rstrip("_")
    where, key = _parts(rest)
    moment = when(time) if time else None
    return Name(Where(commit=commit, time=moment).over(where), target, "|".join(filter(None, (key, commit, time))))


def written(configuration: Configuration, suite: str, kind: str, target: str, *, exact: bool = False) -> str:
    """Return the name, without its ending, that `of` reads back.

    Args:
        kind: of the device, e.g. `cuda`; the rest of the device's name is the machine.
        exact: `amp_bf16` in place of the usual `amp`.
    """
    ours = {name: word for word, name in SUITES.items()}
    mode = NO_MODE if configuration.mode == Mode.UNKNOWN else configuration.mode.value
    device = kind if kind in DEVICES else UNKNOWN
    product = configuration.device.removeprefix(device).strip("-")
    dtype = dtype_of(configuration, exact=exact)
    parts = [_backend(configuration.backend), _variant(configuration), ours.get(suite, suite), dtype, mode, device]
    parts += [re.sub(r"[^\w.+]+", "-", product)] if product else []
    return re.sub(r"[/\\\0]", "-", "_".join([*parts, target]))


def _variant(configuration: Configuration) -> str:
    """Return the variant, or of a run of ours what differs from the plain way, so that no two share a file."""
    found = configuration
    if found.variant is not None:
        return found.variant.removesuffix(f" {QUANTIZED}") if is_quantized(found) else found.variant
    words = [found.preset.value] if found.preset != Preset.FULL else []
    words += [found.compile_mode] if found.compile_mode != "default" else []
    words += ["whole_step"] if found.compile_scope == CompileScope.STEP else []
    words += [found.optimizer.value] if found.optimizer != OptimizerKind.NONE else []
    words += [name for name in ("tf32", "dynamic", "deterministic") if getattr(found, name)]
    words += ["eager_attention"] if found.attention != Attention.FUSED else []
    return "_".join(words) or PLAIN


def is_quantized(configuration: Configuration) -> bool:
    return (configuration.variant or "").split()[-1:] == [QUANTIZED]


def _backend(backend: str) -> str:
    return next((word for word, known in _BACKENDS.items() if known == backend), backend)


def dtype_of(configuration: Configuration, *, exact: bool = False) -> str:
    """Return upstream's word for a number format; `notset` where it is unknown."""
    if is_quantized(configuration):
        return QUANTIZED
    if configuration.precision == Precision.UNKNOWN:
        return "notset"
    amp_dtype = configuration.amp_dtype if exact else None
    return next(word for word, found in DTYPES.items() if found == (configuration.precision, amp_dtype))


def _dated(stem: str) -> tuple[str, str | None, str | None]:
    """Return a stem without its date and commit, and these."""
    commit = time = None
    found = _COMMIT.search(stem)
    if found and (not found["commit"].isdigit() or _DATE.search(stem[: found.start()])):
        commit, stem = found["commit"], stem[: found.start()]
    if found := _DATE.search(stem):
        time, stem = found["date"], stem[: found.start()]
        if len(time) == 14:
            time = f"{time[:8]}T{time[8:]}"
    return stem, commit, time


def _is_whole(text: str) -> bool:
    """Whether all of a folder's name is of the grammar, so that it says what the names in it leave out."""
    found = _suite(text)
    return found is not None and not _tail(text[found.end() :].strip("_"))[1]


def _suite(text: str) -> re.Match[str] | None:
    found = list(re.finditer(rf"(?:^|(?<=_))({'|'.join(SUITES)}|timm)(?=_|$)", text))
    return found[-1] if found else None


def _parts(rest: str) -> tuple[Where, str]:
    """Return what a name without date, commit and target says, and what of it an upload shares."""
    found = _suite(rest)
    if found is None:
        return Where(), rest
    head, tail = rest[: found.start()].strip("_"), rest[found.end() :].strip("_")
    suite = SUITES.get(found[1], found[1])
    values, product = _tail(tail)
    where = Where(suite=suite, product=product or None, **values).over(_head(head))  # type: ignore[arg-type]
    if where.precision == Precision.UNKNOWN and QUANTIZED in tail.split("_"):
        where = Where(variant=f"{where.variant or ''} {QUANTIZED}".strip()).over(where)
    shared = (head, str(values.get("variant") or ""), str(values.get("device") or ""), product)
    return where, "_".join(filter(None, shared))


def _tail(tail: str) -> tuple[dict[str, object], str]:
    """Return what stands behind the suite: dynamic, dtype, mode and device in this order, then the machine."""
    values: dict[str, object] = {}
    if _starts(tail, "dynamic"):
        values |= {"dynamic": True, "variant": "dynamic"}
        tail = _behind(tail, "dynamic")
    for word in sorted(DTYPES, key=len, reverse=True):
        if _starts(tail, word):
            values["precision"], values["amp_dtype"] = DTYPES[word]
            tail = _behind(tail, word)
            break
    for word in (*MODES, NO_MODE):
        if _starts(tail, word):
            values["mode"] = Mode.UNKNOWN if word == NO_MODE else Mode(word)
            tail = _behind(tail, word)
            break
    for word in (*DEVICES, UNKNOWN):
        if _starts(tail, word):
            values["device"] = word if word != UNKNOWN else None
            tail = _behind(tail, word)
            break
    return values, tail


def _head(head: str) -> Where:
    """Return what stands before the suite: the device at times, the backend, and the variant in its own words."""
    device = "cpu" if _starts(head, "cpu") else None
    head = _behind(head, "cpu") if device else head
    for word, backend in _BACKENDS.items():
        found = re.search(rf"(?:^|(?<=_)){word}(?=_|$)", head)
        if found is None:
            continue
        before, after = head[: found.start()].strip("_"), head[found.end() :].strip("_")
        precision = Precision.AMP if _starts(after, "amp") else None
        after = _behind(after, "amp") if precision else after
        # What comes before is the series of a fork (`rolling_`) or what kind of file it is (`expected_ci_perf_`).
        before = "" if before.startswith("expected") else before
        variant = "_".join(filter(None, (before, after)))
        dynamic = True if _starts(after, "dynamic") else None
        return Where(
            device=device,
            backend=backend,
            precision=precision,
            variant=None if variant in ("", PLAIN) else variant,
            dynamic=dynamic,
        )
    if head == UNKNOWN or _starts(head, UNKNOWN):
        head = _behind(head, UNKNOWN)
    elif head.endswith(f"_{PLAIN}"):  # only we write that, behind whatever backend it was
        return Where(device=device, backend=head.removesuffix(f"_{PLAIN}"))
    return Where(device=device, variant=None if head in ("", PLAIN) else head)


def _starts(text: str, word: str) -> bool:
    return text == word or text.startswith(f"{word}_")


def _behind(text: str, word: str) -> str:
    return text[len(word) :].strip("_")
