"""Results of the timm benchmark: samples per second of many models, eager, or compiled in a file named `-dynamo`.

The two files of a pair often differ in batch size, so a speedup comes from samples per second, never from step times.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from harness.formats.facts import Fact, Format, Machine, Parsed, Where, present
from harness.formats.text import Bad, BadRow, File, Row, table
from harness.record import NO_BACKEND, Cells
from suites.spec import Mode, Precision

_NAME = re.compile(
    r"benchmark-(?P<mode>infer|train)-(?P<dtype>\w+)-(?P<layout>nchw|nhwc)-pt(?P<torch>\d+)"
    r"-(?P<build>cu\d+|cpu|rocm\d+)-(?P<machine>[\w.]+?)(?P<compiled>-dynamo)?"
)
_MODES = {"infer": Mode.INFERENCE, "train": Mode.TRAINING}
_DTYPES: Mapping[str, tuple[Precision, str | None]] = {
    "fp32": (Precision.FP32, None),
    "bf16": (Precision.BF16, None),
    "fp16": (Precision.FP16, None),
    "amp": (Precision.AMP, None),
    "amp_bf16": (Precision.AMP, "bfloat16"),
}
_COMPILED = "-dynamo"
_OTHER = ("param_count", "gmacs", "macts", "img_size")


def fits(header: Iterable[str]) -> bool:
    columns = set(header)
    return "model" in columns and bool(columns & {"infer_samples_per_sec", "train_samples_per_sec"})


def read(file: File) -> Parsed:
    """Return the samples per second of each model, of the eager side or of the compiled one as the file's name says."""
    stem = file.name.removesuffix(".csv")
    compiled = stem.endswith(_COMPILED)
    found = table(file.text)
    kind = "train" if "train_samples_per_sec" in found.header else "infer"
    where, machine = _where(stem, kind)
    facts: list[Fact] = []
    bad = list(found.bad)
    for row in found.rows:
        try:
            facts.append(_fact(file, row, kind, compiled))
        except BadRow as error:
            bad.append(Bad(row.line, str(error)))
    return Parsed(
        file=file,
        format=Format.TIMM,
        facts=facts,
        where=where,
        key=stem.removesuffix(_COMPILED),
        bad=tuple(bad),
        machine={"": machine},
    )


def _where(stem: str, kind: str) -> tuple[Where, Machine]:
    where = Where(suite="timm", mode=_MODES[kind], backend="inductor" if stem.endswith(_COMPILED) else NO_BACKEND)
    found = _NAME.fullmatch(stem)
    if found is None:
        return where, Machine()
    device = {"cu": "cuda", "cp": "cpu", "ro": "rocm"}[found["build"][:2]]
    precision, amp_dtype = _DTYPES.get(found["dtype"], (None, None))
    digits = found["torch"]
    named = Where(
        precision=precision,
        amp_dtype=amp_dtype,
        device=device,
        product=found["machine"],
        variant=found["layout"],
    )
    versions = {"torch": ".".join((digits[0], digits[1:-1], digits[-1]))}
    versions |= {"cuda": f"{found['build'][2:-1]}.{found['build'][-1]}"} if device == "cuda" else {}
    return named.over(where), Machine(values={"versions": versions})


def _fact(file: File, row: Row, kind: str, compiled: bool) -> Fact:
    if not row.text("model"):
        raise BadRow("the name of the model is missing")
    side = "compiled" if compiled else "eager"
    step_s = row.number(f"{kind}_step_time")
    batch = row.number(f"{kind}_batch_size")
    values = {
        f"{side}_samples_per_s": row.number(f"{kind}_samples_per_sec") or None,
        f"{side}_s": None if not step_s else step_s * 1e-3,
    }
    other = {name: row.number(name if name in row.cells else f"{kind}_{name}") for name in _OTHER}
    other[f"{side}_batch_size"] = batch
    return Fact(
        model=row.text("model"),
        row=Cells(file=file.name, line=row.line, cells=row.cells),
        values=present(values | {"other": present(other)}),
        batch_size=int(batch) if batch else None,
        size=row.count(f"{kind}_img_size"),
        notes=tuple(row.notes),
    )
