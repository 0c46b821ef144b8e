"""What was really there while a case ran, beside what was asked for."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from harness.record import Observed
from harness.worker.collect import State, Step, collect, mutates_inputs
from harness.worker.leaves import Leaves, tensors
from harness.worker.step import Prepared, StepResult
from suites.spec import Precision

INSTRUCTIONS = {
    "bfloat16": {"x86": {"avx512_bf16", "amx_bf16"}, "arm": {"bf16"}},
    "float16": {"x86": {"avx512_fp16", "amx_fp16"}, "arm": {"asimdhp"}},
}
"""CPU flags, any of which means that the CPU can multiply in a number format. As Linux names them."""

_FORMAT = {Precision.BF16: "bfloat16", Precision.FP16: "float16"}


@dataclass
class Sighting:
    """What one eager step let us see from inside the module's calls; None: nothing seen."""

    autocast_dtype: str | None = None
    grad: bool | None = None
    attention_kernel: str | None = None
    """Fused kernels by name; `math`: a call that none served; `spelled out`: batched products around a softmax."""


def look(prepared: Prepared, step: Step, state: State, seed: int) -> Sighting:
    """Run one eager step under watch. A model that cannot be watched (exotic tensors) gives an empty sighting."""
    calls, operators = _Calls(prepared.device_type), _Operators()

    def watched() -> StepResult:
        with calls, operators:
            return step()

    try:
        collect(prepared, watched, state, seed)
    except Exception:  # the watch's fault: the same step ran without it
        return Sighting()
    spelled_out = {"spelled out"} if "bsb" in operators.order else set()
    return Sighting(
        autocast_dtype=name_of(calls.autocast_dtype) if calls.autocast_dtype else None,
        grad=calls.grad,
        attention_kernel=", ".join(sorted(operators.kernels | spelled_out)) or None,
    )


def observe(prepared: Prepared, eager: Leaves, sighting: Sighting, emulated: bool) -> Observed:
    """Return what can be read off the process, the module and what an eager step gave."""
    parameters = list(prepared.module.parameters())
    outputs = [value for value in eager.below("output").values() if isinstance(value, Tensor)]
    return Observed(
        parameters=sum(parameter.numel() for parameter in parameters),
        output_dtypes=_names(value for value in outputs if value.is_floating_point()),
        parameter_dtypes=_names(parameters),
        autocast_dtype=sighting.autocast_dtype,
        batch_size=leading_dimension(prepared.feed.original),
        training=prepared.module.training,
        grad=sighting.grad,
        threads=torch.get_num_threads(),
        tf32=torch.get_float32_matmul_precision() != "highest" or torch.backends.cudnn.allow_tf32,
        deterministic=torch.are_deterministic_algorithms_enabled(),
        emulated=emulated,
        attention_kernel=sighting.attention_kernel,
        dropouts=prepared.dropouts,
        mutates_inputs=mutates_inputs(eager),
        device_type=prepared.device_type,
    )


def leading_dimension(arguments: Any) -> int | None:
    """Return the size of the first dimension of the first tensor that has one."""
    return next((tensor.shape[0] for tensor in tensors(arguments) if tensor.ndim), None)


def emulated_formats(flags: Collection[str], machine: str) -> tuple[str, ...]:
    """Return the number formats that a CPU has no instructions for.

    Args:
        flags: the CPU's flags as in `/proc/cpuinfo` (`flags` on x86, `Features` on ARM).
        machine: architecture as `platform.machine()` gives it.
    """
    family = "arm" if machine.lower().startswith(("aarch64", "arm")) else "x86"
    return tuple(name for name, needed in INSTRUCTIONS.items() if needed[family].isdisjoint(flags))


def is_emulated(precision: Precision, amp_dtype: str | None, flags: Collection[str], machine: str) -> bool:
    """Whether a CPU runs `precision` without instructions for it: its times then say nothing about the compiler."""
    wanted = (amp_dtype or "bfloat16") if precision == Precision.AMP else _FORMAT.get(precision)
    return wanted in emulated_formats(flags, machine)


def name_of(dtype: torch.dtype) -> str:
    """Return `float32` for `torch.float32`."""
    return str(dtype).removeprefix("torch.")


class _Calls(TorchFunctionMode):
    """Sees the calls of torch's functions as the model makes them, above autocast."""

    def __init__(self, device_type: str) -> None:
        super().__init__()
        self.device_type = device_type
        self.autocast_dtype: torch.dtype | None = None
        self.grad: bool | None = None

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if torch.is_autocast_enabled(self.device_type):
            self.autocast_dtype = torch.get_autocast_dtype(self.device_type)
        if self.grad is None:
            self.grad = torch.is_grad_enabled()
        return func(*args, **(kwargs or {}))


class _Operators(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Sees the operators that really run, below autograd and autocast.

    `order` spells matrix products and softmaxes: `b` a batched product, `m` another, `s` a softmax.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.kernels: set[str] = set()
        self.order = ""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func.overloadpacket.__name__
        if kernel := _kernel(name):
            self.kernels.add(kernel)
        self.order += {"bmm": "b", "baddbmm": "b", "mm": "m", "addmm": "m", "_softmax": "s"}.get(name, "")
        return func(*args, **(kwargs or {}))


def _kernel(operator: str) -> str | None:
    """Return the attention kernel that an operator stands for; `_safe_softmax` is used by attention in plain math."""
    starts = ("_scaled_dot_product_", "_flash_attention", "_efficient_attention", "_native_multi_head_attention")
    if operator == "_safe_softmax" or (operator.startswith(starts) and "math" in operator):
        return "math"
    if operator.startswith(starts) and "backward" not in operator:
        return operator.removeprefix("_").removeprefix("scaled_dot_product_")
    return None


def _names(values: Iterable[Tensor]) -> tuple[str, ...]:
    return tuple(sorted({name_of(value.dtype) for value in values}))
