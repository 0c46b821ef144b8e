"""Runs and records as the harness would make them, without measuring anything."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from harness.record import (
    Accuracy,
    Case,
    CompileReport,
    Derived,
    DeviceProfile,
    EndReason,
    Environment,
    Failure,
    Flag,
    Memory,
    Observed,
    Outcome,
    Planned,
    Protocol,
    Record,
    Reference,
    Run,
    RunEnd,
    Side,
    Stage,
    Start,
    StopReason,
    Timing,
    record_id,
)
from harness.stats import Estimate
from suites.spec import ModelSpec, Precision

BEGIN = datetime(2026, 8, 12, 1, 0, tzinfo=UTC)
RUN_ID = "0194a3f2-1111-7000-8000-000000000001"
PAIRS = 20


def make_case(model: str = "mlp", suite: str = "toy", precision: str = "fp32", **fields: Any) -> Case:
    values = {"device": "cpu", "mode": "inference", "batch_size": 4, **fields}
    amp = {"amp_dtype": "bfloat16"} if precision == Precision.AMP else {}
    return Case(suite=suite, model=model, precision=Precision(precision), **{**amp, **values})


def make_environment(**fields: Any) -> Environment:
    values = {
        "host": "bench-1",
        "system": "Linux",
        "kernel": "6.1.0",
        "virtualised": "kvm",
        "cpu": "AMD EPYC 7R13",
        "cores_physical": 1,
        "cores_usable": 2,
        "memory_bytes": 24 << 30,
        "cpu_capability": "AVX2",
        "emulated": ("bfloat16", "float16"),
        "threads": 2,
        "compiler": "g++ 12.2.0",
        "python": "3.11.7",
        "versions": {"torch": "2.14.1", "torchvision": "0.29.1", "timm": "1.0.31"},
    }
    return Environment(**{**values, **fields})


def make_run(
    cases: int | Sequence[Case] = 3,
    *,
    id: str = RUN_ID,
    at: datetime = BEGIN,
    skip: dict[str, str] | None = None,
    **fields: Any,
) -> Run:
    """Return a run of `cases` toy models, or of the cases given; `skip` maps a model to its reason."""
    if isinstance(cases, int):
        cases = [make_case(f"model_{number}") for number in range(cases)]
    values = {
        "command": "bench run --suite toy",
        "profile": DeviceProfile(name="cpu", kind="cpu", about="this machine"),
        "environment": make_environment(),
        "protocol": Protocol(),
    }
    plan = tuple(
        Planned(
            case=case,
            spec=ModelSpec(name=case.model, family=case.model),
            module=f"suites.{case.suite}",
            tolerance=0.01,
            timeout_s=600.0,
            skip=(skip or {}).get(case.model),
        )
        for case in cases
    )
    return Run(id=id, started_at=at, plan=plan, **{**values, **fields})


def make_start(case: Case, run_id: str = RUN_ID, attempt: int = 1, at: datetime = BEGIN) -> Start:
    return Start(run_id=run_id, case_id=case.id, attempt=attempt, at=at)


def make_end(run_id: str = RUN_ID, at: datetime = BEGIN + timedelta(hours=1), reason: str = "finished") -> RunEnd:
    return RunEnd(run_id=run_id, at=at, reason=EndReason(reason))


def make_record(
    case: Case,
    outcome: Outcome | str = Outcome.PASS,
    speedup: float | None = 1.25,
    *,
    run_id: str = RUN_ID,
    attempt: int = 1,
    eager_s: float = 0.02,
    emulated: bool = False,
    at: datetime = BEGIN + timedelta(minutes=1),
    flags: Sequence[Flag] = (),
    **fields: Any,
) -> Record:
    """Return a record that ended so; one that passed has times, one that did not has a stage and a text."""
    outcome = Outcome(outcome)
    passed = outcome == Outcome.PASS
    timed = speedup is not None and passed
    marks = tuple(flags) + ((Flag.EMULATED,) if emulated else ())
    return Record(
        **{
            "id": record_id(run_id, case.id, attempt),
            "run_id": run_id,
            "case": case,
            "attempt": attempt,
            "started_at": at - timedelta(seconds=50),
            "finished_at": at,
            "outcome": outcome,
            "stage": None if passed else Stage.COMPILE,
            "side": Side.COMPILED if outcome == Outcome.OOM else None,
            "text": None if passed else f"{outcome.value} while compiling",
            "failure": None if passed else Failure(kind="RuntimeError", text="no such operator"),
            "observed": Observed(parameters=2_540_000, batch_size=case.batch_size, emulated=emulated),
            "accuracy": Accuracy(reference=Reference.FLOAT64, tolerance=0.01, leaves=1) if passed else None,
            "compile": make_compile() if passed else None,
            "timing": make_timing(eager_s, speedup) if timed else None,
            "memory": Memory(eager_peak_bytes=64 << 20, compiled_peak_bytes=48 << 20) if passed else None,
            "derived": make_derived(eager_s, speedup if timed else None, emulated=emulated, flags=marks),
            **fields,
        }
    )


def make_compile(wall_s: float = 27.3, graph_breaks: int = 0) -> CompileReport:
    return CompileReport(
        wall_s=wall_s,
        cpu_s=wall_s * 1.4,
        first_call_s=wall_s + 0.06,
        graphs=1 + graph_breaks,
        operators=120,
        graph_breaks=graph_breaks,
        cache_misses=1,
        cold=True,
        backend="inductor",
        compiled_by="inductor",
    )


def make_timing(eager_s: float, speedup: float) -> Timing:
    """Return `PAIRS` pairs of samples that grow a little, so that no two are alike."""
    growth = [1 + 0.001 * number / 3 for number in range(PAIRS)]
    return Timing(
        eager_s=tuple(eager_s * part for part in growth),
        compiled_s=tuple(eager_s / speedup * part for part in growth),
        eager_first=tuple(number % 3 == 0 for number in range(PAIRS)),
        inner_loops=2,
        warmup_s=1.0,
        sampling_s=4.0,
        stop_reason=StopReason.PRECISE,
    )


def make_derived(
    eager_s: float, speedup: float | None, *, emulated: bool = False, flags: Sequence[Flag] = ()
) -> Derived:
    if speedup is None:
        return Derived(valid=False, invalid_why="there are no times", no_estimate="not timed", flags=tuple(flags))
    compiled_s = eager_s / speedup
    return Derived(
        valid=not emulated,
        invalid_why="bfloat16 is emulated on this machine" if emulated else None,
        speedup=_estimate(speedup),
        eager_s=_estimate(eager_s),
        compiled_s=_estimate(compiled_s),
        break_even_steps=27.3 / (eager_s - compiled_s) if speedup > 1 else None,
        memory_ratio=64 / 48,
        flags=tuple(flags),
    )


def _estimate(value: float) -> Estimate:
    return Estimate(value, value * 0.985, value * 1.015, PAIRS, "order statistics of the median")
