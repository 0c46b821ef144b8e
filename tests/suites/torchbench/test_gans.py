"""DCGAN's discriminator and the generators of CycleGAN and StarGAN compute what the originals did."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from suites.spec import Attention
from suites.torchbench.gans import CycleGan, Discriminator, StarGan
from tests.suites import parity

CASES = {
    "dcgan": (Discriminator(), (parity.wave(2, 3, 64, 64),)),
    "pytorch_CycleGAN_and_pix2pix": (CycleGan(), (parity.wave(1, 3, 64, 64),)),
    "pytorch_stargan": (StarGan(), (parity.wave(2, 3, 64, 64), parity.wave(2, 5))),
}


@torch.no_grad()
@pytest.mark.parametrize("name", CASES)
def test_outputs_are_those_of_the_original(name):
    """Outputs of the filled network are the original's."""
    recipe, arguments = CASES[name]
    module = parity.filled(recipe.network(Attention.FUSED))

    parity.assert_computes(name, [module(*arguments)])


@torch.no_grad()
def test_attributes_change_the_image():
    """StarGAN makes another image of the same one where another attribute is wanted."""
    module = parity.filled(StarGan(blocks=1).network(Attention.FUSED))
    image = parity.wave(1, 3, 8, 8)
    first, second = (module(image, wanted[None]) for wanted in torch.eye(5)[:2])

    assert (first - second).abs().max() > 0.1 * first.abs().max()


@torch.no_grad()
def test_running_statistics_move():
    """StarGAN's norms, unlike CycleGAN's, keep statistics: a step in training moves them, one in inference does not."""
    module = parity.filled(StarGan(blocks=1).network(Attention.FUSED))
    statistics = {name: each for name, each in module.named_buffers() if "running" in name}
    before = {name: each.clone() for name, each in statistics.items()}
    module(parity.wave(1, 3, 8, 8), parity.wave(1, 5))
    moved_in_inference = [name for name in before if not torch.equal(before[name], statistics[name])]
    module.train()(parity.wave(1, 3, 8, 8), parity.wave(1, 5))
    moved_in_training = [name for name in before if not torch.equal(before[name], statistics[name])]

    assert [] == moved_in_inference
    assert [*before] == moved_in_training != []
    assert not [*CycleGan(blocks=1).network(Attention.FUSED).buffers()]


@pytest.mark.parametrize("recipe", [Discriminator(), CycleGan()], ids=lambda recipe: type(recipe).__name__)
def test_kernels_are_drawn_as_published(recipe):
    """Kernels have a mean of 0 and a standard deviation of 0.02."""
    kernels = [each.weight for each in recipe.network(Attention.FUSED).modules() if isinstance(each, nn.Conv2d)]
    values = torch.cat([each.detach().flatten() for each in kernels])

    assert 0.02 == pytest.approx(values.std().item(), rel=0.01)
    assert abs(values.mean().item()) < 1e-4
