"""Workload + precision -> an inference or training step, a callable of no arguments.

`set_global_state` comes first, once per case; `prepare` moves and casts; `make_step` wraps the
eager or the compiled module. Both sides share one module, one optimizer and one `InputFeed`.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy
import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from harness.record import Case, OptimizerKind
from harness.worker.dropout import lower_dropouts, lower_functional_dropouts
from harness.worker.leaves import map_tensors, tensors
from suites.spec import Mode, Precision
from suites.workload import Workload

LEARNING_RATE = 0.01
"""As upstream."""

ADAM_EPSILON = 1e-3
"""Adam's first step divides each gradient by its own size: with the usual 1e-8 the rounding noise of a gradient that is
zero in theory (a bias before a batch norm) becomes a full step of random sign. Same kernels, same cost."""

Arguments = tuple[tuple[Any, ...], dict[str, Any]]

_CAST = {Precision.BF16: torch.bfloat16, Precision.FP16: torch.float16}


class StepResult(NamedTuple):
    """What one step gave: the module's output, and in training the detached loss."""

    output: Any
    loss: Tensor | None


class InputFeed:
    """The arguments of each call.

    By default the same tensors every time. Once `mutated` is set (the model writes into its
    inputs), every call gets a clone of the originals: those that `arm` laid out outside the
    clock, or one made on the spot.
    """

    def __init__(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.original: Arguments = (args, kwargs)
        self.mutated = False
        self._laid_out: list[Arguments] = []

    def __call__(self) -> Arguments:
        if self._laid_out:
            return self._laid_out.pop()
        return self.clone() if self.mutated else self.original

    def arm(self, calls: int) -> None:
        """Lay out a clone for each of the next `calls` calls, if the model writes into its inputs at all."""
        self._laid_out = [self.clone() for _ in range(calls)] if self.mutated else []

    @contextmanager
    def serving(self, arguments: Arguments) -> Iterator[None]:
        """Give the next call `arguments`, whatever was laid out before."""
        kept, self._laid_out = self._laid_out, [arguments]
        try:
            yield
        finally:
            self._laid_out = kept

    def clone(self) -> Arguments:
        """Return the arguments with every tensor, at any depth, apart from the original."""
        cloned: Arguments = map_tensors(self.original, clone_tensor)
        return cloned


@dataclass(frozen=True)
class Prepared:
    """A workload in the precision and mode of its case, on its device."""

    case: Case
    module: nn.Module
    feed: InputFeed
    loss: Callable[[Any], Tensor]
    optimizer: Optimizer | None
    device_type: str
    dropouts: int = 0
    """Dropout probabilities that were lowered to nearly zero."""
    parameters: tuple[nn.Parameter, ...] = field(default=(), repr=False)
    """Those that take a gradient."""

    @property
    def training(self) -> bool:
        return self.case.mode == Mode.TRAINING

    @property
    def autocast_dtype(self) -> torch.dtype | None:
        if self.case.precision != Precision.AMP:
            return None
        dtype = getattr(torch, self.case.amp_dtype or "bfloat16")
        assert isinstance(dtype, torch.dtype), dtype
        return dtype


def seed_everything(seed: int) -> None:
    """Restart the streams of torch (all devices), random and numpy."""
    torch.manual_seed(seed)
    random.seed(seed)
    numpy.random.seed(seed)


def set_global_state(case: Case, seed: int) -> None:
    """Set the process's switches for this case, once and before anything is compiled.

    Each later change makes the compiler compile again, and after eight times a frame silently
    runs eager: nothing else in the worker touches these.
    """
    torch.set_grad_enabled(case.mode == Mode.TRAINING)
    torch.set_float32_matmul_precision("high" if case.tf32 else "highest")
    torch.backends.cudnn.allow_tf32 = case.tf32
    if case.deterministic:
        os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"
        torch.use_deterministic_algorithms(True)
        # Filling fresh memory with NaN costs time on the eager side alone.
        torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]
        torch.backends.cudnn.deterministic = True
        torch.backends.cudnn.benchmark = False
        torch.backends.mkldnn.deterministic = True  # type: ignore[assignment]
        torch.backends.cuda.allow_fp16_bf16_reduction_math_sdp(False)
    seed_everything(seed)


def prepare(workload: Workload, case: Case, device_type: str = "cpu") -> Prepared:
    """Move, cast and switch the workload's module as its case asks; the module itself is changed.

    BF16 and FP16 cast parameters, buffers and floating inputs; AMP leaves them in float32. The
    mode switches train or eval, whatever the builder left. Dropout runs at nearly zero.
    """
    dtype = _CAST.get(case.precision)
    module = workload.module.to(device_type, dtype).train(case.mode == Mode.TRAINING)
    lower_functional_dropouts()
    args, kwargs = map_tensors((tuple(workload.args), dict(workload.kwargs)), lambda t: _move(t, device_type, dtype))
    return assemble(case, module, InputFeed(args, kwargs), workload.loss, device_type, lower_dropouts(module))


def assemble(
    case: Case,
    module: nn.Module,
    feed: InputFeed,
    loss: Callable[[Any], Tensor] | None,
    device_type: str,
    dropouts: int = 0,
) -> Prepared:
    """Return a `Prepared` of parts that are moved and cast already, with an optimizer if the case has one."""
    parameters = tuple(p for p in module.parameters() if p.requires_grad)
    training = case.mode == Mode.TRAINING
    return Prepared(
        case=case,
        module=module,
        feed=feed,
        loss=loss or mean_loss,
        optimizer=_optimizer(case.optimizer, parameters) if training and parameters else None,
        device_type=device_type,
        dropouts=dropouts,
        parameters=parameters,
    )


