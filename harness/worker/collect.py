"""One step from a known state, and everything it gave: output, loss, gradients, buffers, updates, inputs written to.

Every run of a check goes through `collect`: the module's state put back in place, seeds restarted,
inputs fresh. So two runs differ only by what computes them.
"""

from __future__ import annotations

import copy
import math
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy
import torch
from torch import Tensor, nn

from harness.worker.accuracy import size_of
from harness.worker.leaves import Leaves, Value, map_tensors, named_tensors, tensors, to_plain
from harness.worker.step import (
    LEARNING_RATE,
    Arguments,
    InputFeed,
    Prepared,
    StepResult,
    assemble,
    clone_tensor,
    make_step,
    seed_everything,
)
from suites.spec import Precision

Step = Callable[[], StepResult]


@dataclass(frozen=True)
class State:
    """Copies of what a step may change: parameters and buffers by name, the optimizer's tensors by parameter."""

    tensors: dict[str, Tensor] = field(repr=False)
    optimizer: tuple[dict[str, Tensor], ...] = field(default=(), repr=False)


@dataclass(frozen=True)
class NoReference:
    """No float64 run, and why."""

    reason: str


def snapshot(prepared: Prepared) -> State:
    """Copy the state of the module and its optimizer."""
    return State(
        {name: tensor.detach().clone() for name, tensor in _named_state(prepared.module).items()},
        tuple({key: value.clone() for key, value in state.items()} for state in _optimizer_state(prepared)),
    )


def restore(prepared: Prepared, state: State) -> None:
    """Put `state` back into the tensors that are there, so that nothing has to be compiled again.

    Only a buffer that the model bound to a tensor of another shape or type is bound anew.
    Gradients are dropped.
    """
    now = _named_state(prepared.module)
    with torch.no_grad():
        for name, saved in state.tensors.items():
            tensor = now.get(name)
            if tensor is not None and tensor.shape == saved.shape and tensor.dtype == saved.dtype:
                tensor.copy_(saved)
            else:
                owner, _, last = name.rpartition(".")
                setattr(prepared.module.get_submodule(owner), last, saved.clone())
        for tensors_now, tensors_saved in zip(_optimizer_state(prepared), state.optimizer, strict=True):
            for key, saved in tensors_saved.items():
                tensors_now[key].copy_(saved)
    for parameter in prepared.parameters:
        parameter.grad = None


def collect(prepared: Prepared, step: Step, state: State | None, seed: int) -> Leaves:
    """Run `step` once from `state` with restarted seeds and fresh inputs; return all that it gave.

    Names: `output...`, `loss`, `gradient.<parameter>` and `gradient.input...` (None: there was none),
    `buffer.<name>`, `update.<parameter>` with an optimizer, and `input...` for each input that the step wrote to.
    An update is the parameter's change in learning rates: compared as they are, parameters after one step of
    0.01 would be within a tolerance of 0.01 even if the optimizer had done nothing.

    Args:
        state: None: run from where the module is (and then there is no update to tell).
    """
    if state is not None:
        restore(prepared, state)
    arguments = prepared.feed.clone()
    seed_everything(seed)
    before = _generators(prepared.device_type)
    with prepared.feed.serving(arguments):
        result = step()
    leaves = Leaves(drew=_generators(prepared.device_type) != before)
    _add_results(leaves, prepared, result, arguments)
    del result
    if prepared.training:
        _add_gradients(leaves, prepared, arguments)
    _add_state(leaves, prepared, state)
    _add_written_inputs(leaves, prepared, arguments)
    return leaves


def mutates_inputs(leaves: Leaves) -> bool:
    """Whether the step that gave `leaves` wrote into its arguments."""
    return bool(leaves.below("input"))


def float64_reference(
    prepared: Prepared,
    state: State,
    seed: int,
    draws_random_numbers: bool = False,
    device_type: str | None = None,
) -> Leaves | NoReference:
    """Run the step on a float64 copy of module and inputs, without autocast.

    The copy is of the module as cast, so that eager's distance from it is the error of computing, not
    of rounding the weights. It is gone when this returns.

    Args:
        device_type: where to run it, for a device that has no float64; None: where the module is.
    """
    if draws_random_numbers:
        return NoReference("the model draws random numbers, and float64 draws others")
    try:
        restore(prepared, state)
        twin = _widened(prepared, device_type or prepared.device_type)
        return collect(twin, make_step(twin, twin.module), snapshot(twin) if twin.optimizer else None, seed)
    except Exception as error:  # whatever a model raises in a format it was not written for
        lines = str(error).splitlines() or [""]
        return NoReference(f"{type(error).__name__}: {lines[0][:300]}")


