"""The speaker encoder computes what the original did; its loss is one over cosines."""

from __future__ import annotations

import math

import pytest
import torch

from suites.spec import Attention, Mode
from suites.torchbench.recipe import Ask
from suites.torchbench.speaker import SpeakerEncoder
from tests.suites import parity


@torch.no_grad()
def test_embeddings():
    """The embeddings are the original's, of unit length."""
    embeddings = parity.filled(SpeakerEncoder().network(Attention.FUSED))(parity.wave(2, 50, 40))

    parity.assert_computes("tts_angular", [embeddings])
    assert [1, 1] == pytest.approx(embeddings.norm(dim=1).tolist())


def test_loss_by_hand():
    """A voice on the axis of its speaker scores 5 there and -5 elsewhere; on another one's axis it costs 10 more."""
    loss = SpeakerEncoder(width=4).call(Ask(Mode.TRAINING, 1, seed=0)).loss

    costs = sorted(loss(axis.unsqueeze(0)).item() for axis in torch.eye(4))

    at_home = math.log(math.exp(5) + 3 * math.exp(-5)) - 5
    assert [at_home, *[at_home + 10] * 3] == pytest.approx(costs, abs=1e-5)
