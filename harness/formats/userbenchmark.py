"""Metrics of a TorchBench userbenchmark: one flat map of long keys to numbers, and to words where there are none."""

from __future__ import annotations

import json
import re
from typing import Any

from harness.formats import names
from harness.formats.facts import Fact, Format, Machine, Parsed, Where
from harness.formats.text import Bad, File
from harness.record import NO_BACKEND, Cells
from suites.spec import Mode, Precision

_LONG = re.compile(
    r"model=(?P<model>.+?), test=(?P<test>\w+), device=(?P<device>\w+), bs=(?P<batch>\w+), "
    r"extra_args=(?P<args>.*), metric=(?P<metric>\w+)"
)
_SHORT = re.compile(r"test_(?P<test>\w+)\[(?P<model>.+)-(?P<device>\w+)-(?P<args>\w+)\]_(?P<metric>\w+)")
_MODES = {"eval": Mode.INFERENCE, "train": Mode.TRAINING}
_PRECISIONS = {"fp32": Precision.FP32, "fp16": Precision.FP16, "bf16": Precision.BF16, "amp": Precision.AMP}
_TIMEOUT = re.compile(r"exceeded timeout", re.IGNORECASE)
_LATENCIES = ("latencies", "latency")
"""In milliseconds."""


def fits(document: Any) -> bool:
    return isinstance(document, dict) and isinstance(document.get("metrics"), dict) and "environ" in document


def read(file: File) -> Parsed:
    """Return the metrics of each model; a word in place of a number is how it ended."""
    document = json.loads(file.text)
    environ = {name: str(value) for name, value in document["environ"].items()}
    facts: list[Fact] = []
    bad: list[Bad] = []
    for line, key, value in _placed(file.text, document["metrics"]):
        found = _LONG.fullmatch(key) or _SHORT.fullmatch(key)
        if found is None:
            bad.append(Bad(line, f'the key "{key}" names no model, device and metric'))
        else:
            facts.append(_fact(file, line, found.groupdict(), key, value))
    name = names.of(file.path)
    where = Where(suite="torchbench", commit=environ.get("pytorch_git_version"), product=environ.get("device"))
    versions = {"torch": environ["pytorch_version"]} if "pytorch_version" in environ else {}
    return Parsed(
        file=file,
        format=Format.USERBENCHMARK,
        facts=facts,
        where=where.over(name.where),
        key=str(file.path),
        bad=tuple(bad),
        machine={"": Machine(values={"versions": versions})},
    )


def _placed(text: str, metrics: dict[str, Any]) -> list[tuple[int, str, Any]]:
    """Return each metric with the line of its key."""
    lines = {
        match[1]: text.count("\n", 0, match.start()) + 1 for match in re.finditer(r'"((?:[^"\\]|\\.)*)"\s*:', text)
    }
    return [(lines.get(json.dumps(key)[1:-1], 1), key, value) for key, value in metrics.items()]


def _fact(file: File, line: int, key: dict[str, str], whole: str, value: Any) -> Fact:
    args = key["args"]
    compiled = "--torchdynamo" in args or "inductor" in args
    backend = re.search(r"--torchdynamo (\w+)", args)
    precision = re.search(r"--precision (\w+)", args)
    number = isinstance(value, int | float) and not isinstance(value, bool)
    side = "compiled" if compiled else "eager"
    values: dict[str, Any] = {}
    if number and key["metric"] in _LATENCIES:
        values[f"{side}_s"] = value * 1e-3
    elif number:  # memory among them: the files do not say in which unit
        values["other"] = {key["metric"]: float(value)}
    batch = key.get("batch")
    return Fact(
        model=key["model"],
        where=Where(
            mode=_MODES.get(key["test"]),
            precision=_PRECISIONS.get(precision[1]) if precision else None,
            device=key["device"],
            backend=backend[1] if backend else NO_BACKEND if not compiled else None,
            variant=args or None,
        ),
        row=Cells(file=file.name, line=line, cells={whole: json.dumps(value)}),
        values=values,
        word=None if number else _word(str(value)),
        batch_size=int(batch) if batch and batch.isdigit() else None,
    )


def _word(text: str) -> str:
    return "timeout" if _TIMEOUT.match(text) else text
