"""A small run for tests of the runner, the journal and the sinks."""

from __future__ import annotations

from harness.record import (
    Case,
    DeviceProfile,
    Environment,
    Planned,
    Protocol,
    Record,
    Run,
    RunEnd,
    Stage,
    Start,
    new_run_id,
    now,
)
from suites.spec import Mode, ModelSpec, Precision

GIB = 1 << 30


def make_planned(model: str = "mlp", *, timeout_s: float = 30.0, skip: str | None = None) -> Planned:
    case = Case(
        suite="toy",
        model=model,
        device="cpu",
        mode=Mode.INFERENCE,
        precision=Precision.FP32,
        backend="eager",
        batch_size=2,
    )
    return Planned(
        case=case, spec=ModelSpec(name=model), module="suites.toy", tolerance=1e-4, timeout_s=timeout_s, skip=skip
    )


def make_run(*planned: Planned) -> Run:
    return Run(
        id=new_run_id(),
        started_at=now(),
        command="bench run --suite toy",
        profile=DeviceProfile(name="cpu", kind="cpu"),
        environment=Environment(
            host="h",
            system="Linux",
            kernel="6",
            cpu="c",
            cores_physical=2,
            cores_usable=2,
            memory_bytes=GIB,
            threads=2,
            python="3",
        ),
        protocol=Protocol(memory_limit_bytes=2 * GIB),
        plan=planned or (make_planned(),),
    )


class Heard:
    """A sink that remembers."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, object]] = []

    def open(self, run: Run) -> None:
        self.calls.append(("open", run))

    def start(self, start: Start) -> None:
        self.calls.append(("start", start))

    def stage(self, start: Start, stage: Stage) -> None:
        self.calls.append(("stage", stage))

    def record(self, record: Record) -> None:
        self.calls.append(("record", record))

    def close(self, end: RunEnd) -> None:
        self.calls.append(("close", end))

    def names(self) -> list[str]:
        return [name for name, _ in self.calls]