def draws_random_numbers(prepared: Prepared, step: Step, state: State, eager: Leaves, seed: int) -> bool:
    """Whether the step gives other numbers with another seed, run-to-run noise apart.

    Costs nothing where no generator moved during the run that gave `eager`; else two more steps at most.
    """
    if not eager.drew:
        return False
    other = _differing(eager, collect(prepared, step, state, seed + 1))
    return bool(other) and bool(other - _differing(eager, collect(prepared, step, state, seed)))


def sensitivity(prepared: Prepared, state: State, eager: Leaves, tolerance: float, seed: int) -> float | None:
    """Return how far the outputs of two different inputs lie apart, in units of the check's slack.

    Distance: RMS difference between eager's output and its output for the same inputs with the elements of
    every tensor shuffled. Slack: a tenth of the tolerance, times size + |output| (RMS), as in the rule of
    `accuracy.compare`. The leaf of the output that shows most counts. At 100 the inputs move the output by ten
    tolerances, and the check notices an error of a tenth of what the inputs do; below, it can be blind to an output
    that hardly depends on the inputs: that is a distance of 2 % of the output at 1e-3, of 20 % at 1e-2.

    Returns:
        None where it cannot be told: nothing to shuffle, no floating output, or the model refuses shuffled inputs.
    """
    generator = torch.Generator().manual_seed(seed)
    shuffled: Arguments = map_tensors(prepared.feed.original, lambda tensor: _shuffled(tensor, generator))
    if _same_tensors(shuffled, prepared.feed.original):
        return None
    try:
        other = _forward_only(prepared, state, shuffled, seed)
    except Exception:  # an index out of range, a mask that hides everything: no answer, and no fault of the model
        return None
    ratios = []
    for name, value in eager.below("output").items():
        pair = _floating_pair(value, other.values.get(name))
        if pair is not None:
            first, second = pair
            slack = tolerance / 10 * (size_of(name, first) + first.abs())
            ratios.append(_rms(first - second) / _rms(slack))
    return max((ratio for ratio in ratios if math.isfinite(ratio)), default=None)


def _add_results(leaves: Leaves, prepared: Prepared, result: StepResult, arguments: Arguments) -> None:
    lasting = [*_named_state(prepared.module).values(), *tensors(arguments)]
    owned = {pointer for tensor in lasting if (pointer := _memory(tensor))}

    def keep(tensor: Tensor) -> Tensor:
        # A view of weights or inputs would change with them; a small view would hold its whole memory.
        used = tensor.numel() * tensor.element_size()
        return tensor.clone() if _memory(tensor) in owned or tensor.untyped_storage().nbytes() > 2 * used else tensor

    leaves.add("output", result.output, keep)
    if result.loss is not None:
        leaves.add("loss", result.loss, keep)


def _add_gradients(leaves: Leaves, prepared: Prepared, arguments: Arguments) -> None:
    """Move gradients over without a copy: the parameters let go of them."""
    named = [*_named_parameters(prepared.module), *_named_inputs(arguments)]
    for name, tensor in named:
        if tensor.requires_grad:
            leaves.values[f"gradient.{name}"] = None if tensor.grad is None else to_plain(tensor.grad)
            tensor.grad = None


def _add_state(leaves: Leaves, prepared: Prepared, state: State | None) -> None:
    saved = state.tensors if state is not None else {}
    for name, buffer in prepared.module.named_buffers():
        before = saved.get(name)
        unchanged = before is not None and before.device.type == "cpu" and _same(before, buffer)
        leaves.values[f"buffer.{name}"] = before if unchanged else to_plain(buffer, torch.clone)
    if prepared.optimizer is None:
        return
    for name, parameter in _named_parameters(prepared.module):
        if parameter.requires_grad and name in saved:
            leaves.values[f"update.{name}"] = to_plain((parameter.detach() - saved[name]) / LEARNING_RATE)


def _add_written_inputs(leaves: Leaves, prepared: Prepared, arguments: Arguments) -> None:
    originals = dict(_named_inputs(prepared.feed.original))
    for name, tensor in _named_inputs(arguments):
        if name not in originals or not _same(originals[name], tensor):
            leaves.values[name] = to_plain(tensor)


def _named_parameters(module: nn.Module) -> list[tuple[str, Tensor]]:
    return list(module.named_parameters())


def _named_inputs(arguments: Arguments) -> list[tuple[str, Tensor]]:
    args, kwargs = arguments
    return [*named_tensors("input", args), *named_tensors("input", kwargs)]


