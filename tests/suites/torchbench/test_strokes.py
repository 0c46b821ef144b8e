"""The actor of Learning to Paint computes what the original did, and sees states as the original lays them out."""

from __future__ import annotations

import torch

from suites.spec import Attention, Mode
from suites.torchbench.recipe import Ask
from suites.torchbench.strokes import EPISODE, Painter
from tests.suites import parity


@torch.no_grad()
def test_outputs_are_those_of_the_original():
    """Outputs of the filled network are the original's."""
    module = parity.filled(Painter().network(Attention.FUSED))

    parity.assert_computes("LearningToPaint", [module(parity.wave(2, 9, 128, 128))])


def test_states():
    """A state is six maps of colour, one of the same step everywhere, and the coordinates from 0 to 1."""
    (states,) = Painter().call(Ask(Mode.INFERENCE, 4, seed=0, size=(9, 8, 16))).args
    step, down, across = states[:, 6], states[:, 7], states[:, 8]

    assert (4, 9, 8, 16) == states.shape
    assert 0 <= states.min() < states.max() <= 1
    assert len(states[0, :6].unique()) > 100
    assert torch.equal(step[:, :1, :1].expand_as(step), step)
    assert torch.equal((step * EPISODE).round() / EPISODE, step)
    assert torch.equal(torch.linspace(0, 1, 8), down[3, :, 5])
    assert torch.equal(torch.linspace(0, 1, 16), across[3, 5])
