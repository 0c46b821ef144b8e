"""Prepared models for the tests of the worker's parts, and a process that is as before afterwards."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from harness.record import Case
from harness.worker import accuracy
from harness.worker.collect import NoReference, State, Step, collect, float64_reference, snapshot
from harness.worker.dropout import FUNCTIONAL
from harness.worker.leaves import Leaves
from harness.worker.step import Prepared, make_step, prepare, set_global_state
from suites.spec import Mode, Precision
from suites.workload import Workload

SEED = 7


@dataclass(frozen=True)
class Bench:
    """A prepared model with its eager step and first state."""

    prepared: Prepared
    eager: Step
    state: State

    def collect(self, step: Step | None = None, seed: int = SEED) -> Leaves:
        return collect(self.prepared, step or self.eager, self.state, seed)

    def step_of(self, target: Callable[..., Any]) -> Step:
        return make_step(self.prepared, target)

    def check(self, target: Callable[..., Any], tolerance: float = 1e-3) -> Any:
        """Hold `target`, standing in for the compiled module, against eager and float64."""
        reference = float64_reference(self.prepared, self.state, SEED)
        assert not isinstance(reference, NoReference), reference
        compiled = self.collect(self.step_of(target))
        precision = self.prepared.case.precision
        return accuracy.compare(self.collect(), compiled, reference, tolerance=tolerance, precision=precision)


@pytest.fixture
def bench_of() -> Iterator[Callable[..., Bench]]:
    """Prepare a module as a case asks, in this process; its switches are put back after the test."""
    names = [*FUNCTIONAL, "scaled_dot_product_attention"]
    functions = {name: getattr(functional, name) for name in names}
    dropout, precision = torch.dropout, torch.get_float32_matmul_precision()
    tf32, mkldnn = torch.backends.cudnn.allow_tf32, torch.backends.mkldnn.deterministic

    def make(
        module: nn.Module,
        *args: Any,
        kwargs: Mapping[str, Any] | None = None,
        loss: Callable[[Any], Tensor] | None = None,
        mode: Mode = Mode.INFERENCE,
        precision: Precision = Precision.FP32,
        **more: Any,
    ) -> Bench:
        amp_dtype = "bfloat16" if precision == Precision.AMP else None
        case = Case(
            suite="tests", model="net", device="cpu", mode=mode, precision=precision, amp_dtype=amp_dtype, **more
        )
        set_global_state(case, SEED)
        prepared = prepare(Workload(module, args, kwargs or {}, loss), case)
        return Bench(prepared, make_step(prepared, prepared.module), snapshot(prepared))

    yield make

    torch.set_grad_enabled(True)
    torch.use_deterministic_algorithms(False)
    torch.set_float32_matmul_precision(precision)
    torch.backends.cudnn.allow_tf32 = tf32
    torch.backends.cudnn.deterministic = False
    torch.backends.mkldnn.deterministic = mkldnn
    torch.backends.cuda.allow_fp16_bf16_reduction_math_sdp(True)
    torch.dropout = dropout
    for name, function in functions.items():
        setattr(functional, name, function)
    torch._dynamo.reset()
