"""Records -> lines of OSS benchmark records, schema v3: one per metric, strict JSON.

A metric's only value is the statistic, since readers take the mean; every sample stands in a second metric beside it.
What the schema has no field for is text in `extra_info`: the interval, its method, how a case ended in our words.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from harness.formats import names
from harness.formats.oss_v3 import BENCHMARK, SAMPLES
from harness.formats.pr_time import INSTRUCTIONS
from harness.formats.pytorch_csv import COUNTERS
from harness.formats.pytorch_write import batch_size, word
from harness.record import UNKNOWN, Environment, Record, Run
from harness.stats import Estimate
from suites.spec import Mode


def lines(run: Run, records: Iterable[Record]) -> Iterator[str]:
    """Yield one JSON object a line for each metric of each record; a figure that is absent or not finite has none.

    Args:
        run: without its plan will do.
        records: the newest of each case.
    """
    head = _head(run)
    for record in records:
        for target, metric in _metrics(record):
            values = head | _subject(run, record, target) | {"inputs": {}, "metric": metric}
            yield json.dumps(values, allow_nan=False, ensure_ascii=False, separators=(",", ":"))


def _head(run: Run) -> dict[str, Any]:
    found: dict[str, Any] = {"timestamp": int(run.started_at.timestamp())} if run.dated else {}
    found |= {"schema_version": "v3", "name": "compile-bench"}
    found |= {"head_branch": run.branch} if run.branch else {}
    found |= {"head_sha": run.commit} if run.commit else {}
    versions = run.environment.versions
    dependency = {"repo": "", "branch": "", "sha": "", "extra_info": {}}
    return found | {
        "runners": [_runner(run)],
        "dependencies": {name: dependency | {"version": version} for name, version in versions.items()},
    }


def _runner(run: Run) -> dict[str, Any]:
    found: Environment = run.environment
    kind = run.profile.kind if run.profile.kind != UNKNOWN else ""
    device = run.profile.name.removeprefix(run.profile.kind).strip("-")
    values = {
        "name": kind,
        "type": device if run.source else (found.product or found.cpu or device),
        "cpu_info": found.cpu,
        "cpu_count": found.cores_usable,
        "avail_mem_in_gb": found.memory_bytes and found.memory_bytes >> 30,
        "gpu_count": found.device_count,
        "avail_gpu_mem_in_gb": found.device_memory_bytes and found.device_memory_bytes >> 30,
    }
    hostname = {"hostname": found.host} if found.host else {}
    return {name: value for name, value in values.items() if value is not None} | {"extra_info": hostname}


def _subject(run: Run, record: Record, target: str) -> dict[str, Any]:
    case, kind = record.case, run.profile.kind
    output = f"{names.written(case.configuration, case.suite, kind, target)}.csv"
    extra: Mapping[str, object | None] = {
        "device": kind if kind != UNKNOWN else None,
        "batch_size": batch_size(record, checked=target == "accuracy"),
        "output": output,
        "variant": case.variant,
        "amp_dtype": case.amp_dtype,
        "is_dynamic": "true" if case.dynamic else None,
        "compile_mode": case.compile_mode,
        "run": run.id,
    }
    dtype = names.dtype_of(case.configuration)
    origin = next((word_ for word_, ours in names.SUITES.items() if ours == case.suite), case.suite)
    return {
        "benchmark": {
            "name": BENCHMARK,
            "mode": case.mode.value if case.mode != Mode.UNKNOWN else "",
            "dtype": dtype if dtype != "notset" else "",
            "extra_info": {name: str(value) for name, value in extra.items() if value is not None},
        },
        "model": {
            "name": case.model,
            "type": "OSS model",
            "backend": case.backend if case.backend != UNKNOWN else "",
            "origins": [origin] if case.suite != UNKNOWN else [],
            "extra_info": {},
        },
    }


def _metrics(record: Record) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each metric, and whether it is of an accuracy or of a performance run."""
    status = word(record)
    if status is not None:
        said = {"outcome": record.outcome, "stage": record.stage, "side": record.side, "text": record.text}
        extra = {name: str(value) for name, value in said.items() if value is not None}
        yield "accuracy", {"name": "accuracy", "extra_info": {"benchmark_values": [status], **extra}}
    found, stated, timing = record.numbers, record.stated, record.timing
    if stated is not None and stated.compiler_s is not None:
        yield "accuracy", _metric("compilation_latency", stated.compiler_s)
    figures: dict[str, float | None] = {
        "eager_latency": _times(_value(found.eager_s), 1e3),
        "abs_latency": _times(_value(found.compiled_s), 1e3),
        "compilation_latency": found.compile_wall_s,
        "compression_ratio": found.memory_ratio,
        "eager_peak_mem": _times(stated.eager_peak_bytes if stated else found.eager_peak_bytes, 1e-9),
        "dynamo_peak_mem": _times(stated.compiled_peak_bytes if stated else found.compiled_peak_bytes, 1e-9),
        "recompiles": found.recompiles,
    }
    counts = {"operators": found.operators, "graphs": found.graphs, "graph_breaks": found.graph_breaks}
    if stated is not None:
        counts |= {"unique_graph_breaks": stated.unique_graph_breaks, "cudagraph_skips": stated.cudagraph_skips}
        figures |= {
            INSTRUCTIONS: stated.instructions,
            "eager_samples_per_s": stated.eager_samples_per_s,
            "compiled_samples_per_s": stated.compiled_samples_per_s,
            **stated.other,
        }
    figures |= {name: counts.get(field) for name, field in COUNTERS.items()}
    if found.speedup is not None and math.isfinite(found.speedup.value):
        yield "performance", _metric("speedup", found.speedup.value, _interval(found.speedup))
    for name, value in figures.items():
        if value is not None and math.isfinite(value):
            yield "performance", _metric(name, value)
    phases = stated.phases_s if stated is not None else record.compile.phases_s if record.compile else {}
    for name, seconds in phases.items():
        yield "performance", {"name": name, "extra_info": {"benchmark_values": [f"{seconds:.6f}"]}}
    if timing is not None:
        yield "performance", _samples("eager_latency", timing.eager_s)
        yield "performance", _samples("abs_latency", timing.compiled_s)


def _metric(name: str, value: float, extra: Mapping[str, str] | None = None) -> dict[str, Any]:
    return {"name": name, "benchmark_values": [value], "extra_info": dict(extra or {})}


def _samples(name: str, seconds: Sequence[float]) -> dict[str, Any]:
    values = [second * 1e3 for second in seconds if math.isfinite(second)]
    return {"name": f"{name}{SAMPLES}", "benchmark_values": values, "extra_info": {"unit": "ms", "order": "as taken"}}


def _interval(estimate: Estimate) -> dict[str, str]:
    parts = {"low": estimate.low, "high": estimate.high, "n": estimate.n, "method": estimate.method}
    return {name: str(value) for name, value in parts.items() if value is not None}


def _value(estimate: Estimate | None) -> float | None:
    return None if estimate is None else estimate.value


def _times(value: float | None, factor: float) -> float | None:
    return None if value is None else value * factor
