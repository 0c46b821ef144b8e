"""What rounding alone moves is forgiven, and no more: faults are planted beside it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from harness.record import Accuracy, Case
from harness.worker.accuracy import Rounding, compare
from harness.worker.collect import NoReference, float64_reference, snapshot
from harness.worker.leaves import Leaves
from harness.worker.rounding import COARSE_LIMIT, FINE_LIMIT, may_be_rounding, nudge_of, rounding
from suites.spec import Mode, Precision
from tests.harness.conftest import SEED, Bench

TRAINING = {"mode": Mode.TRAINING, "loss": lambda output: output.float().square().mean()}


class Tied(nn.Module):
    """Words to scores, with one matrix at both ends, as small language models have it."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.words = nn.Embedding(40, 32)
        self.norms = nn.ModuleList(nn.LayerNorm(32) for _ in range(3))
        self.up = nn.ModuleList(nn.Linear(32, 64) for _ in range(3))
        self.down = nn.ModuleList(nn.Linear(64, 32) for _ in range(3))

    def forward(self, tokens: Tensor) -> Tensor:
        hidden = self.words(tokens)
        for norm, up, down in zip(self.norms, self.up, self.down, strict=True):
            hidden = hidden + down(functional.relu(up(norm(hidden))))
        return functional.linear(hidden, self.words.weight)


def tied(bench_of: Callable[..., Bench], precision: Precision) -> Bench:
    tokens = torch.randint(0, 40, (8, 24), generator=torch.Generator().manual_seed(1))
    return bench_of(Tied(), tokens, precision=precision, **TRAINING)


def in_float32(bench: Bench) -> Callable[..., Any]:
    """What inductor makes of autocast: fewer roundings, as what is fused stays in float32."""

    def target(*args: Any) -> Any:
        with torch.autocast("cpu", enabled=False):
            return bench.prepared.module(*args).bfloat16()

    return target


def moved(bench: Bench) -> Rounding:
    *_, found = rounding(bench.prepared, bench.eager, bench.state, bench.collect(), SEED)
    return found


def judge(bench: Bench, compiled: Leaves, tolerance: float = 1e-2, *, forgiving: bool = True) -> Accuracy:
    """Hold `compiled` against eager alone, as at a batch that leaves no room for float64."""
    precision = bench.prepared.case.precision
    floor = moved(bench) if forgiving else None
    return compare(bench.collect(), compiled, None, tolerance=tolerance, rounding=floor, precision=precision)


# -- what is forgiven -------------------------------------------------------------------------


def test_fewer_roundings_are_no_fault(bench_of):
    """In AMP, gradients of a network that rounds less lie beyond the tolerance from eager's, and pass for it."""
    bench = tied(bench_of, Precision.AMP)
    compiled = bench.collect(bench.step_of(in_float32(bench)))
    strict, forgiving = judge(bench, compiled, forgiving=False), judge(bench, compiled)

    assert strict.failed_count > 3
    assert 0 == forgiving.failed_count
    assert (None, True) == (strict.rounding, 1e-3 < forgiving.rounding < 0.1)


def test_a_unit_within_rounding_of_zero_may_switch(bench_of):
    """In FP32 a ReLU on the other side of zero moves gradients a hundred times as far as the tolerance."""
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 8))
    inputs = torch.randn(64, 16)
    with torch.no_grad():
        net[0].bias[3] -= net[0](inputs)[5, 3]  # the sum of one unit for one input is zero but for rounding
        net[0].bias[3] += 1e-7
    bench = bench_of(net, inputs, **TRAINING)

    def otherwise(x: Tensor) -> Tensor:
        sums = net[0](x)
        off = torch.zeros_like(sums)
        off[5, 3] = 1e-6 if sums[5, 3] <= 0 else -1e-6
        return net[2](functional.relu(sums + off))

    compiled = bench.collect(bench.step_of(otherwise))
    strict = judge(bench, compiled, 1e-4, forgiving=False)

    assert {"gradient.0.weight", "gradient.0.bias"} == {leaf.name for leaf in strict.failed}
    assert strict.worst.error > 50 * strict.worst.allowed
    assert 0 == judge(bench, compiled, 1e-4).failed_count


# -- what is not ------------------------------------------------------------------------------


def zeros(gradient: Tensor) -> Tensor:
    return torch.zeros_like(gradient)


def other_sign(gradient: Tensor) -> Tensor:
    return -gradient


def two_percent(gradient: Tensor) -> Tensor:
    return gradient * 1.02


def half_as_much_again(gradient: Tensor) -> Tensor:
    return gradient * 1.5


