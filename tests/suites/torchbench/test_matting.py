"""The generator of Background Matting computes what the original did."""

from __future__ import annotations

import torch

from suites.spec import Attention, Mode
from suites.torchbench.matting import Matting
from suites.torchbench.recipe import Ask
from tests.suites import parity

CHANNELS = (3, 3, 1, 4)


@torch.no_grad()
def test_outputs_are_those_of_the_original():
    """Alpha and foreground of the filled network are the original's."""
    module = parity.filled(Matting().network(Attention.FUSED))

    parity.assert_computes("Background_Matting", module(*(parity.wave(1, each, 128, 128) for each in CHANNELS)))


@torch.no_grad()
def test_motion_moves_nothing():
    """Every input shows in both outputs, but the motion, which is encoded and then left out."""
    module = Matting(shared_blocks=1, own_blocks=1).network(Attention.FUSED).eval()
    inputs = [parity.wave(1, each, 16, 16) for each in CHANNELS]
    before = module(*inputs)
    for at in range(4):
        after = module(*(-each if at == place else each for place, each in enumerate(inputs)))
        same = [torch.equal(one, two) for one, two in zip(before, after, strict=True)]

        assert [at == 3] * 2 == same


def test_loss_is_of_both_outputs():
    """The loss is nothing where both outputs are what is wanted, and the mean distance where one is not."""
    ask = Ask(Mode.TRAINING, 1, seed=0, size=(3, 4, 4), loss_scale=2)
    loss = Matting().call(ask).loss
    alpha, foreground = torch.zeros(1, 1, 4, 4, requires_grad=True), torch.zeros(1, 3, 4, 4, requires_grad=True)
    loss((alpha, foreground)).backward()

    assert torch.equal(torch.full((1, 1, 4, 4), 1 / 16 / 2), alpha.grad.abs())
    assert torch.allclose(torch.full((1, 3, 4, 4), 1 / 48 / 2), foreground.grad.abs())
