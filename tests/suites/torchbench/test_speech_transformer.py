"""The Speech-Transformer computes what the original did, loops over rows included."""

from __future__ import annotations

import math

import pytest
import torch
from torch._dynamo.utils import counters

from suites.spec import Attention, Mode
from suites.torchbench.recipe import Ask
from suites.torchbench.speech_transformer import SpeechTransformer
from tests.suites import parity


@torch.no_grad()
def test_logits_and_targets():
    """Logits and shifted targets are the original's."""
    targets = parity.ints(1000, 2, 21) + 3
    targets[1, 15:] = -1
    module = parity.filled(SpeechTransformer().network(Attention.FUSED))

    output = module(parity.wave(2, 50, 320), torch.tensor([50, 40]), targets)

    parity.assert_computes("speech_transformer", output)


def test_utterances():
    """Frames and characters of the first row fill it; the others are from two thirds of that on, then -1."""
    call = SpeechTransformer().call(Ask(Mode.TRAINING, 10, seed=0, length=204))
    features, lengths, targets = call.args
    written = (targets != -1).sum(1)

    assert (10, 204, 320) == features.shape
    assert lengths[0] == 204 > lengths.min() >= 136
    assert written[0] == 21 > written.min() >= 14
    assert all(row[:count].min() >= 3 for row, count in zip(targets, written, strict=True))


def test_padding_costs_nothing():
    """Equal logits cost the logarithm of the vocabulary, whatever stands where a row of targets is filled up."""
    loss = SpeechTransformer().call(Ask(Mode.TRAINING, 2, seed=0)).loss
    logits, gold = torch.zeros(1, 3, 1014), torch.tensor([[5, 2, -1]])
    logits[0, 2] = torch.randn(1014)

    assert math.log(1014) == pytest.approx(loss((logits, gold)).item())


@torch.no_grad()
def test_rows_break_the_graph():
    """Masks made row by row and rows that are stripped leave several graphs, and the same answer."""
    module = SpeechTransformer(layers=1, width=16, heads=2).network(Attention.FUSED).eval()
    call = SpeechTransformer(target_length=5).call(Ask(Mode.INFERENCE, 2, seed=0, length=10))
    torch.compiler.reset()
    counters.clear()

    compiled = torch.compile(module, backend="eager")(*call.args)

    assert counters["graph_break"].total() >= 3
    torch.testing.assert_close(module(*call.args), compiled)
