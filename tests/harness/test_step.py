"""From a workload to a step: precision, mode, autocast, gradients, optimizer, inputs, switches."""

from __future__ import annotations

from collections import UserDict, namedtuple
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from harness.record import OptimizerKind
from harness.worker.step import LEARNING_RATE, clone_tensor, make_step, mean_loss
from suites.spec import Mode, Precision


class Casts(TorchDispatchMode):
    """Counts the copies from one number format to another."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.count += func.overloadpacket.__name__ == "_to_copy"
        return func(*args, **(kwargs or {}))


def linears() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(*[nn.Linear(8, 8) for _ in range(10)])


def casts(step: Any, loops: int) -> int:
    with Casts() as counter:
        for _ in range(loops):
            step()
    return counter.count


@pytest.mark.parametrize(("mode", "per_call"), [(Mode.INFERENCE, 21), (Mode.TRAINING, 43)])
def test_autocast_is_entered_on_every_call(bench_of, mode, per_call):
    """The casts of a step do not depend on how many steps a loop makes; with autocast around the loop they would."""
    bench = bench_of(linears(), torch.randn(2, 8), mode=mode, precision=Precision.AMP)

    assert [per_call, 2 * per_call, 5 * per_call] == [casts(bench.eager, loops) for loops in (1, 2, 5)]

    plain = bench_of(linears(), torch.randn(2, 8), mode=mode).eager
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert casts(plain, 5) < 5 * per_call


def test_autocast_ends_before_the_loss(bench_of):
    """AMP leaves parameters in float32, runs the module in bfloat16, and the loss and backward outside autocast."""
    seen: list[Any] = []

    def loss(output: Tensor) -> Tensor:
        seen.append((torch.is_autocast_enabled("cpu"), output.dtype))
        return output.float().mean()

    bench = bench_of(nn.Linear(4, 4), torch.randn(2, 4), loss=loss, mode=Mode.TRAINING, precision=Precision.AMP)
    bench.eager()

    assert [(False, torch.bfloat16)] == seen
    assert torch.float32 == bench.prepared.module.weight.dtype


def test_no_graph_break_of_our_own_in_training(bench_of):
    """A compiled module in our training step is one graph; compiled as a whole, the step breaks at its backward."""
    net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Dropout(0.5), nn.Linear(8, 2))
    bench = bench_of(net, torch.randn(3, 4), mode=Mode.TRAINING, optimizer=OptimizerKind.SGD)
    counters = torch._dynamo.utils.counters

    counters.clear()
    step = bench.step_of(torch.compile(bench.prepared.module, backend="eager"))
    step()
    step()
    assert not counters["graph_break"]
    assert 1 == counters["stats"]["unique_graphs"]

    counters.clear()
    make_step(bench.prepared, bench.prepared.module, lambda run: torch.compile(run, backend="eager"))()
    assert counters["graph_break"]


@pytest.mark.parametrize("precision", [Precision.FP32, Precision.AMP])
def test_whole_inference_step_is_one_graph(bench_of, precision):
    """With compile scope `step`, an inference step is taken in without a break, autocast included."""
    bench = bench_of(nn.Linear(4, 4), torch.randn(2, 4), precision=precision)
    whole = make_step(
        bench.prepared, bench.prepared.module, lambda run: torch.compile(run, backend="eager", fullgraph=True)
    )

    assert torch.equal(bench.eager().output, whole().output)


def test_changing_inputs_do_not_compile_a_whole_step_again(bench_of):
    """Laid-out inputs are taken outside the compiled part: a shrinking stock is no reason to compile again."""
    compilations = 0

    def backend(graph: Any, example_inputs: Any) -> Any:
        nonlocal compilations
        compilations += 1
        return graph.forward

    bench = bench_of(Doubles(), torch.ones(3))
    whole = make_step(bench.prepared, bench.prepared.module, lambda run: torch.compile(run, backend=backend))
    bench.prepared.feed.mutated = True
    bench.prepared.feed.arm(4)
    for _ in range(4):
        whole()

    assert 1 == compilations


def test_reduced_precision_casts_module_and_floating_inputs(bench_of):
    """BF16 casts parameters, buffers and floating inputs; integers stay."""
    net = nn.Sequential(nn.BatchNorm1d(4), nn.Linear(4, 4))
    bench = bench_of(net, torch.randn(2, 4), torch.arange(3), precision=Precision.BF16)
    (values, indices), _ = bench.prepared.feed()

    assert (torch.bfloat16, torch.int64) == (values.dtype, indices.dtype)
    assert {torch.bfloat16} == {parameter.dtype for parameter in net.parameters()}
    assert torch.bfloat16 == net[0].running_mean.dtype
    assert torch.int64 == net[0].num_batches_tracked.dtype


class SaysMode(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(1))

    def forward(self, x: Tensor) -> Tensor:
        return self.scale * x * float(self.training)


@pytest.mark.parametrize(("mode", "training"), [(Mode.INFERENCE, 0.0), (Mode.TRAINING, 1.0)])
def test_mode_is_ours_to_set(bench_of, mode, training):
    """Inference evaluates and training trains, whatever mode the builder left."""
    net = SaysMode().train(mode == Mode.INFERENCE)

    assert training == float(bench_of(net, torch.ones(1), mode=mode).eager().output.detach())


def test_inference_takes_no_gradient(bench_of):
    """Neither with gradients off for the process nor where something has switched them on again."""
    bench = bench_of(nn.Linear(2, 2), torch.randn(1, 2))
    assert not bench.eager().output.requires_grad

    torch.set_grad_enabled(True)
    assert not bench.step_of(bench.prepared.module)().output.requires_grad


def test_gradients_do_not_add_up(bench_of):
    """Each training step starts with no gradient, of parameters and of inputs that take one."""
    x = torch.randn(3, 4, requires_grad=True)
    bench = bench_of(nn.Linear(4, 1), x, mode=Mode.TRAINING)
    bench.eager()
    (moved,), _ = bench.prepared.feed()
    first = (bench.prepared.module.weight.grad.clone(), moved.grad.clone())
    bench.eager()

    assert torch.equal(first[0], bench.prepared.module.weight.grad)
    assert torch.equal(first[1], moved.grad)


def test_optimizer_steps_when_asked(bench_of):
    """SGD moves the parameters by the learning rate times the gradient; without an optimizer they stay."""
    torch.manual_seed(0)
    net = nn.Linear(4, 1)
    before = net.weight.detach().clone()

    bench_of(net, torch.randn(3, 4), mode=Mode.TRAINING).eager()
    assert torch.equal(before, net.weight)

    bench_of(net, torch.randn(3, 4), mode=Mode.TRAINING, optimizer=OptimizerKind.SGD).eager()
    assert torch.allclose(before - LEARNING_RATE * net.weight.grad, net.weight)


def test_adam_starts_with_its_moments_made(bench_of):
    """Adam's state exists before the first step, as if no step had been made, and parameters are where they were."""
    net = nn.Linear(4, 1)
    before = net.weight.detach().clone()
    bench = bench_of(net, torch.randn(3, 4), mode=Mode.TRAINING, optimizer=OptimizerKind.ADAM)
    state = bench.prepared.optimizer.state[net.weight]

    assert torch.equal(before, net.weight)
    assert (0.0, 0.0) == (float(state["step"]), float(state["exp_avg"].abs().sum()))
    bench.eager()
    assert 1.0 == float(state["step"])


