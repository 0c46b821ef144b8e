"""One step from a known state: what is gathered, and that runs do not touch each other."""

from __future__ import annotations

import dataclasses
import itertools
import random
from typing import Any

import numpy
import pytest
import torch
from torch import Tensor, nn

from harness.record import OptimizerKind
from harness.worker.collect import (
    NoReference,
    draws_random_numbers,
    float64_reference,
    mutates_inputs,
    restore,
    sensitivity,
    snapshot,
)
from suites.spec import Mode, Precision
from tests.harness.conftest import SEED


def small(*, seed: int = 0) -> nn.Module:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 2))


def same(first: Any, second: Any) -> bool:
    """Whether two runs gave the same leaves, bit for bit."""
    return first.values.keys() == second.values.keys() and all(
        torch.equal(value, second.values[name]) if isinstance(value, Tensor) else value == second.values[name]
        for name, value in first.values.items()
    )


def test_training_gives_output_loss_gradients_and_buffers(bench_of):
    """And the updates of the parameters where an optimizer steps."""
    plain = bench_of(small(), torch.randn(4, 4), mode=Mode.TRAINING).collect().values
    stepped = bench_of(small(), torch.randn(4, 4), mode=Mode.TRAINING, optimizer=OptimizerKind.SGD).collect().values

    assert {"output", "loss", "gradient.0.weight", "gradient.3.bias", "buffer.1.running_mean"} <= set(plain)
    assert {f"update.{name}" for name, _ in small().named_parameters()} == set(stepped) - set(plain)


def test_update_is_told_in_learning_rates(bench_of):
    """So a step is as large as the gradient, not a hundredth of it, which a tolerance of 0.01 would swallow."""
    values = bench_of(small(), torch.randn(4, 4), mode=Mode.TRAINING, optimizer=OptimizerKind.SGD).collect().values

    assert torch.allclose(-values["gradient.3.weight"], values["update.3.weight"], atol=1e-4)


