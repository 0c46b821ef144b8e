"""BERT's encoder computes what the original did; its arguments are padded pairs of sentences."""

from __future__ import annotations

import math

import pytest
import torch

from suites.spec import Attention, Mode
from suites.torchbench.bert import PADDING, SPECIAL, Bert, Norm
from suites.torchbench.recipe import Ask
from tests.suites import parity


def is_gain(module, name):
    """Say whether a vector is the gain of a norm, the network's own kind included."""
    return parity.is_gain(module, name) or (name == "weight" and isinstance(module, Norm))


@torch.no_grad()
def test_states():
    """The states are the original's."""
    tokens = parity.ints(20005, 2, 128)
    tokens[:, 100:] = PADDING
    segments = torch.ones_like(tokens)
    segments[:, 64:] = 2

    states = parity.filled(Bert().network(Attention.FUSED), is_gain)(tokens, segments)

    parity.assert_computes("BERT_pytorch", [states])


def test_norm_by_hand():
    """The unbiased deviation of (1, 2, 3) is 1, to which epsilon is added."""
    normal = Norm(3, epsilon=1.0)(torch.tensor([1.0, 2.0, 3.0]))

    assert [-0.5, 0, 0.5] == pytest.approx(normal.tolist())


def test_sentences_are_mostly_padding():
    """At least half of each row is padding in segment 0; before it are words, in one segment after the other."""
    tokens, segments = Bert().call(Ask(Mode.INFERENCE, 64, seed=0, length=128)).args
    used = (tokens != PADDING).sum(1)

    assert 16 <= used.min() < used.max() <= 64
    for row, kinds, count in zip(tokens, segments, used, strict=True):
        assert row[:count].min() >= SPECIAL
        assert kinds.tolist() == [1] * (count // 2) + [2] * (count - count // 2) + [0] * (128 - count)


def test_padding_costs_nothing():
    """States of padding have no part in the loss; equal states over the 768 classes cost log 768."""
    call = Bert().call(Ask(Mode.TRAINING, 2, seed=0, length=16))
    states = torch.zeros(2, 16, 768)
    states[call.args[0] == PADDING] = torch.randn(768)

    assert math.log(768) == pytest.approx(call.loss(states).item())