def a_wrong_row(gradient: Tensor) -> Tensor:
    wrong = gradient.clone()
    wrong[int(gradient.square().sum(-1).argmax())] *= -1
    return wrong


@pytest.mark.parametrize(
    ("fault", "precision"),
    [
        *((fault, Precision.FP32) for fault in (zeros, other_sign, two_percent, half_as_much_again, a_wrong_row)),
        *((fault, Precision.AMP) for fault in (zeros, other_sign, half_as_much_again, a_wrong_row)),
    ],
)
@pytest.mark.parametrize("name", ["gradient.words.weight", "gradient.up.0.weight", "gradient.down.2.weight"])
def test_a_wrong_gradient_is_found(bench_of, fault, precision, name):
    """That one alone, whatever it is wrong by."""
    bench = tied(bench_of, precision)
    compiled = bench.collect()
    wrong = replace(compiled, values={**compiled.values, name: fault(compiled.values[name])})

    assert [name] == [leaf.name for leaf in judge(bench, wrong).failed]


@pytest.mark.parametrize("precision", [Precision.FP32, Precision.AMP])
def test_a_lost_bias_is_found(bench_of, precision):
    """Of the last layer alone, small as it is: in the output, and in what comes back."""
    bench = tied(bench_of, precision)
    net = bench.prepared.module

    def forgets(tokens: Tensor) -> Tensor:
        return net(tokens) - functional.linear(net.down[2].bias, net.words.weight)

    names = {leaf.name for leaf in judge(bench, bench.collect(bench.step_of(forgets))).failed}

    assert {"output", "gradient.words.weight"} <= names


@pytest.mark.parametrize("precision", [Precision.FP32, Precision.AMP])
def test_a_wrong_scale_of_dropout_is_found(bench_of, precision):
    """What is kept divided by 0.9, though nothing was dropped."""
    bench = tied(bench_of, precision)
    step = bench.step_of(lambda tokens: bench.prepared.module(tokens) / 0.9)

    assert {"output", "loss", "gradient.words.weight"} <= {
        leaf.name for leaf in judge(bench, bench.collect(step)).failed
    }


# -- bounds -----------------------------------------------------------------------------------


class Chaotic(nn.Module):
    """A weight in [0, 1] under the logistic map, which doubles any difference in each of its steps."""

    def __init__(self, steps: int) -> None:
        super().__init__()
        self.steps = steps
        self.start = nn.Parameter(torch.linspace(0.1, 0.9, 2000))

    def forward(self, x: Tensor) -> Tensor:
        y = self.start * x
        for _ in range(self.steps):
            y = 4 * y * (1 - y)
        return y


@pytest.mark.parametrize(
    ("precision", "limit"),
    [(Precision.FP32, FINE_LIMIT), (Precision.AMP, COARSE_LIMIT), (Precision.FP16, COARSE_LIMIT)],
)
def test_chaos_is_no_excuse(bench_of, precision, limit):
    """Where rounding moves everything, a share of the size is forgiven, zeros fail, and the leaf says what was done."""
    bench = bench_of(Chaotic(60), torch.ones(()), precision=precision)
    compiled = bench.collect()
    output = compiled.values["output"]
    accuracy = judge(bench, replace(compiled, values={"output": torch.zeros_like(output)}))

    assert accuracy.rounding > limit
    assert f"of its size, counted as {limit:g}" in accuracy.failed[0].detail
    size = float(output.double().square().mean().sqrt())
    assert accuracy.failed[0].allowed == pytest.approx(limit * size, rel=0.1)


@pytest.mark.parametrize(("times", "failed"), [(6, 0), (100, 1)])
def test_noise_around_zero_may_be_other_noise(bench_of, times, failed):
    """The gradient of a bias before a batch norm is nothing but rounding; it may be several times as large, not any."""
    torch.manual_seed(0)
    net = nn.Sequential(nn.Conv2d(3, 16, 3), nn.BatchNorm2d(16), nn.ReLU(), nn.Conv2d(16, 1, 3))
    bench = bench_of(net, 10 * torch.randn(4, 3, 32, 32), mode=Mode.TRAINING, loss=lambda y: 100 * y.square().mean())
    compiled = bench.collect()
    noise = compiled.values["gradient.0.bias"]
    wrong = replace(compiled, values={**compiled.values, "gradient.0.bias": times * noise})

    assert 1 == judge(bench, wrong, 1e-4, forgiving=False).failed_count
    assert failed == judge(bench, wrong, 1e-4).failed_count


def test_sizes_above_one_count_as_they_are(bench_of):
    """A leaf of thousands that rounding moves by thousandths of itself is not bounded."""
    bench = bench_of(nn.Linear(64, 64), 1e4 * torch.randn(32, 64), precision=Precision.AMP)
    found = moved(bench)

    assert found.by_leaf["output"] > 1
    assert not found.details