def _named_state(module: nn.Module) -> dict[str, Tensor]:
    return {**dict(module.named_parameters()), **dict(module.named_buffers())}


def _optimizer_state(prepared: Prepared) -> list[dict[str, Tensor]]:
    if prepared.optimizer is None:
        return []
    states = [prepared.optimizer.state.get(parameter, {}) for parameter in prepared.parameters]
    return [{key: value for key, value in state.items() if isinstance(value, Tensor)} for state in states]


def _widened(prepared: Prepared, device_type: str) -> Prepared:
    """Return a float64 copy of `prepared`, over there; complex64 becomes complex128."""
    module = copy.deepcopy(prepared.module)
    module._apply(lambda tensor: _widen(tensor, device_type))  # type: ignore[no-untyped-call]
    original = prepared.feed.original
    args, kwargs = map_tensors(original, lambda tensor: _widen(clone_tensor(tensor), device_type))
    case = prepared.case.model_copy(update={"precision": Precision.FP32, "amp_dtype": None})
    return assemble(case, module, InputFeed(args, kwargs), prepared.loss, device_type)


def _widen(tensor: Tensor, device_type: str) -> Tensor:
    wide = torch.float64 if tensor.is_floating_point() else torch.complex128 if tensor.is_complex() else tensor.dtype
    moved = tensor.detach().to(device_type)  # first: a device without float64 could not cast
    return moved.to(wide).requires_grad_(tensor.requires_grad)


def _forward_only(prepared: Prepared, state: State, arguments: Arguments, seed: int) -> Leaves:
    restore(prepared, state)
    seed_everything(seed)
    leaves = Leaves()
    args, kwargs = arguments
    dtype = prepared.autocast_dtype
    with torch.no_grad(), torch.autocast(prepared.device_type, dtype=dtype, enabled=dtype is not None):
        leaves.add("output", prepared.module(*args, **kwargs))
    restore(prepared, state)
    return leaves


def _shuffled(tensor: Tensor, generator: torch.Generator) -> Tensor:
    clone = clone_tensor(tensor)
    if clone.layout != torch.strided or clone.is_nested or clone.numel() < 2:
        return clone
    order = torch.randperm(clone.numel(), generator=generator).to(clone.device)
    return clone.detach().reshape(-1)[order].reshape(clone.shape)


def _generators(device_type: str) -> tuple[Any, ...]:
    """Return the state of every stream that `seed_everything` restarts, as something that can be compared."""
    streams = [torch.get_rng_state()]
    if device_type != "cpu":
        streams.append(torch.get_device_module(device_type).get_rng_state())
    numbers: Any = numpy.random.get_state()
    return (*(stream.numpy().tobytes() for stream in streams), random.getstate(), numbers[1].tobytes(), numbers[2])


def _differing(first: Leaves, second: Leaves) -> set[str]:
    """Return the names of the leaves that are not the same, bit for bit."""
    names = set(first.values) | set(second.values)
    missing = object()
    return {n for n in names if not _same(first.values.get(n, missing), second.values.get(n, missing))}


def _same(first: Any, second: Any) -> bool:
    if isinstance(first, Tensor) and isinstance(second, Tensor):
        if first.shape != second.shape or first.dtype != second.dtype:
            return False
        first, second = to_plain(first), to_plain(second)
        if torch.equal(first, second):
            return True
        return (
            first.dtype.is_floating_point
            and torch.equal(first.nan_to_num(0), second.nan_to_num(0))
            and torch.equal(first.isnan(), second.isnan())
        )
    return type(first) is type(second) and (first == second or (first != first and second != second))


def _same_tensors(first: Arguments, second: Arguments) -> bool:
    return all(_same(a, b) for a, b in zip(tensors(first), tensors(second), strict=True))


def _floating_pair(first: Value, second: Value) -> tuple[Tensor, Tensor] | None:
    """Return, as float64, the elements that are numbers in both, if they are floating tensors of one shape."""
    if not isinstance(first, Tensor) or not isinstance(second, Tensor) or first.shape != second.shape:
        return None
    if first.is_complex() and second.is_complex():
        first, second = torch.view_as_real(first), torch.view_as_real(second)
    if not (first.is_floating_point() and second.is_floating_point()):
        return None
    numbers = first.isfinite() & second.isfinite()
    return (first[numbers].double(), second[numbers].double()) if numbers.any() else None


def _rms(values: Tensor) -> float:
    return float(values.square().mean().sqrt())


def _memory(tensor: Tensor) -> int:
    """Return where the memory of `tensor` starts; 0 where it has none of its own."""
    return tensor.untyped_storage().data_ptr() if tensor.layout == torch.strided and not tensor.is_nested else 0
