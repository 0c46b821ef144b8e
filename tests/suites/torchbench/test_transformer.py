"""The Transformer computes what the original did; its arguments are padded sentences stored word by word."""

from __future__ import annotations

import math

import pytest
import torch

from suites.spec import Attention, Mode
from suites.torchbench.recipe import Ask
from suites.torchbench.transformer import PADDING, SPECIAL, Transformer
from tests.suites import parity


@torch.no_grad()
def test_logits():
    """The logits are the original's."""
    source, target = parity.ints(9521, 2, 33), parity.ints(9521, 2, 31)
    source[:, 30:] = PADDING
    target[:, 28:] = PADDING

    logits = parity.filled(Transformer().network(Attention.FUSED))(source, target)

    parity.assert_computes("attention_is_all_you_need_pytorch", [logits])


def test_sentences():
    """33 words and 31, the first sentence full, the others with padding at the end; stored word by word."""
    source, target = Transformer().call(Ask(Mode.TRAINING, 64, seed=0, length=33)).args

    assert ((64, 33), (1, 64)) == (source.shape, source.stride())
    assert ((64, 31), (1, 64)) == (target.shape, target.stride())
    for sentences in (source, target):
        used = (sentences != PADDING).sum(1)
        assert used[0] == sentences.shape[1] > used.min() >= 20
        assert all(row[:count].min() >= SPECIAL for row, count in zip(sentences, used, strict=True))


def test_the_next_word_is_wanted():
    """Logits that are certain of the next word cost nothing but at the last place, whose next word is no argument."""
    call = Transformer(vocabulary=50).call(Ask(Mode.TRAINING, 1, seed=0, length=33))
    target = call.args[1][0]
    logits = torch.zeros(31, 50)
    logits[torch.arange(30), target[1:]] = 1e4

    assert math.log(50) / 31 == pytest.approx(call.loss(logits).item())


def test_padding_costs_nothing():
    """Where a sentence has ended its logits have no part in the loss."""
    call = Transformer(vocabulary=50).call(Ask(Mode.TRAINING, 8, seed=0, length=33))
    ended = (call.args[1] == PADDING).flatten()
    logits = torch.zeros(8 * 31, 50)
    logits[ended] = torch.randn(50)

    assert ended.any()
    assert math.log(50) == pytest.approx(call.loss(logits).item())