@pytest.mark.parametrize(
    ("precision", "more", "share"),
    [
        (Precision.FP32, {}, 2.0**-18),
        (Precision.FP32, {"tf32": True}, 2.0**-11),
        (Precision.AMP, {"amp_dtype": "bfloat16"}, 2.0**-8),
        (Precision.AMP, {"amp_dtype": "float16"}, 2.0**-11),
        (Precision.BF16, {}, 2.0**-8),
        (Precision.FP16, {}, 2.0**-11),
    ],
)
def test_the_nudge_goes_by_the_number_format(precision, more, share):
    """One rounding of 8 or 11 bits; 64 of the 24 of float32."""
    case = Case(suite="tests", model="net", device="cpu", mode=Mode.TRAINING, precision=precision, **more)

    assert share == nudge_of(case)


def test_weights_are_as_before(bench_of):
    """Bit for bit, and eager gives what it gave."""
    bench = tied(bench_of, Precision.FP32)
    before = bench.collect().values["output"].clone()
    moved(bench)
    after = snapshot(bench.prepared)

    assert all(torch.equal(after.tensors[name], saved) for name, saved in bench.state.tensors.items())
    assert torch.equal(before, bench.collect().values["output"])


def test_every_weight_is_moved(bench_of):
    """By one place at least, up or down: where adding to 1 would lose it, too."""
    torch.manual_seed(0)
    bench = bench_of(nn.Linear(64, 1, bias=False), torch.eye(64), precision=Precision.BF16)
    found = moved(bench)
    weights = bench.state.tensors["weight"].float()

    assert found.worst == pytest.approx(2.0**-8, rel=0.5)
    assert found.by_leaf["output"] == pytest.approx(found.worst * float(weights.square().mean().sqrt()), rel=1e-6)


class Refuses(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(3))

    def forward(self, x: Tensor) -> Tensor:
        if not torch.equal(self.weight, torch.ones(3)):
            raise RuntimeError("only ones")
        return x * self.weight


@pytest.mark.parametrize("module", [Refuses(), nn.ReLU()])
def test_nothing_is_forgiven_where_nothing_can_be_told(bench_of, module):
    """A model that refuses other weights, or has none, is judged as before, and has its own weights."""
    bench = bench_of(module, torch.ones(3))

    assert [] == list(rounding(bench.prepared, bench.eager, bench.state, bench.collect(), SEED))
    assert torch.equal(torch.ones(3), bench.collect().values["output"])


def test_rounding_is_asked_for_after_numbers_alone(bench_of):
    """Not where all passed, and not where something else is wrong, which no rounding would explain."""
    bench = bench_of(nn.Linear(4, 4), torch.ones(2, 4))

    def check(other: Any) -> Accuracy:
        return compare(bench.collect(), Leaves({"output": other}), None, tolerance=1e-3)

    output = bench.collect().values["output"]
    assert not may_be_rounding(check(output))
    assert may_be_rounding(check(output + 1))
    assert not may_be_rounding(check(output * torch.nan))
    assert not may_be_rounding(check(output[:1]))


def test_with_float64_it_is_forgiven_too(bench_of):
    """Where it is more than what eager itself misses, whose place it takes."""
    bench = tied(bench_of, Precision.FP32)
    reference = float64_reference(bench.prepared, bench.state, SEED)
    assert not isinstance(reference, NoReference)
    compiled = bench.collect()
    name = "gradient.down.0.bias"
    size = float(compiled.values[name].double().square().mean().sqrt())
    wrong = replace(compiled, values={**compiled.values, name: compiled.values[name] + 0.01 * size})

    def check(share: float) -> int:
        floor = Rounding({name: share * size})
        return compare(bench.collect(), wrong, reference, tolerance=1e-4, rounding=floor).failed_count

    assert (1, 0) == (check(0.005), check(0.011))


def test_rounding_is_not_counted_twice():
    """What eager misses of float64 is rounding too: of the two the larger is allowed, not both."""
    noise = torch.randn(4000, generator=torch.Generator().manual_seed(0)).double()
    exact = torch.ones(4000).double()
    eager, near, far = ((exact + share * noise).float() for share in (0.1, 0.28, 0.5))

    def failed(compiled: Tensor) -> int:
        leaves = [Leaves({"output": value}) for value in (eager, compiled, exact)]
        rule = {"tolerance": 1e-3, "rounding": Rounding({"output": 0.25}), "precision": Precision.AMP}
        return compare(*leaves, **rule).failed_count

    assert (0, 1) == (failed(near), failed(far))
