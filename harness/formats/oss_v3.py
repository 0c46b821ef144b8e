"""Records of the OSS benchmark database, schema v3: each says one metric of one model in one run.

A file holds an array, one object, or a record or an array a line; older files spell a part as a list, or say
everything on one level. What is no record is skipped with its line, what is no JSON is bad.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from statistics import fmean
from typing import Any

from harness.formats import names
from harness.formats.facts import Fact, Format, Machine, Parsed, Where, present
from harness.formats.pr_time import INSTRUCTIONS
from harness.formats.pytorch_csv import COUNTERS, NOT_COMPARABLE
from harness.formats.text import Bad, File, number, when
from harness.record import Cells
from suites.spec import Mode, Precision

_SCALED: Mapping[str, tuple[str, float]] = {
    "speedup": ("speedup", 1.0),
    "abs_latency": ("compiled_s", 1e-3),
    "eager_latency": ("eager_s", 1e-3),
    "compression_ratio": ("memory_ratio", 1.0),
    "eager_peak_mem": ("eager_peak_bytes", 1e9),
    "dynamo_peak_mem": ("compiled_peak_bytes", 1e9),
    INSTRUCTIONS: ("instructions", 1.0),
    "eager_samples_per_s": ("eager_samples_per_s", 1.0),
    "compiled_samples_per_s": ("compiled_samples_per_s", 1.0),
    "recompiles": ("recompiles", 1.0),
}
"""Metric -> field of `Stated`, and what it is multiplied by."""

_WHOLE = ("eager_peak_bytes", "compiled_peak_bytes", "instructions", "recompiles", *COUNTERS.values())
BENCHMARK = "TorchInductor"
"""The name under which results of torch.compile are: of no suite."""

SAMPLES = "_samples"
"""Ending of a metric whose values are single measurements, beside the metric that is their statistic."""

_ZERO_IS_NONE = ("compression_ratio", "eager_peak_mem", "dynamo_peak_mem")
_PARTS: Mapping[str, tuple[str, ...]] = {
    "benchmark": ("name", "mode", "dtype", "extra_info"),
    "model": ("name", "type", "backend", "origins", "extra_info"),
    "metric": ("name", "benchmark_values", "target_value", "extra_info"),
}
"""Parts that older files spell as a list, in this order."""

_MACHINE: Mapping[str, str] = {"cpu_count": "cores_usable", "gpu_count": "device_count"}
_GIB: Mapping[str, str] = {"avail_mem_in_gb": "memory_bytes", "avail_gpu_mem_in_gb": "device_memory_bytes"}


def read(file: File) -> Parsed:
    """Return what every record says."""
    name = names.of(file.path)
    facts: list[Fact] = []
    bad: list[Bad] = []
    skipped: list[Bad] = []
    machines: dict[str, Machine] = {}
    for line, found in _documents(file.text):
        if isinstance(found, Bad):
            bad.append(found)
            continue
        record = _normalised(found)
        if record is None:
            skipped.append(Bad(line, "no benchmark record: it names no model or metric"))
            continue
        try:
            fact = _fact(file, line, record, found)
        except (TypeError, ValueError, AttributeError) as error:
            bad.append(Bad(line, f"a record with a part of the wrong kind ({error})"))
            continue
        facts.append(fact)
        machines.setdefault(fact.where.product or "", _machine(record))
    return Parsed(
        file=file,
        format=Format.OSS_V3,
        facts=facts,
        where=name.where,
        key=name.key,
        bad=tuple(bad),
        skipped=tuple(skipped),
        machine=machines,
    )


def _documents(text: str) -> Iterator[tuple[int, Any]]:
    """Yield every value of a file with its line; in a document of several lines, its place among the values."""
    try:
        whole = json.loads(text)
    except json.JSONDecodeError:
        for line, each in enumerate(text.splitlines(), 1):
            if each.strip():
                yield from _of_line(line, each)
        return
    if isinstance(whole, list):
        yield from enumerate(whole, 1)
    else:
        yield 1, whole


def _of_line(line: int, text: str) -> Iterator[tuple[int, Any]]:
    try:
        found = json.loads(text)
    except json.JSONDecodeError as error:
        yield line, Bad(line, f"not JSON ({error.msg})")
        return
    for each in found if isinstance(found, list) else [found]:
        yield line, each


def _normalised(found: Any) -> dict[str, Any] | None:
    """Return a record with its parts as objects; None where it is no record."""
    if not isinstance(found, dict):
        return None
    if isinstance(found.get("metric"), str):  # the flat form of 2024
        return _unflattened(found)
    record = dict(found)
    for part, fields in _PARTS.items():
        value = record.get(part)
        if isinstance(value, list):
            named = dict(zip(fields, value, strict=False))
            if part != "benchmark" and len(value) > 2 and isinstance(value[-1], dict):
                named["extra_info"] = value[-1]
            record[part] = named
        elif value is None and part == "benchmark":
            record[part] = {}
    if not isinstance(record.get("metric"), dict) or not isinstance(record.get("model"), dict):
        return None
    return record if record["metric"].get("name") and record["model"].get("name") else None


def _unflattened(found: Mapping[str, Any]) -> dict[str, Any] | None:
    if not found.get("name") or not found.get("metric"):
        return None
    run = ("repo", "head_branch", "workflow_id", "job_id", "run_attempt")
    return {name: found[name] for name in run if name in found} | {
        "benchmark": {"name": found.get("filename", ""), "dtype": found.get("dtype", "")},
        "model": {"name": found["name"]},
        "metric": {"name": found["metric"], "benchmark_values": [found.get("actual")]},
        "runners": [{"name": found.get("device", ""), "type": found.get("arch", "")}],
    }


def _fact(file: File, line: int, record: Mapping[str, Any], found: Any) -> Fact:
    metric, model = record["metric"], record["model"]
    extra = _extra(metric)
    notes: list[str] = []
    where, output = _where(record)
    values, word = _values(metric, extra, output, where.device, notes)
    batch = _extra(record["benchmark"]).get("batch_size")
    keys = ("head_sha", "workflow_id") if record.get("workflow_id") or record.get("head_sha") else ("timestamp",)
    upload = "|".join(str(record[key]) for key in keys if record.get(key))
    text = json.dumps(found, ensure_ascii=False, separators=(",", ":"))
    return Fact(
        model=str(model["name"]),
        where=where,
        row=Cells(file=file.name, line=line, cells={str(metric["name"]): text}),
        values=values,
        word=word,
        batch_size=_whole(batch) or None,
        notes=tuple(notes),
        order=(_whole(record.get("run_attempt")) or 0, _whole(record.get("job_id")) or 0),
        upload=upload or None,
        said={name: str(extra[name]) for name in ("outcome", "stage", "side", "text") if extra.get(name)},
    )


def _where(record: Mapping[str, Any]) -> tuple[Where, str]:
    """Return where a record belongs, and the name of the file that it was written beside."""
    benchmark, model = record["benchmark"], record["model"]
    extra = _extra(benchmark)
    runner = (record.get("runners") or [{}])[0]
    output = str(extra.get("output") or "")
    origins = model.get("origins") or []
    suite = str(origins[0] if origins else extra.get("suite") or "")
    if not suite:
        name = str(benchmark.get("name") or "")
        suite = str(model["type"]) if model.get("type") in names.SUITES else name if name != BENCHMARK else ""
    dtype = names.DTYPES.get(str(benchmark.get("dtype") or ""))
    mode = str(benchmark.get("mode") or "")
    named = names.of(output).where if output else Where()
    device = str(runner.get("name") or extra.get("device") or "") or None
    said = Where(
        suite=names.SUITES.get(suite, suite) or None,
        mode=Mode(mode) if mode in (Mode.TRAINING, Mode.INFERENCE) else None,
        precision=dtype[0] if dtype and dtype[0] != Precision.UNKNOWN else None,
        amp_dtype=str(extra["amp_dtype"]) if extra.get("amp_dtype") else dtype and dtype[1],
        device=device,
        product=str(runner.get("type") or extra.get("arch") or "") or None,
        backend=str(model.get("backend") or "") or None,
        variant=str(extra.get("variant") or "") or None,
        dynamic=str(extra["is_dynamic"]).lower() == "true" if "is_dynamic" in extra else None,
        commit=str(record.get("head_sha") or "") or None,
        branch=str(record.get("head_branch") or "") or None,
        time=when(record["timestamp"]) if record.get("timestamp") else None,
    )
    return said.over(named), output


def _values(
    metric: Mapping[str, Any], extra: Mapping[str, Any], output: str, device: str | None, notes: list[str]
) -> tuple[dict[str, Any], str | None]:
    """Return the fields of `Stated` that a metric gives, and the status that it may be."""
    name = str(metric["name"])
    if name.endswith(SAMPLES):
        return {}, None
    values = metric.get("benchmark_values") or []
    words_ = _texts(extra.get("benchmark_values"))
    if not values and words_:
        return _of_text(name, words_[0], notes)
    numbers = [value for value in values if isinstance(value, int | float) and not isinstance(value, bool)]
    finite = [value for value in numbers if abs(value) < float("inf")]
    if not finite or len(finite) < len(values):
        notes.append(f"{name}: {json.dumps(values)} holds what is no finite number")
    if not finite:
        return {}, None
    value = fmean(finite) if len(finite) > 1 else float(finite[0])
    if value == 0 and name in _ZERO_IS_NONE:
        return {}, None
    field, factor = _field(name, output)
    if field is None:
        return {"other": {name: value}}, None
    found: dict[str, Any] = {field: round(value * factor) if field in _WHOLE else value * factor}
    if field.endswith("peak_bytes") and device in NOT_COMPARABLE:
        found["memory_comparable"] = False
    return found, None


def _field(name: str, output: str) -> tuple[str | None, float]:
    if name == "compilation_latency":
        return ("compiler_s" if names.of(output).target == "accuracy" else "compile_wall_s"), 1.0
    if name in COUNTERS:
        return COUNTERS[name], 1.0
    return _SCALED.get(name, (None, 1.0))


def _of_text(name: str, text: str, notes: list[str]) -> tuple[dict[str, Any], str | None]:
    """Return what a metric with text in place of numbers gives: the status, or the seconds of a compiler phase."""
    if name == "accuracy":
        return {}, text
    try:
        seconds = number(text)
    except ValueError as error:
        notes.append(f"{name}: {error}")
        return {}, None
    return ({} if seconds is None else {"phases_s": {name: seconds}}), None


def _extra(part: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the further facts of a part; a database stores each as text."""
    found = part.get("extra_info") or {}
    if not isinstance(found, dict):
        raise TypeError("extra_info is no object")
    return found


def _texts(value: Any) -> list[str]:
    """Return a list of texts that may itself be text, as a database keeps it."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except json.JSONDecodeError:
            return [value]
    return [str(each) for each in value] if isinstance(value, list) else []


def _whole(value: Any) -> int | None:
    return int(value) if value is not None and str(value).isdigit() else None


def _machine(record: Mapping[str, Any]) -> Machine:
    runner = (record.get("runners") or [{}])[0]
    values: dict[str, Any] = {field: _whole(runner.get(name)) for name, field in _MACHINE.items()}
    values |= {field: (_whole(runner.get(name)) or 0) << 30 or None for name, field in _GIB.items()}
    values["cpu"] = str(runner.get("cpu_info") or "") or None
    values["host"] = _extra(runner).get("hostname")
    found = record.get("dependencies") or {}
    named = {name: each.get("version") for name, each in found.items() if isinstance(each, dict)}
    versions = {name: str(version) for name, version in named.items() if version}
    return Machine(values=present(values | {"versions": versions or None}))
