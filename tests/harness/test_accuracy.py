"""Compiled against eager against float64. `compiled` stands for what a compiler might have made of a model."""

from __future__ import annotations

import copy
import math
import warnings
from collections import UserDict
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from harness.record import Accuracy, OptimizerKind, Reference
from harness.worker.accuracy import MAX_FAILED, compare, eager_noise
from harness.worker.leaves import Leaves, flatten
from suites.spec import Mode, Precision

NAN, INF = math.nan, math.inf


def leaves(value: Any, name: str = "output") -> Leaves:
    return flatten(name, value)


def check(eager: Any, compiled: Any, reference: Any = None, **rule: Any) -> Accuracy:
    """Compare two outputs; the reference is eager in float64 unless given."""
    exact = leaves(wide(eager) if reference is None else reference)
    return compare(leaves(eager), leaves(compiled), exact, **{"tolerance": 1e-3, **rule})


def wide(value: Any) -> Any:
    return value.double() if isinstance(value, Tensor) and value.is_floating_point() else value


def noise_like(shape: tuple[int, ...], seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


# -- structure --------------------------------------------------------------------------------


def nested(hidden: Tensor, steps: Any = 3, unused: Any = None) -> Any:
    return {"logits": noise_like((4, 4)), "extra": {"inner": {"hidden": hidden, "unused": unused}, "steps": steps}}


@pytest.mark.parametrize(
    ("compiled", "name"),
    [
        (nested(torch.full((3,), 1.5)), "output.extra.inner.hidden"),
        (nested(torch.ones(3), steps=4), "output.extra.steps"),
        (nested(torch.ones(3), steps=3.0), "output.extra.steps"),
        (nested(torch.ones(3), steps=True), "output.extra.steps"),
        (nested(torch.ones(3), unused=torch.zeros(1)), "output.extra.inner.unused"),
        (nested(torch.ones(3), unused={}), "output.extra.inner.unused"),
    ],
)
def test_a_difference_is_found_at_any_depth(compiled, name):
    """And the leaf is named, be it a tensor, a number, or a None that is no None."""
    accuracy = check(nested(torch.ones(3)), compiled)

    assert [name] == [leaf.name for leaf in accuracy.failed]


def test_equal_values_pass():
    """Every leaf is counted, tensors or not."""
    accuracy = check(nested(torch.ones(3)), nested(torch.ones(3)))

    assert (0, 4, Reference.FLOAT64) == (accuracy.failed_count, accuracy.leaves, accuracy.reference)


@pytest.mark.parametrize(
    ("eager", "compiled"),
    [
        ([1, 2], (1, 2)),
        ([1, 2], [1, 2, 3]),
        ({"a": 1}, {"b": 1}),
        ({"a": 1}, UserDict(a=1)),
        (SimpleNamespace(a=1), {"a": 1}),
        ([], ()),
        ("yes", "no"),
        (1 + 2j, 1 + 3j),
        (torch.ones(2), [1.0, 1.0]),
    ],
)
def test_containers_lengths_and_keys_must_agree(eager, compiled):
    """A list is no tuple, a dict no other mapping; nothing is lost or added."""
    accuracy = check(eager, compiled)

    assert accuracy.failed_count
    assert all("eager" in leaf.detail and "compiled" in leaf.detail for leaf in accuracy.failed)
    assert 0 == check(eager, copy.deepcopy(eager)).failed_count


def test_broken_container_is_told_once():
    """What stands below it is not told again leaf by leaf."""
    accuracy = check({"a": [[torch.ones(1)]] * 5, "b": 1}, {"a": [[torch.ones(1)]] * 4, "b": 1})

    assert ["output.a"] == [leaf.name for leaf in accuracy.failed]


def test_shapes_must_agree_even_when_empty():
    """Both shapes stand in the message; no mean over nothing warns."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rows = check(torch.ones(36, 4), torch.ones(34, 4))
        empty = check(torch.empty(0, 4), torch.empty(0, 5))
        same = check(torch.empty(0, 4), torch.empty(0, 4))

    assert "(36, 4)" in rows.failed[0].detail
    assert "(34, 4)" in rows.failed[0].detail
    assert (1, 0) == (empty.failed_count, same.failed_count)


def test_types_must_agree():
    """A result in another number format is another result, however near."""
    accuracy = check(torch.ones(4), torch.ones(4, dtype=torch.float64))

    assert "float32" in accuracy.failed[0].detail
    assert "float64" in accuracy.failed[0].detail


@pytest.mark.parametrize("dtype", [torch.int64, torch.uint8, torch.bool])
def test_integers_and_bools_are_compared_exactly(dtype):
    """One wrong value in 4,096 is a wrong answer, and the place is told."""
    eager = torch.ones(4096, dtype=dtype)
    compiled = eager.clone()
    assert 0 == check(eager, compiled).failed_count

    compiled[4095] = 0
    assert "1 of 4096 differ, first at [4095]" in check(eager, compiled).failed[0].detail


# -- numbers ----------------------------------------------------------------------------------


def test_close_elements_pass_whatever_float64_says():
    """Within the tolerance of eager at every element, absolute and relative."""
    eager = noise_like((2000,))

    assert 0 == check(eager, eager + 9e-4).failed_count
    assert 1 == check(eager, eager + 3e-3).failed_count


@pytest.mark.parametrize(("times_eagers_error", "passes"), [(1.9, True), (2.2, False)])
def test_error_may_be_twice_eagers(times_eagers_error, passes):
    """Where elements are not close, the error against float64 is held against eager's own."""
    exact = noise_like((5000,)).double()
    eager, compiled = ((exact + share * 0.1 * noise_like((5000,), 1)).float() for share in (1, times_eagers_error))
    accuracy = check(eager, compiled, exact)

    assert passes == (not accuracy.failed_count)
    assert accuracy.worst.error == pytest.approx(times_eagers_error * 0.1, rel=0.1)
    assert accuracy.worst.allowed == pytest.approx(0.2, rel=0.1)


@pytest.mark.parametrize(
    ("shape", "rule"),
    [
        ((500,), {}),
        ((100, 100, 1, 1), {}),
        ((5000,), {"precision": Precision.AMP}),
        ((5000,), {"tolerance": 2e-2}),
    ],
)
def test_error_may_be_three_times_eagers(shape, rule):
    """Where there are few elements, 1 x 1 kernels, half precision or a loose tolerance; not four times."""
    exact = noise_like(shape).double()
    eager, threefold, fourfold = ((exact + share * 0.2 * noise_like(shape, 1)).float() for share in (1, 2.8, 4))

    assert 0 == check(eager, threefold, exact, **rule).failed_count
    assert 1 == check(eager, fourfold, exact, **rule).failed_count


def test_direction_is_no_measure():
    """An output 1.5 times as large fails, with a reference and without one."""
    eager = noise_like((1000,)).exp()

    assert 1 == check(eager, eager * 1.5).failed_count
    alone = compare(leaves(eager), leaves(eager * 1.5), None, tolerance=1e-3, reference_why="out of memory")
    assert (1, Reference.EAGER, "out of memory") == (alone.failed_count, alone.reference, alone.reference_why)


def test_without_reference_half_precision_is_allowed_its_spacing():
    """Nothing finer than the number format can be asked for; 30 % is far beyond it."""
    eager = noise_like((1000,)).bfloat16()

    def failed(factor: float, precision: Precision) -> int:
        compiled = (eager.float() * factor).bfloat16()
        return compare(leaves(eager), leaves(compiled), None, tolerance=1e-3, precision=precision).failed_count

    assert (0, 1) == (failed(1.008, Precision.AMP), failed(1.3, Precision.AMP))
    assert 1 == failed(1.008, Precision.FP32)


def test_same_nan_and_infinity_are_equal():
    """At the same places they are the same answer, and do not switch the rest off."""
    eager = torch.tensor([NAN, INF, -INF, 1.0, 2.0])

    assert 0 == check(eager, eager.clone()).failed_count
    assert 1 == check(eager, torch.tensor([NAN, INF, -INF, 1.0, 3.0])).failed_count
    assert 1 == check(eager, torch.tensor([NAN, INF, INF, 1.0, 2.0])).failed_count


@pytest.mark.parametrize("special", [NAN, INF])
def test_new_nan_fails(special):
    """One where eager has a number fails, whatever the error elsewhere."""
    eager = torch.ones(1000)
    compiled = eager.clone()
    compiled[40] = special
    accuracy = check(eager, compiled)

    assert "1 of 1000 places" in accuracy.failed[0].detail
    assert accuracy.failed[0].error is None
    assert accuracy.worst == accuracy.failed[0]


def test_nan_of_eager_alone_is_forgiven_where_float64_agrees():
    """If compiled and float64 have numbers everywhere and lie within 4e-2 of each other."""
    eager, exact = torch.tensor([1.0, NAN, 3.0]), torch.tensor([1.0, 2.0, 3.0]).double()

    assert 0 == check(eager, torch.tensor([1.0, 2.02, 3.0]), exact).failed_count
    assert 1 == check(eager, torch.tensor([1.0, 2.5, 3.0]), exact).failed_count
    assert 1 == check(eager, torch.tensor([1.0, 2.02, 3.0]), torch.tensor([1.0, NAN, 3.0])).failed_count


def test_nan_of_float64_judges_nothing():
    """Elements that are not close, and that float64 has no number for, fail; the others are judged as ever."""
    eager = torch.tensor([1.0, 2.0])

    assert 0 == check(eager, eager + 1e-4, torch.tensor([NAN, 2.0])).failed_count
    assert 1 == check(eager, eager + torch.tensor([1.0, 0.0]), torch.tensor([NAN, 2.0])).failed_count


def test_double_and_complex_are_compared_in_double():
    """A difference that float32 could not hold is measured; so is one in the imaginary part alone."""
    eager = noise_like((10,)).double()
    small = check(eager, eager + 1e-12)
    assert small.worst.error == pytest.approx(1e-12, rel=1e-3)

    spectrum = torch.fft.fft(eager)
    assert 0 == check(spectrum, spectrum.clone(), spectrum).failed_count
    assert 1 == check(spectrum, spectrum + 0.1j, spectrum).failed_count


def test_numbers_of_python_are_compared_within_the_tolerance():
    """As a scalar tensor would be; NaN is NaN."""
    assert 0 == check({"a": 1.0, "b": NAN}, {"a": 1.0005, "b": NAN}).failed_count
    assert 1 == check({"a": 1.0}, {"a": 1.1}).failed_count


def test_huge_numbers_stay_in_the_record():
    """An error beyond float64 is bounded: a record holds no infinity."""
    accuracy = check(torch.tensor([1e300], dtype=torch.float64), torch.tensor([-1e300], dtype=torch.float64))

    assert 1 == accuracy.failed_count
    assert math.isfinite(accuracy.failed[0].error)


def test_large_leaves_are_compared_to_the_last_chunk():
    """Leaves are taken some elements at a time; the last one counts as the first."""
    eager = torch.zeros((1 << 20) + 5)
    compiled = eager.clone()
    compiled[-1] = 2.0

    assert 0 == check(eager, eager.clone()).failed_count
    assert "1 of 1048581 elements" in check(eager, compiled).failed[0].detail


def test_first_ten_failures_are_named_and_all_counted():
    """The worst is the leaf with the largest error in units of what was allowed."""
    eager = {f"leaf{index}": torch.zeros(4) for index in range(25)}
    accuracy = check(eager, {name: value + 0.1 + 0.1 * (name == "leaf17") for name, value in eager.items()})

    assert (25, MAX_FAILED, "output.leaf17") == (accuracy.failed_count, len(accuracy.failed), accuracy.worst.name)
    assert "output.leaf0" == accuracy.failed[0].name


# -- gradients --------------------------------------------------------------------------------


def test_missing_gradient_counts_as_zeros():
    """And it is said which side had none."""

    def gradients(value: Any) -> Leaves:
        return Leaves({"gradient.a": value})

    zero = compare(gradients(None), gradients(torch.zeros(3)), None, tolerance=1e-3)
    assert (0, "eager has no gradient: counted as zeros") == (zero.failed_count, zero.worst.detail)

    lost = compare(gradients(torch.ones(3)), gradients(None), None, tolerance=1e-3)
    assert lost.failed[0].detail.startswith("compiled has no gradient")
    assert 0 == compare(gradients(None), gradients(None), None, tolerance=1e-3).failed_count


# -- noise ------------------------------------------------------------------------------------


def test_eager_runs_are_normally_the_same():
    """Bit for bit, NaN included: no noise."""
    first = leaves({"a": torch.tensor([1.0, NAN]), "b": 3})

    assert (0.0, ()) == ((noise := eager_noise(first, copy.deepcopy(first), 1e-3)).worst, noise.differing)


def test_small_noise_is_a_floor():
    """A difference within the tolerance is measured, and a compiled run may be as far off on top of the rest."""
    eager = torch.ones(5000)
    noise = eager_noise(leaves(eager), leaves(eager + 9e-4), 1e-3)
    compiled = eager.clone()
    compiled[0] += 0.06  # RMSE 8.5e-4: above tolerance / 10, below it with the noise

    assert not noise.differing
    assert noise.worst == pytest.approx(9e-4, rel=1e-3)
    assert 1 == check(eager, compiled).failed_count
    accuracy = check(eager, compiled, noise=noise)
    assert (0, noise.worst) == (accuracy.failed_count, accuracy.eager_noise)


@pytest.mark.parametrize(
    "second", [{"a": torch.ones(3) + 1, "b": 1}, {"a": torch.ones(3), "b": 2}, {"a": torch.ones(2), "b": 1}, [1]]
)
def test_eager_that_differs_is_named(second):
    """Beyond the tolerance, in an integer, or in shape: the leaf says so, and no compiler is blamed."""
    noise = eager_noise(leaves({"a": torch.ones(3), "b": 1}), leaves(second), 1e-3)

    assert noise.differing
    assert noise.differing[0].name.startswith("output")


# -- whole steps ------------------------------------------------------------------------------


def scaled(module: nn.Module, factor: float) -> Any:
    return lambda *args: module(*args) * factor


def linear() -> nn.Module:
    torch.manual_seed(0)
    return nn.Linear(256, 64)


@pytest.mark.parametrize(
    ("factor", "precision", "passes"),
    [
        (1 + 3e-3, Precision.FP32, False),
        (1 + 3e-3, Precision.AMP, True),
        (1.3, Precision.FP32, False),
        (1.3, Precision.AMP, False),
    ],
)
def test_rounding_of_half_precision_is_no_failure(bench_of, factor, precision, passes):
    """A relative error of 0.003 is within what bfloat16 rounds away, and 0.3 is not; in float32 neither passes."""
    bench = bench_of(linear(), noise_like((32, 256)), precision=precision)

    assert passes == (not bench.check(scaled(bench.prepared.module, factor)).failed_count)


def test_wrong_gradient_behind_a_right_output(bench_of):
    """Training is checked by its gradients too: here the backward alone is wrong."""

    class WrongBackward(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            return x.clone()

        @staticmethod
        def backward(ctx: Any, gradient: Tensor) -> Tensor:
            return gradient * 100

    bench = bench_of(linear(), noise_like((32, 256)), loss=lambda y: y.square().mean(), mode=Mode.TRAINING)
    module = bench.prepared.module

    assert 0 == bench.check(module, 1e-2).failed_count
    accuracy = bench.check(lambda x: WrongBackward.apply(module(x)), 1e-2)
    assert {"gradient.weight", "gradient.bias"} == {leaf.name for leaf in accuracy.failed}


def test_buffer_left_behind(bench_of):
    """A compiled module that does not update its running statistics fails, its output being right."""
    net = nn.BatchNorm1d(4)
    bench = bench_of(net, 3 + noise_like((8, 4)), mode=Mode.TRAINING)

    def forgets(x: Tensor) -> Tensor:
        return nn.functional.batch_norm(x, None, None, net.weight, net.bias, training=True)

    assert 0 == bench.check(net, 1e-2).failed_count
    names = {leaf.name for leaf in bench.check(forgets, 1e-2).failed}
    assert {"buffer.running_mean", "buffer.num_batches_tracked"} <= names
    assert all(name.startswith("buffer.") for name in names)


def test_input_left_unwritten(bench_of):
    """A model that writes into its input, and a compiled one that does not: the input's value is part of the answer."""

    class Writes(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x.mul_(2.0).sum()

    bench = bench_of(Writes(), torch.ones(3))

    assert 0 == bench.check(bench.prepared.module).failed_count
    assert ["input[0]"] == [leaf.name for leaf in bench.check(lambda x: (x * 2).sum()).failed]


@pytest.mark.parametrize("kind", [OptimizerKind.SGD, OptimizerKind.ADAM])
def test_optimizer_step_that_does_nothing(bench_of, kind):
    """Gradients and output right, parameters not moved: the update is compared, and fails."""
    loss = lambda y: 10 * y.square().mean()  # noqa: E731
    bench = bench_of(linear(), noise_like((32, 256)), loss=loss, mode=Mode.TRAINING, optimizer=kind)
    step = bench.step_of(bench.prepared.module)

    def without_update() -> Any:
        before = [parameter.detach().clone() for parameter in bench.prepared.parameters]
        result = step()
        with torch.no_grad():
            for parameter, value in zip(bench.prepared.parameters, before, strict=True):
                parameter.copy_(value)
        return result

    eager = bench.collect()
    assert 0 == compare(eager, bench.collect(), None, tolerance=1e-2).failed_count
    accuracy = compare(eager, bench.collect(without_update), None, tolerance=1e-2)
    assert {"update.weight", "update.bias"} == {leaf.name for leaf in accuracy.failed}


def test_adam_does_not_amplify_rounding(bench_of):
    """A bias before a batch norm has a gradient of rounding noise; other rounding must not become another step."""
    torch.manual_seed(0)
    net = nn.Sequential(nn.Conv2d(3, 16, 3), nn.BatchNorm2d(16), nn.ReLU(), nn.Conv2d(16, 32, 3), nn.BatchNorm2d(32))
    images = noise_like((8, 3, 16, 16))
    loss = lambda y: y.square().mean()  # noqa: E731
    bench = bench_of(net, images, loss=loss, mode=Mode.TRAINING, optimizer=OptimizerKind.ADAM)

    def otherwise(x: Tensor) -> Tensor:
        return net(x.contiguous(memory_format=torch.channels_last))

    accuracy = bench.check(otherwise, 1e-2)
    assert 0 == accuracy.failed_count
    assert accuracy.worst.error < 0.1 * accuracy.worst.allowed

    bench.prepared.optimizer.param_groups[0]["eps"] = 1e-8
    noisy = compare(bench.collect(), bench.collect(bench.step_of(otherwise)), None, tolerance=1e-2)
    assert any(leaf.name.startswith("update.") and leaf.name.endswith(".bias") for leaf in noisy.failed)


@pytest.mark.parametrize("size", [1.0, 1e-1, 1e-3])
def test_zeros_never_pass_for_small_values(size: float):
    """Whatever the size of a leaf, an answer of zeros fails, at the tolerance of training too."""
    eager = size * torch.randn(2000, generator=torch.Generator().manual_seed(1))

    assert 1 == check(eager, torch.zeros_like(eager), tolerance=1e-2).failed_count
    assert 0 == check(eager, eager * (1 + 1e-4), tolerance=1e-2).failed_count


def test_rounding_noise_of_a_zero_passes():
    """A leaf that is zero but for rounding may be any other rounding noise."""
    generator = torch.Generator().manual_seed(1)
    eager, compiled = (1e-9 * torch.randn(64, generator=generator) for _ in range(2))

    assert 0 == check(eager, compiled, tolerance=1e-2).failed_count


def test_a_lucky_leaf_of_eager_is_no_measure():
    """Where eager misses every gradient by a tenth but one, that one may be missed as far; zeros still fail."""
    generator = torch.Generator().manual_seed(1)
    exact = {f"g{number}": torch.randn(2000, generator=generator, dtype=torch.float64) for number in range(9)}
    missed = {name: value * 1.1 for name, value in exact.items()}
    eager = {**missed, "g0": exact["g0"].clone()}
    rule = {"tolerance": 1e-2, "precision": Precision.AMP}

    assert 0 == check(eager, missed, exact, **rule).failed_count
    assert 1 == check(eager, {**missed, "g0": exact["g0"] * 1.5}, exact, **rule).failed_count
    assert 1 == check(eager, {**missed, "g0": torch.zeros_like(exact["g0"])}, exact, **rule).failed_count
