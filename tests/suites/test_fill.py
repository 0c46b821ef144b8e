"""Filled networks depend on their input, from end to end."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from suites import fill, inputs


class Branch(nn.Module):
    """A residual block whose last norm starts at zero."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(4, 4, 3, padding=1)
        self.norm = nn.BatchNorm2d(4)
        nn.init.zeros_(self.norm.weight)

    def forward(self, x):
        return x + self.norm(self.conv(x))


@pytest.fixture
def network():
    with inputs.seeded(0):
        return nn.Sequential(*(Branch() for _ in range(16)))


@pytest.fixture
def images():
    return inputs.images(8, (4, 6, 6), seed=0)


def test_zero_scales_are_filled(network):
    """Zero gains become about 1 / sqrt(depth), positive; all else stays as it was."""
    before = {name: value.clone() for name, value in network.named_parameters()}

    names = fill.fill_scales(network, seed=1)

    assert [f"{place}.norm.weight" for place in range(16)] == names
    gains = torch.cat([branch.norm.weight.detach() for branch in network])
    assert gains.min() >= 0.5 / 4
    assert gains.max() <= 1.5 / 4
    assert all(torch.equal(before[name], value) for name, value in network.named_parameters() if name not in names)


def test_layer_scales_are_filled():
    """Scales that start at 1e-6 switch a branch off as well as zeros do."""
    network = nn.Module()
    network.gamma = nn.Parameter(torch.full((8, 1, 1), 1e-6))

    assert ["gamma"] == fill.fill_scales(network, seed=1)
    assert network.gamma.min() >= 0.5


def test_zero_kernels_are_filled():
    """A kernel of zeros gets normal values scaled by its inputs, with both signs."""
    network = nn.Linear(100, 50)
    nn.init.zeros_(network.weight)
    nn.init.zeros_(network.bias)

    assert ["weight"] == fill.fill_scales(network, seed=1)
    assert 0.1 == pytest.approx(network.weight.std().item(), rel=0.1)
    assert not network.bias.any()


def test_statistics_are_those_of_the_data(network, images):
    """After calibration the first norm's statistics are its input's; modes, momenta, random numbers stay."""
    network[3].eval()
    training = [each.training for each in network.modules()]
    before = torch.get_rng_state()

    fill.calibrate(network, (images,), {}, seed=0)

    seen = network[0].conv(images).detach()
    assert torch.allclose(seen.mean((0, 2, 3)), network[0].norm.running_mean, atol=1e-5)
    assert torch.allclose(seen.var((0, 2, 3)), network[0].norm.running_var, rtol=1e-4)
    assert training == [each.training for each in network.modules()]
    assert {0.1} == {each.norm.momentum for each in network}
    assert torch.equal(before, torch.get_rng_state())


def test_statistics_of_instance_norms(images):
    """Instance norms that keep statistics get those of the data too: the mean over images, as one pass in training."""
    norm = nn.InstanceNorm2d(4, track_running_stats=True)

    fill.calibrate(norm, (images * 3 + 5,), {}, seed=0)

    assert torch.allclose(norm.running_mean, (images * 3 + 5).mean((0, 2, 3)), rtol=1e-4)
    assert norm.momentum == 0.1


def test_dropout_is_off_while_calibrating():
    """Statistics are those that eval mode sees, so dropout does not scale them."""
    network = nn.Sequential(nn.Dropout(0.5), nn.BatchNorm1d(3))
    values = inputs.features(64, (3,), seed=0)

    fill.calibrate(network, (values,), {}, seed=0)

    assert torch.allclose(values.mean(0), network[1].running_mean, atol=1e-6)


def test_modes_come_back_after_an_error(network):
    """A network that cannot run raises, and is left in the mode in which it was."""
    with pytest.raises(RuntimeError):
        fill.calibrate(network, (torch.zeros(1, 3, 2, 2),), {}, seed=0)

    assert all(each.training for each in network.modules())
    assert {0.1} == {each.norm.momentum for each in network}


def test_filling_is_seeded(network, images):
    """The same seed fills alike, another seed does not."""
    gains = []
    for seed in (1, 1, 2):
        for branch in network:
            nn.init.zeros_(branch.norm.weight)
        fill.wake(network, (images,), {}, seed)
        gains.append(network[0].norm.weight.detach().clone())

    assert torch.equal(gains[0], gains[1])
    assert not torch.equal(gains[0], gains[2])


def test_fault_in_a_branch_reaches_the_output(network, images):
    """What is wrong inside a branch that starts at zero is invisible as built, and visible once filled."""

    def effect():
        network.eval()
        with torch.no_grad():
            right = network(images)
            network[7].conv.weight.mul_(1.5)
            wrong = network(images)
            network[7].conv.weight.div_(1.5)
        return (right - wrong).abs().max().item()

    assert 0.0 == effect()
    fill.wake(network, (images,), {}, seed=1)
    assert effect() > 0.05


def test_depth_does_not_blow_up(images):
    """Activations stay small however many branches there are."""
    with inputs.seeded(0):
        deep = nn.Sequential(*(Branch() for _ in range(100)))

    fill.wake(deep, (images,), {}, seed=1)

    assert deep.eval()(images).abs().max() < 30