def make_step(
    prepared: Prepared,
    target: Callable[..., Any],
    compile_step: Callable[[Callable[..., StepResult]], Callable[..., StepResult]] | None = None,
) -> Callable[[], StepResult]:
    """Return the step of `prepared` around `target`, its module or the compiled one.

    Inference is a call under no_grad. Training is gradients to None, forward, loss, backward and the
    optimizer's step if there is one. Autocast is entered and left on every call, around the module
    alone. For the compile scope `step`, `compile_step` (e.g. `torch.compile`) is applied to the function
    `(args, kwargs) -> StepResult`; taking the next arguments from the feed stays outside, since each
    change of the feed would compile again.
    """
    run = _training(prepared, target) if prepared.training else _inference(prepared, target)
    if compile_step is not None:
        run = compile_step(run)
    feed = prepared.feed

    def step() -> StepResult:
        args, kwargs = feed()
        return run(args, kwargs)

    return step


def mean_loss(output: Any) -> Tensor:
    """Return the mean, over the floating tensors of `output`, of each one's mean, in float32 at least."""
    leaves = [output] if isinstance(output, Tensor) else tensors(output)
    leaves = [torch.view_as_real(leaf) if leaf.is_complex() else leaf for leaf in leaves]
    means = [_at_least_float32(leaf).mean() for leaf in leaves if leaf.is_floating_point() and leaf.numel()]
    if not means:
        raise ValueError("the output holds no floating tensor to take a loss of; give the workload a loss")
    return torch.stack(means).mean() if len(means) > 1 else means[0]


def clone_tensor(tensor: Tensor) -> Tensor:
    """Return a leaf with the values, strides and `requires_grad` of `tensor` in memory of its own."""
    plain = tensor.detach()
    clone = plain.clone()
    plainly_strided = tensor.layout == torch.strided and not tensor.is_quantized and not tensor.is_nested
    if plainly_strided and clone.stride() != tensor.stride():
        extent = 1 + sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
        memory = plain.as_strided((extent,), (1,)).clone()
        clone = memory.as_strided(tensor.shape, tensor.stride(), 0).detach()
    return clone.requires_grad_(tensor.requires_grad)


def _inference(prepared: Prepared, target: Callable[..., Any]) -> Callable[..., StepResult]:
    forward = _forward(prepared, target)

    def run(args: tuple[Any, ...], kwargs: dict[str, Any]) -> StepResult:
        return StepResult(forward(*args, **kwargs), None)

    def run_without_gradients(args: tuple[Any, ...], kwargs: dict[str, Any]) -> StepResult:
        with torch.no_grad():
            return StepResult(forward(*args, **kwargs), None)

    # After `set_global_state` gradients are off already, and switching them off again costs 2 us a call.
    return run_without_gradients if torch.is_grad_enabled() else run


def _training(prepared: Prepared, target: Callable[..., Any]) -> Callable[..., StepResult]:
    forward, loss_of, optimizer = _forward(prepared, target), prepared.loss, prepared.optimizer
    inputs = tuple(tensor for tensor in tensors(prepared.feed.original) if tensor.requires_grad)
    leaves = (*prepared.parameters, *inputs)

    def run(args: tuple[Any, ...], kwargs: dict[str, Any]) -> StepResult:
        # module.zero_grad does the same by a walk through all modules: 1 ms for a thousand parameters.
        for leaf in leaves:
            leaf.grad = None
        output = forward(*args, **kwargs)
        loss = loss_of(output)
        loss.backward()  # type: ignore[no-untyped-call]
        if optimizer is not None:
            optimizer.step()
        return StepResult(output, loss.detach())

    return run


def _forward(prepared: Prepared, target: Callable[..., Any]) -> Callable[..., Any]:
    """Return `target`, under AMP with autocast entered and left on every call.

    Entered once around a loop, its weight cache would change eager's time: ten linears in a row cost 21 casts in the
    first call and 1 in every later one.
    """
    device_type, dtype = prepared.device_type, prepared.autocast_dtype
    if dtype is None:
        return target

    def forward(*args: Any, **kwargs: Any) -> Any:
        with torch.autocast(device_type, dtype=dtype):
            return target(*args, **kwargs)

    return forward


def _optimizer(kind: OptimizerKind, parameters: tuple[nn.Parameter, ...]) -> Optimizer | None:
    match kind:
        case OptimizerKind.SGD:
            return torch.optim.SGD(parameters, lr=LEARNING_RATE)
        case OptimizerKind.ADAM:
            optimizer = torch.optim.Adam(parameters, lr=LEARNING_RATE, eps=ADAM_EPSILON)
            _create_state(optimizer, parameters)
            return optimizer
        case _:
            return None


def _create_state(optimizer: Optimizer, parameters: tuple[nn.Parameter, ...]) -> None:
    """Make Adam create its moments now: made in the first step, they would compile a whole step twice.

    A step with gradients of zero moves nothing.
    """
    for parameter in parameters:
        parameter.grad = torch.zeros_like(parameter)
    optimizer.step()
    for parameter in parameters:
        parameter.grad = None
        optimizer.state[parameter]["step"].zero_()


def _move(tensor: Tensor, device_type: str, dtype: torch.dtype | None) -> Tensor:
    moved = tensor.detach().to(device_type, dtype if tensor.is_floating_point() else None)
    return moved.requires_grad_(tensor.requires_grad)


def _at_least_float32(tensor: Tensor) -> Tensor:
    return tensor if tensor.dtype == torch.float64 else tensor.float()
