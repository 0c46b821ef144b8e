"""Two policies and a potential compute what the originals did; an answer may be a distribution."""

from __future__ import annotations

import copy

import pytest
import torch

from harness import config
from harness.worker.leaves import flatten, tensors
from suites.spec import Attention, Mode, Preset
from suites.torchbench.build import build
from suites.torchbench.control import PixelActor, Potential, StateActor, mean_action
from tests.suites import parity

RECIPES = {"lennard_jones": Potential, "soft_actor_critic": StateActor, "drq": PixelActor}
ACTORS = ("soft_actor_critic", "drq")
SPECS = {spec.name: spec for spec in config.suite("torchbench").models if spec.name in RECIPES}
SMALL = {name: spec.at(Preset.SMALL) for name, spec in SPECS.items()}


@torch.no_grad()
def test_potential_computes():
    """Outputs are the original's."""
    module = parity.filled(Potential().network(Attention.FUSED))

    parity.assert_computes("lennard_jones", [module(parity.wave(8, 1))])


@torch.no_grad()
@pytest.mark.parametrize(
    ("name", "inputs"),
    [("soft_actor_critic", parity.wave(4, 3)), ("drq", 127 * parity.wave(1, 27, 84, 84) + 128)],
    ids=ACTORS,
)
def test_actors_compute(name, inputs):
    """Mean and deviation of the normal distribution, and the mean action, are the original's."""
    answer = parity.filled(RECIPES[name]().network(Attention.FUSED))(inputs)

    parity.assert_computes(name, [answer.base_dist.loc, answer.base_dist.scale, answer.mean])


@pytest.mark.parametrize("name", RECIPES)
def test_outputs_depend_on_inputs(name):
    """Each tensor put out for inputs of two seeds lies a tenth of its size apart; no activation exceeds 1e3."""
    workload, other = (build(SMALL[name], Mode.INFERENCE, 8, seed) for seed in (0, 1))
    largest = []
    for each in workload.module.modules():
        each.register_forward_hook(lambda _, __, output: largest.extend(t.abs().max() for t in tensors(output)))

    with torch.no_grad():
        outputs = [tensors(workload.module(*args)) for args in (workload.args, other.args)]

    for one, two in zip(*outputs, strict=True):
        assert (one - two).square().mean().sqrt() >= 0.1 * torch.stack([one, two]).square().mean().sqrt()
    assert max(largest) < 1e3


@pytest.mark.parametrize("name", RECIPES)
def test_every_parameter_learns(name):
    """The loss is a finite scalar, and every parameter gets a gradient from it; inference has no loss."""
    workload = build(SMALL[name], Mode.TRAINING, 2, seed=0)

    loss = workload.loss(workload.module(*workload.args))
    loss.backward()

    assert loss.isfinite()
    assert all(each.grad.any() for each in workload.module.parameters())
    assert build(SMALL[name], Mode.INFERENCE, 2, seed=0).loss is None


@pytest.mark.parametrize("name", RECIPES)
def test_seed_decides(name):
    """Weights come from the seed alone, arguments from seed and batch size."""
    one, same, larger, other = (
        build(SMALL[name], Mode.TRAINING, batch, seed) for batch, seed in ((2, 7), (2, 7), (3, 7), (2, 8))
    )

    pairs = zip(one.module.parameters(), larger.module.parameters(), strict=True)
    assert all(torch.equal(a, b) for a, b in pairs)
    assert torch.equal(one.args[0], same.args[0])
    assert (2, 3) == (len(one.args[0]), len(larger.args[0]))
    assert not torch.equal(one.args[0], other.args[0])


def test_potential_of_two_particles():
    """The loss is zero for the potential itself, which is 0 at a distance of 1 and least, at -1, at 2 ** (1 / 6)."""
    call = build(SMALL["lennard_jones"], Mode.TRAINING, 1000, seed=0)
    (distances,) = call.args
    energies = 4 * (distances**-12 - distances**-6)

    assert 0 == call.loss(energies).item()
    assert 1 == call.loss(energies + 1).item()
    assert 1 <= distances.min() < 1.01
    assert energies.min().item() == pytest.approx(-1, abs=1e-3)


def test_states_are_those_of_a_pendulum():
    """Cosine and sine are of one angle; the speed lies between -8 and 8."""
    (states,) = build(SMALL["soft_actor_critic"], Mode.INFERENCE, 256, seed=0).args

    torch.testing.assert_close(states[:, :2].square().sum(1), torch.ones(256))
    assert 7 < states[:, 2].abs().max() <= 8


@pytest.mark.parametrize("name", ACTORS)
def test_a_distribution_is_compared_by_its_parameters(name):
    """Compiled in one graph, a policy gives the same kind of object; its mean and deviation are what is compared."""
    workload = build(SMALL[name], Mode.INFERENCE, 2, seed=0)

    with torch.no_grad():
        eager = flatten("output", workload.module(*workload.args))
        compiled = flatten(
            "output", torch.compile(workload.module, backend="aot_eager", fullgraph=True)(*workload.args)
        )

    assert eager.structure == compiled.structure
    assert {"output.base_dist.loc", "output.base_dist.scale"} == {
        leaf for leaf, value in eager.values.items() if isinstance(value, torch.Tensor)
    }
    for leaf, value in eager.values.items():
        torch.testing.assert_close(compiled.values[leaf], value)


def test_loss_of_a_policy():
    """The loss is the mean of the squashed means: deviations get no gradient, and half precision is widened."""
    workload = build(SMALL["soft_actor_critic"], Mode.TRAINING, 4, seed=0)
    answer = workload.module(*workload.args)

    loss = workload.loss(answer)
    loss.backward()

    assert loss.item() == pytest.approx(answer.base_dist.loc.tanh().mean().item())
    of_mean, of_deviation = workload.module.policy[-1].weight.grad
    assert of_mean.any()
    assert not of_deviation.any()
    assert torch.float32 == mean_action(1.0)(workload.module.bfloat16()(workload.args[0].bfloat16())).dtype


def test_pixels_are_kept():
    """The policy over pixels keeps what each layer gave, also compiled; a copy after a step starts without."""
    workload = build(SMALL["drq"], Mode.TRAINING, 1, seed=0)
    module = workload.module

    module(*workload.args)
    kept = flatten("kept", [module.kept, module.encoder.kept]).values
    torch.compile(module, backend="aot_eager", fullgraph=True)(*workload.args)
    again = flatten("kept", [module.kept, module.encoder.kept]).values

    assert (10, {*kept}) == (len(kept), {*again})
    for leaf, value in kept.items():
        torch.testing.assert_close(again[leaf], value)
    assert {} == copy.deepcopy(module).encoder.kept
