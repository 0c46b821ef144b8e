"""U-Net computes what the original did, and is trained to tell two classes of pixels apart."""

from __future__ import annotations

import math

import pytest
import torch

from suites.spec import Attention, Mode
from suites.torchbench.recipe import Ask
from suites.torchbench.unet import Unet
from tests.suites import parity


@torch.no_grad()
def test_outputs_are_those_of_the_original():
    """Outputs of the filled network are the original's; the odd width is padded on the way up."""
    module = parity.filled(Unet().network(Attention.FUSED))

    parity.assert_computes("pytorch_unet", [module(parity.wave(1, 3, 64, 95))])


def test_loss():
    """The loss of equal logits is the logarithm of two; it falls where the logits say what the masks say."""
    call = Unet().call(Ask(Mode.TRAINING, 2, seed=0, size=(3, 4, 6)))
    logits = torch.zeros(2, 2, 4, 6, requires_grad=True)
    call.loss(logits).backward()
    better = logits.detach() - logits.grad

    assert math.log(2) == pytest.approx(call.loss(logits).item())
    assert call.loss(better) < call.loss(logits)
