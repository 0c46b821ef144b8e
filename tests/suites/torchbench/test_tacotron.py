"""Tacotron 2 computes what the original did, one frame after the other."""

from __future__ import annotations

import math

import pytest
import torch

from harness.worker.dropout import lower_dropouts
from suites.spec import Attention, Mode
from suites.torchbench.recipe import Ask
from suites.torchbench.tacotron import Tacotron
from tests.suites import parity

SMALL = Tacotron(width=16, attention_width=8, prenet_width=8, cell_width=16, mels=4, text_length=6)


def batch():
    return (parity.ints(147, 2, 30) + 1, torch.tensor([30, 25]), parity.wave(2, 80, 40), 30, torch.tensor([40, 33]))


@torch.no_grad()
def test_frames_ends_and_attention():
    """Mels, refined mels, logits of the end and attention are the original's, dropout off."""
    module = parity.filled(Tacotron().network(Attention.FUSED))
    module.decoder.prenet.dropout = 0.0

    parity.assert_computes("tacotron2", module(batch()))


@torch.no_grad()
def test_dropout_is_always_on():
    """Two runs in eval mode differ, until the harness lowers the dropout."""
    module = SMALL.network(Attention.FUSED).eval()
    (arguments,) = SMALL.call(Ask(Mode.INFERENCE, 2, seed=0, length=5)).args
    one, two = module(arguments), module(arguments)

    lowered = lower_dropouts(module)

    assert not torch.equal(one[0], two[0])
    assert 1 == lowered
    assert torch.equal(module(arguments)[0], module(arguments)[0])


@torch.no_grad()
def test_frames_depend_on_those_before():
    """A change of the third frame changes the fourth and what follows, not the first three."""
    module = SMALL.network(Attention.FUSED).eval()
    lower_dropouts(module)
    (arguments,) = SMALL.call(Ask(Mode.INFERENCE, 1, seed=0, length=6)).args
    other = arguments[2].clone()
    other[:, :, 2] += 1

    one, two = module(arguments)[0], module((*arguments[:2], other, *arguments[3:]))[0]

    assert torch.equal(one[..., :3], two[..., :3])
    assert (one[..., 3:] != two[..., 3:]).any((0, 1)).all()


def test_arguments():
    """Lengths fall, the first text and its speech are the longest, and both are padded with zeros."""
    ((text, text_lengths, mels, longest, lengths),) = Tacotron().call(Ask(Mode.TRAINING, 8, seed=0, length=785)).args

    assert ((8, 170), (8, 80, 785), 170) == (text.shape, mels.shape, longest)
    assert (170, 785) == (text_lengths[0], lengths[0])
    assert torch.equal(text_lengths, (text != 0).sum(1))
    assert torch.equal(lengths, (mels != 0).any(1).sum(1))
    for each in (text_lengths, lengths):
        assert (each.diff() <= 0).all()
        assert each[-1] < each[0] <= 2 * each[-1]


def test_loss_by_hand():
    """Both mels are held against the given ones; the end is at the last frame and after it."""
    call = SMALL.call(Ask(Mode.TRAINING, 2, seed=0, length=7))
    ((_, _, mels, _, lengths),) = call.args
    ended = torch.arange(7) >= lengths.unsqueeze(1) - 1
    certain = torch.where(ended, 1e3, -1e3)

    assert 0 == call.loss([mels, mels, certain, None]).item()
    assert 5 == pytest.approx(call.loss([mels + 1, mels - 2, certain, None]).item())
    assert math.log(2) == pytest.approx(call.loss([mels, mels, torch.zeros(2, 7), None]).item())