class Doubles(nn.Module):
    """Writes into its input."""

    def forward(self, x: Tensor) -> Tensor:
        x.mul_(2.0)
        return x.sum()


def test_inputs_are_the_same_tensors_by_default(bench_of):
    """A model that leaves its inputs alone is called with the same tensors each time, armed or not."""
    feed = bench_of(nn.Linear(2, 2), torch.randn(1, 2)).prepared.feed
    feed.arm(2)

    assert feed()[0][0] is feed()[0][0]


def test_written_inputs_are_fresh_on_every_call(bench_of):
    """Once a model is known to write into its inputs, each call sees the first values, laid out or not."""
    bench = bench_of(Doubles(), torch.ones(3))
    assert [6.0, 12.0] == [float(bench.eager().output) for _ in range(2)]

    bench = bench_of(Doubles(), torch.ones(3))
    bench.prepared.feed.mutated = True
    bench.prepared.feed.arm(2)
    assert [6.0] * 4 == [float(bench.eager().output) for _ in range(4)]


Pair = namedtuple("Pair", "left right")


@dataclass
class Batch:
    ids: Tensor
    rest: Any


def test_clones_are_apart_at_any_depth(bench_of):
    """Tensors in mappings, dataclasses and named tuples are copied, with strides and `requires_grad`."""
    strided = torch.arange(12.0).reshape(3, 4).t().requires_grad_()
    expanded = torch.ones(1, 3).expand(2, 3)
    shared = torch.zeros(2)
    deep = UserDict(a=Batch(strided, [Pair(expanded, shared)]), b=(shared, "text", None))
    feed = bench_of(nn.Identity(), deep).prepared.feed
    (original,), _ = feed.original
    (clone,), _ = feed.clone()

    pair = clone["a"].rest[0]
    assert (UserDict, Batch, Pair) == (type(clone), type(clone["a"]), type(pair))
    assert (4, 3, (1, 4), True) == (*clone["a"].ids.shape, clone["a"].ids.stride(), clone["a"].ids.requires_grad)
    assert expanded.stride() == pair.left.stride()
    assert pair.right is clone["b"][0]
    assert ("text", None) == clone["b"][1:]
    with torch.no_grad():
        clone["a"].ids.zero_()
        pair.right.add_(1)
    assert 11.0 == float(original["a"].ids.max())
    assert 0.0 == float(original["b"][0].max())


def test_clone_keeps_an_odd_layout():
    """A slice with gaps is cloned with its strides, not packed."""
    tensor = torch.arange(20.0).reshape(4, 5)[:, 1:4:2]
    clone = clone_tensor(tensor)

    assert tensor.stride() == clone.stride()
    assert torch.equal(tensor, clone)
    assert clone.untyped_storage().data_ptr() != tensor.untyped_storage().data_ptr()


def test_default_loss_is_the_mean_of_means_in_float32():
    """Every floating tensor of the output counts alike, at any depth; integers and empty tensors do not count."""
    output = {"a": torch.full((4,), 2.0, dtype=torch.bfloat16), "b": [torch.full((2, 2), 4.0), torch.arange(3)]}
    loss = mean_loss({**output, "empty": torch.empty(0)})

    assert (3.0, torch.float32) == (float(loss), loss.dtype)
    with pytest.raises(ValueError, match="no floating tensor"):
        mean_loss(torch.arange(3))


def test_global_switches_follow_the_case(bench_of):
    """TF32 is off and kernels are free unless the case asks otherwise; seeds make equal streams."""
    bench_of(nn.Identity(), torch.ones(1))
    plain = (torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32)
    assert ("highest", False, False) == (*plain, torch.are_deterministic_algorithms_enabled())
    first = torch.rand(1)

    bench_of(nn.Identity(), torch.ones(1), tf32=True, deterministic=True)
    asked = (torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32)
    assert ("high", True, True) == (*asked, torch.are_deterministic_algorithms_enabled())
    assert torch.equal(first, torch.rand(1))