def test_runs_start_from_the_same_state(bench_of):
    """Running statistics, parameters, optimizer and seeds are put back: two runs are bitwise equal."""

    class Noisy(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = small()

        def forward(self, x: Tensor) -> Tensor:
            return self.net(x + torch.rand_like(x) + random.random() + numpy.random.rand())

    bench = bench_of(Noisy(), torch.randn(4, 4), mode=Mode.TRAINING, optimizer=OptimizerKind.ADAM)

    assert same(bench.collect(), bench.collect())
    assert not same(bench.collect(), bench.collect(seed=SEED + 1))
    bench.eager()
    moved = bench.prepared.module.net[0].weight.detach().clone()
    assert not torch.equal(moved, bench.state.tensors["net.0.weight"])
    restore(bench.prepared, bench.state)
    assert torch.equal(bench.prepared.module.net[0].weight, bench.state.tensors["net.0.weight"])


def test_restoring_compiles_nothing_again(bench_of):
    """State goes back into the tensors that are there: a checked module is compiled once, with an optimizer too."""
    graphs = 0

    def backend(graph: Any, example_inputs: Any) -> Any:
        nonlocal graphs
        graphs += 1
        return graph.forward

    bench = bench_of(small(), torch.randn(4, 4), mode=Mode.TRAINING, optimizer=OptimizerKind.ADAM)
    step = bench.step_of(torch.compile(bench.prepared.module, backend=backend))
    for _ in range(3):
        bench.collect(step)

    assert 1 == graphs


def test_rebound_buffer_is_put_back(bench_of):
    """A buffer that the model replaces, even by one of another shape, has its first values at each run."""

    class Grows(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("seen", torch.zeros(1))

        def forward(self, x: Tensor) -> Tensor:
            self.seen = torch.cat([self.seen, self.seen + 1])
            return x + self.seen.sum()

    bench = bench_of(Grows(), torch.zeros(1))

    assert [1.0, 1.0] == [float(bench.collect().values["output"]) for _ in range(2)]
    assert [0.0, 1.0] == bench.collect().values["buffer.seen"].tolist()


def test_gathered_values_stay(bench_of):
    """Outputs that are views of weights or inputs, and buffers, are copies: the next run does not change them."""

    class Returns(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("count", torch.zeros(2))

        def forward(self, x: Tensor) -> Any:
            self.count.add_(1)
            return self.count[:1], x[:1], x.repeat(100)[:1]

    bench = bench_of(Returns(), torch.zeros(2))
    values = bench.collect().values
    bench.eager()
    bench.prepared.feed.original[0][0].add_(5)

    assert [1.0, 0.0, 0.0] == [float(values[f"output[{index}]"]) for index in range(3)]
    assert 1.0 == float(values["buffer.count"][0])
    assert 4 == values["output[2]"].untyped_storage().nbytes()


def test_gradients_are_moved_not_copied(bench_of):
    """The parameters let go of their gradients, so that two sets never lie in memory."""
    bench = bench_of(small(), torch.randn(4, 4), mode=Mode.TRAINING)
    bench.collect()

    assert [None] * 6 == [parameter.grad for parameter in bench.prepared.parameters]


def test_missing_gradient_is_told(bench_of):
    """A parameter that the loss does not reach has None, and a sparse gradient comes dense."""

    class Part(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table = nn.Embedding(10, 2, sparse=True)
            self.unused = nn.Linear(2, 2)

        def forward(self, ids: Tensor) -> Tensor:
            return self.table(ids)

    values = bench_of(Part(), torch.tensor([1, 1, 3]), mode=Mode.TRAINING).collect().values

    assert values["gradient.unused.weight"] is None
    assert (torch.strided, (10, 2)) == (values["gradient.table.weight"].layout, values["gradient.table.weight"].shape)
    assert 2 == int((values["gradient.table.weight"].sum(1) != 0).sum())


def test_gradients_of_inputs_are_gathered(bench_of):
    """Of those that take one, by their place among the arguments."""
    x = torch.randn(4, 4, requires_grad=True)
    values = bench_of(small(), x, mode=Mode.TRAINING).collect().values

    assert (4, 4) == values["gradient.input[0]"].shape


class Writes(nn.Module):
    def forward(self, x: Tensor, state: Any = None) -> Tensor:
        state["cache"][0].add_(x)
        return x * 1


def test_written_inputs_are_leaves(bench_of):
    """A model that writes into an argument, at any depth, is told from one that does not; the original stays."""
    cache = torch.zeros(3)
    leaves = bench_of(Writes(), torch.ones(3), kwargs={"state": {"cache": [cache]}}).collect()

    assert mutates_inputs(leaves)
    assert [1.0, 1.0, 1.0] == leaves.values["input.state.cache[0]"].tolist()
    assert "input[0]" not in leaves.values
    assert not cache.any()
    assert not mutates_inputs(bench_of(nn.Identity(), torch.tensor([float("nan")])).collect())


@pytest.mark.parametrize("precision", [Precision.FP32, Precision.AMP, Precision.BF16])
def test_reference_is_the_same_step_in_float64(bench_of, precision):
    """Whatever the precision: no autocast, and eager's distance from it is the rounding of its number format."""
    bench = bench_of(small(), torch.randn(4, 4), mode=Mode.TRAINING, precision=precision)
    reference = float64_reference(bench.prepared, bench.state, SEED).values
    error = float((bench.collect().values["output"].double() - reference["output"]).abs().max())

    assert {torch.float64} == {reference[name].dtype for name in ("output", "loss", "gradient.0.weight")}
    assert (0 < error < 1e-5) if precision == Precision.FP32 else (1e-4 < error < 0.2)
    assert {torch.float64} != {parameter.dtype for parameter in bench.prepared.module.parameters()}


def test_reference_refuses_with_a_reason(bench_of):
    """A model that insists on float32, and one that draws random numbers, have none."""

    class Insists(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.f = nn.Linear(2, 2)

        def forward(self, x: Tensor) -> Tensor:
            return self.f(x.float())

    bench = bench_of(Insists(), torch.randn(1, 2))
    refused = float64_reference(bench.prepared, bench.state, SEED)

    assert isinstance(refused, NoReference)
    assert "RuntimeError" in refused.reason
    drawn = float64_reference(bench.prepared, bench.state, SEED, draws_random_numbers=True)
    assert isinstance(drawn, NoReference)


class Draws(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x + torch.rand_like(x)


def test_drawing_is_told_by_another_seed(bench_of):
    """A model whose numbers depend on the seed draws; one whose dropout drops nothing does not."""

    def draws(module: nn.Module, mode: Mode) -> tuple[bool, bool]:
        bench = bench_of(module, torch.randn(4, 4), mode=mode)
        eager = bench.collect()
        return eager.drew, draws_random_numbers(bench.prepared, bench.eager, bench.state, eager, SEED)

    assert (True, True) == draws(Draws(), Mode.INFERENCE)
    assert (True, False) == draws(nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5)), Mode.TRAINING)
    assert (False, False) == draws(nn.Linear(4, 4), Mode.INFERENCE)


def test_noise_is_not_drawing(bench_of):
    """A model that differs from run to run differs with another seed too; that alone is no drawing."""
    ticks = itertools.count()

    class Ticks(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x + next(ticks) + 0 * torch.rand_like(x)

    bench = bench_of(Ticks(), torch.zeros(2))

    assert not draws_random_numbers(bench.prepared, bench.eager, bench.state, bench.collect(), SEED)


class Deaf(nn.Module):
    """Gives nearly the same whatever it hears."""

    def __init__(self, ear: float) -> None:
        super().__init__()
        self.ear = nn.Parameter(torch.tensor(ear))

    def forward(self, x: Tensor) -> Any:
        return {"out": 1 + self.ear * x, "count": 3}


@pytest.mark.parametrize(("mode", "tolerance"), [(Mode.INFERENCE, 1e-3), (Mode.TRAINING, 1e-2)])
def test_sensitivity_tells_the_deaf(bench_of, mode, tolerance):
    """Outputs around 1 that lie twenty tolerances apart give 100, in both modes; half of that gives half.

    Two draws from a normal distribution lie sqrt(2) apart; the slack is a tenth of the tolerance, times 1 + 1.
    """

    def felt(ear: float) -> float:
        bench = bench_of(Deaf(ear), torch.randn(64, 64), mode=mode)
        return sensitivity(bench.prepared, bench.state, bench.collect(), tolerance, SEED)

    ear = 20 * tolerance / 2**0.5

    assert felt(ear) == pytest.approx(100, rel=0.1)
    assert felt(ear / 2) == pytest.approx(50, rel=0.1)


def test_sensitivity_is_absent_where_it_cannot_be_told(bench_of):
    """No floating output, nothing to shuffle, or a model that refuses shuffled inputs."""

    class Sorted(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            if not bool((x.diff() >= 0).all()):
                raise ValueError("not sorted")
            return x * 1

    class Argmax(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x.argmax(-1)

    for module, x in ((Sorted(), torch.arange(9.0)), (Argmax(), torch.randn(4, 4)), (nn.Identity(), torch.ones(4))):
        bench = bench_of(module, x)
        assert sensitivity(bench.prepared, bench.state, bench.collect(), 1e-3, SEED) is None


def test_snapshot_is_apart(bench_of):
    """A state taken later is another one; it holds copies."""
    bench = bench_of(small(), torch.randn(4, 4), mode=Mode.TRAINING)
    bench.eager()

    assert not torch.equal(bench.state.tensors["1.running_mean"], snapshot(bench.prepared).tensors["1.running_mean"])


def test_float64_elsewhere(bench_of):
    """For a device without float64 the reference runs on the CPU, in training too, and is the same as there."""
    bench = bench_of(small(), torch.randn(4, 4), mode=Mode.TRAINING)
    here = float64_reference(bench.prepared, bench.state, SEED)
    elsewhere = dataclasses.replace(bench.prepared, device_type="mps")  # no device of this machine

    assert isinstance(float64_reference(elsewhere, bench.state, SEED), NoReference)
    there = float64_reference(elsewhere, bench.state, SEED, device_type="cpu")
    assert not isinstance(there, NoReference)
    assert all(torch.equal(value, there.values[name]) for name, value in here.values.items() if value is not None)
