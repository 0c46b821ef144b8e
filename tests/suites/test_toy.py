"""Three tiny models that build in no time."""

from __future__ import annotations

import pytest
import torch

from harness import config
from suites import toy
from suites.registry import LoadError
from suites.spec import Attention, Mode, ModelSpec

SPECS = {spec.name: spec for spec in config.suite("toy").models}


@pytest.fixture(params=SPECS.values(), ids=SPECS)
def spec(request):
    return request.param


def test_parameters_are_as_listed(spec):
    """The entry's count is the network's."""
    workload = toy.build(spec, Mode.INFERENCE, 4, seed=0)

    assert spec.parameters == sum(each.numel() for each in workload.module.parameters())


def test_seed_and_batch(spec):
    """Weights depend on the seed alone, inputs on seed and batch size."""
    one, same = toy.build(spec, Mode.INFERENCE, 4, seed=0), toy.build(spec, Mode.INFERENCE, 4, seed=0)
    larger, other = toy.build(spec, Mode.TRAINING, 8, seed=0), toy.build(spec, Mode.INFERENCE, 4, seed=1)

    state = one.module.state_dict()
    assert all(torch.equal(value, same.module.state_dict()[name]) for name, value in state.items())
    assert all(torch.equal(value, larger.module.state_dict()[name]) for name, value in state.items())
    assert any(not torch.equal(value, other.module.state_dict()[name]) for name, value in state.items())
    assert torch.equal(one.args[0], same.args[0])
    assert (4, 8) == (len(one.args[0]), len(larger.args[0]))


def test_training_has_a_loss(spec):
    """In training, every parameter gets a gradient from a finite scalar loss; inference has no loss."""
    workload = toy.build(spec, Mode.TRAINING, 4, seed=0)

    loss = workload.loss(workload.module(*workload.args, **workload.kwargs))
    loss.backward()

    assert loss.ndim == 0
    assert loss.isfinite()
    assert all(each.grad.any() for each in workload.module.parameters())
    assert toy.build(spec, Mode.INFERENCE, 4, seed=0).loss is None


def test_outputs_depend_on_inputs(spec):
    """Outputs of two inputs lie at least a tenth of their own size apart."""
    one, other = (toy.build(spec, Mode.INFERENCE, 4, seed=seed).args for seed in (0, 1))
    module = toy.build(spec, Mode.INFERENCE, 4, seed=0).module.eval()

    with torch.no_grad():
        outputs = [module(*args) for args in (one, other)]
    first, second = (each["logits"] if isinstance(each, dict) else each for each in outputs)

    assert (first - second).square().mean().sqrt() > 0.1 * first.square().mean().sqrt()


def test_attention_output_is_nested():
    """One of the three returns a nested dict with a tuple, a None and an integer in it."""
    workload = toy.build(SPECS["attention"], Mode.INFERENCE, 2, seed=0)

    output = workload.module(*workload.args)

    assert (2, 10) == output["logits"].shape
    assert output["states"]["pooled"][1] is None
    assert 16 == output["length"]


def test_eager_attention_is_the_same_network():
    """Spelled out, attention has the same weights and gives nearly the same output."""
    fused, eager = (toy.build(SPECS["attention"], Mode.INFERENCE, 2, seed=0, attention=kind) for kind in Attention)

    assert all(torch.equal(value, eager.module.state_dict()[name]) for name, value in fused.module.state_dict().items())
    one, other = (each.module(*each.args)["logits"] for each in (fused, eager))
    torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-6)


def test_batch_size_may_be_left_out():
    """Without a batch size there is one sample."""
    assert 1 == len(toy.build(SPECS["mlp"], Mode.INFERENCE, None, seed=0).args[0])


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (ModelSpec(name="mpl", input_size=(4,)), 'no model "mpl"'),
        (ModelSpec(name="mlp"), "needs an input_size"),
    ],
)
def test_unknown_entry(spec, message):
    """An entry that cannot be built says why."""
    with pytest.raises(LoadError, match=message):
        toy.build(spec, Mode.INFERENCE, 1, seed=0)
