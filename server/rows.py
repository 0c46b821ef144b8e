"""Lines of a journal -> rows, and a row -> the record it was made of. Pure."""

from __future__ import annotations

import hashlib
import json
import math
import zlib
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
from pydantic import BaseModel, ValidationError

from harness.errors import BenchError
from harness.record import Case, Configuration, Environment, Planned, Record, Run, record_id
from harness.signature import signature
from harness.stats import Estimate
from server.tables import Samples

T = TypeVar("T", bound=BaseModel)


class Misfit(BenchError):
    """A line that cannot be stored: it does not fit what is there, or contradicts itself.

    Args:
        case_id: of the line at fault, where that is known.
    """

    def __init__(self, text: str, case_id: str | None = None) -> None:
        super().__init__(text)
        self.case_id = case_id


class UnknownRun(Misfit):
    """A line of a run that was never opened."""


class Conflict(Misfit):
    """Two lines, or a line and what is stored, say different things of the same run."""


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
        "source": run.source,
        "dated": run.dated,
        "trigger": run.trigger,
        "branch": run.branch,
        "commit": run.commit,
        "fork_point": run.fork_point,
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


def entry_row(planned: Planned) -> dict[str, Any]:
    values = {
        "module": planned.module,
        "tolerance": planned.tolerance,
        "timeout_s": planned.timeout_s,
        "accuracy_batch": planned.accuracy_batch,
        "skip": planned.skip,
        "expired": planned.expired,
        "spec": document(planned.spec),
    }
    return {"id": fingerprint(values), **values}


def result_row(record: Record) -> dict[str, Any]:
    """Return the columns of `tables.Result` but its keys.

    Raises:
        Misfit: the record's id is not that of its run, case and attempt.
    """
    if record.id != record_id(record.run_id, record.case.id, record.attempt):
        raise Misfit(
            f"record {record.id} does not belong to attempt {record.attempt} of {record.case} in run {record.run_id}: "
            "an id is derived from these three. The journal is damaged, or was changed by hand.",
            record.case.id,
        )
    derived, found = record.derived, record.numbers
    text = record.text or (f"{record.failure.kind}: {record.failure.text}" if record.failure else None)
    text = text and text.replace("\0", "\N{SYMBOL FOR NULL}")  # PostgreSQL's text has no place for it
    return {
        "id": record.id,
        "attempt": record.attempt,
        "started_at": record.started_at,
        "finished_at": record.finished_at,
        "outcome": record.outcome.value,
        "stage": record.stage and record.stage.value,
        "side": record.side and record.side.value,
        "text": text,
        "signature": signature(record.outcome, record.stage, text),
        "valid": derived.valid,
        "invalid_why": derived.invalid_why,
        "emulated": record.observed.emulated,
        "flags": [flag.value for flag in derived.flags],
        "reference": record.accuracy and record.accuracy.reference.value,
        **_estimate("speedup", found.speedup),
        "speedup_n": found.speedup and found.speedup.n,
        "speedup_method": found.speedup and found.speedup.method,
        "no_estimate": derived.no_estimate,
        **_estimate("eager_s", found.eager_s),
        **_estimate("compiled_s", found.compiled_s),
        "compile_wall_s": _finite(found.compile_wall_s),
        "compile_cpu_s": _finite(found.compile_cpu_s),
        "graphs": found.graphs,
        "graph_breaks": found.graph_breaks,
        "recompiles": found.recompiles,
        "break_even_steps": _finite(found.break_even_steps),
        "eager_peak_bytes": found.eager_peak_bytes,
        "compiled_peak_bytes": found.compiled_peak_bytes,
        "memory_ratio": _finite(found.memory_ratio),
    }


def _estimate(name: str, found: Estimate | None) -> dict[str, float | None]:
    """Return the three columns of an estimate; none of them where its value is no number."""
    if found is None or not math.isfinite(found.value):
        return dict.fromkeys((name, f"{name}_low", f"{name}_high"))
    return {name: found.value, f"{name}_low": _finite(found.low), f"{name}_high": _finite(found.high)}


def packed_detail(record: Record) -> bytes:
    """Return the whole record but its samples: JSON, zlib."""
    bulky = {"timing": set(_SAMPLES)} if record.timing is not None else None
    return zlib.compress(record.model_dump_json(exclude=bulky).encode(), level=1)


def samples_row(record: Record) -> dict[str, Any] | None:
    """Return the columns of `tables.Samples` but its key; None where nothing was timed."""
    timing = record.timing
    if timing is None:
        return None
    return {
        "pairs": len(timing.eager_s),
        "eager_s": pack(timing.eager_s),
        "compiled_s": pack(timing.compiled_s),
        "eager_first": zlib.compress(bytes(timing.eager_first), level=1),
    }


def record_of(detail: bytes, samples: Samples | None = None) -> Record:
    """Return the record that `packed_detail` and `samples_row` were made of; with no samples where none are given."""
    values = json.loads(zlib.decompress(detail))
    if values["timing"] is not None:
        taken: dict[str, Any] = dict.fromkeys(_SAMPLES, ())
        if samples is not None:
            taken["eager_s"], taken["compiled_s"] = unpack(samples.eager_s), unpack(samples.compiled_s)
            taken["eager_first"] = tuple(map(bool, zlib.decompress(samples.eager_first)))
        values["timing"] = values["timing"] | taken
    return stored_as(Record, values)


def pack(values: Sequence[float]) -> bytes:
    """Return numbers as compressed little-endian float64."""
    return zlib.compress(np.asarray(values, dtype="<f8").tobytes(), level=1)


def unpack(packed: bytes) -> tuple[float, ...]:
    return tuple(np.frombuffer(zlib.decompress(packed), dtype="<f8").tolist())


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
