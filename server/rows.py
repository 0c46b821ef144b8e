"""Lines of a journal -> rows, and a row -> the record it was made of. Pure."""

from __future__ import annotations

import hashlib
import json
import math
import zlib
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

import numpy as np
from pydantic import BaseModel, ValidationError

from harness.errors import BenchError
from harness.record import Case, Configuration, Environment, Planned, Record, Run
from server.tables import Samples

T = TypeVar("T", bound=BaseModel)

_SAMPLES = ("eager_s", "compiled_s", "eager_first")
"""Fields of a record's `timing` that live in their own table."""


def document(model: BaseModel) -> dict[str, Any]:
    """Return a model as plain JSON values: absent and not-a-number as None."""
    values: dict[str, Any] = json.loads(model.model_dump_json())
    return values


def stored_as(kind: type[T], values: Mapping[str, Any]) -> T:
    """Return the model that a stored document holds.

    Raises:
        BenchError: another version of the schema wrote it, with fields that this one does not know.
    """
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        where = ".".join(str(part) for part in error.errors()[0]["loc"])
        raise BenchError(
            f"the database holds a {kind.__name__} of another version of compile-bench (field {where}). "
            "Read it with the version that wrote it."
        ) from None


def fingerprint(values: Mapping[str, Any]) -> str:
    """Return 16 hexadecimal digits that are equal for equal values."""
    text = json.dumps(values, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def environment_row(environment: Environment) -> dict[str, Any]:
    values = document(environment)
    return {
        "id": fingerprint(values),
        "hard": environment.hard,
        "soft": environment.soft,
        "host": environment.host,
        "cpu": environment.cpu,
        "torch": environment.versions.get("torch"),
        "document": values,
    }


def run_row(run: Run, environment_id: str) -> dict[str, Any]:
    return {
        "id": run.id,
        "environment_id": environment_id,
        "started_at": run.started_at,
        "command": run.command,
        "device": run.profile.name,
        "profile": document(run.profile),
        "protocol": document(run.protocol),
        "doctor": [document(finding) for finding in run.doctor],
        "reference": run.reference,
        "heartbeat_at": run.started_at,
    }


def configuration_row(configuration: Configuration) -> dict[str, Any]:
    values = document(configuration)
    return {
        "id": configuration.id,
        "label": configuration.label,
        "device": configuration.device,
        "mode": configuration.mode.value,
        "precision": configuration.precision.value,
        "backend": configuration.backend,
        "document": values,
    }


def case_row(case: Case) -> dict[str, Any]:
    return {
        "id": case.id,
        "configuration_id": case.configuration.id,
        "suite": case.suite,
        "model": case.model,
        "batch_size": case.batch_size,
        "document": document(case),
    }


def planned_row(run_id: str, position: int, planned: Planned) -> dict[str, Any]:
    return {
        "run_id": run_id,
        "case_id": planned.case.id,
        "position": position,
        "module": planned.module,
        "tolerance": planned.tolerance,
        "timeout_s": planned.timeout_s,
        "accuracy_batch": planned.accuracy_batch,
        "skip": planned.skip,
        "expired": planned.expired,
        "spec": document(planned.spec),
        "attempt": 0,
    }


def result_row(record: Record) -> dict[str, Any]:
    derived, compiled, memory = record.derived, record.compile, record.memory
    speedup = derived.speedup if derived.speedup and math.isfinite(derived.speedup.value) else None
    whole = document(record)
    for name in _SAMPLES if whole["timing"] else ():
        del whole["timing"][name]
    return {
        "id": record.id,
        "run_id": record.run_id,
        "case_id": record.case.id,
        "attempt": record.attempt,
        "started_at": record.started_at,
        "finished_at": record.finished_at,
        "outcome": record.outcome.value,
        "stage": record.stage and record.stage.value,
        "side": record.side and record.side.value,
        "text": record.text or (f"{record.failure.kind}: {record.failure.text}" if record.failure else None),
        "valid": derived.valid,
        "invalid_why": derived.invalid_why,
        "emulated": record.observed.emulated,
        "flags": [flag.value for flag in derived.flags],
        "reference": record.accuracy and record.accuracy.reference.value,
        "speedup": speedup and speedup.value,
        "speedup_low": speedup and _finite(speedup.low),
        "speedup_high": speedup and _finite(speedup.high),
        "speedup_n": speedup and speedup.n,
        "speedup_method": speedup and speedup.method,
        "no_estimate": derived.no_estimate,
        "eager_s": derived.eager_s and _finite(derived.eager_s.value),
        "compiled_s": derived.compiled_s and _finite(derived.compiled_s.value),
        "compile_wall_s": compiled and _finite(compiled.wall_s),
        "compile_cpu_s": compiled and _finite(compiled.cpu_s),
        "graphs": compiled and compiled.graphs,
        "graph_breaks": compiled and compiled.graph_breaks,
        "recompiles": compiled and compiled.recompiles,
        "break_even_steps": _finite(derived.break_even_steps),
        "eager_peak_bytes": memory and memory.eager_peak_bytes,
        "compiled_peak_bytes": memory and memory.compiled_peak_bytes,
        "memory_ratio": _finite(derived.memory_ratio),
        "document": whole,
    }


def samples_row(record: Record) -> dict[str, Any] | None:
    timing = record.timing
    if timing is None:
        return None
    return {
        "result_id": record.id,
        "pairs": len(timing.eager_s),
        "eager_s": pack(timing.eager_s),
        "compiled_s": pack(timing.compiled_s),
        "eager_first": zlib.compress(bytes(timing.eager_first)),
    }


def planned_of(row: Mapping[str, Any], case: Mapping[str, Any]) -> Planned:
    """Return the planned case that `planned_row` was made of."""
    names = set(Planned.model_fields) - {"case"}
    return stored_as(Planned, {"case": case} | {name: row[name] for name in names})


def record_of(whole: Mapping[str, Any], samples: Samples | None = None) -> Record:
    """Return the record that `result_row` and `samples_row` were made of; with no samples where none are given."""
    values = dict(whole)
    if values["timing"] is not None:
        taken: dict[str, Any] = dict.fromkeys(_SAMPLES, ())
        if samples is not None:
            taken["eager_s"], taken["compiled_s"] = unpack(samples.eager_s), unpack(samples.compiled_s)
            taken["eager_first"] = tuple(map(bool, zlib.decompress(samples.eager_first)))
        values["timing"] = values["timing"] | taken
    return stored_as(Record, values)


def pack(values: Iterable[float]) -> bytes:
    """Return numbers as compressed little-endian float64."""
    return zlib.compress(np.asarray(tuple(values), dtype="<f8").tobytes())


def unpack(packed: bytes) -> tuple[float, ...]:
    return tuple(np.frombuffer(zlib.decompress(packed), dtype="<f8").tolist())


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
