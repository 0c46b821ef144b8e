"""Losses turn outputs into a scalar."""

from __future__ import annotations

import math

import pytest
import torch

from suites.losses import classification


def test_cross_entropy_by_hand():
    """Equal logits over four classes cost log 4, divided by the scale."""
    loss = classification(torch.tensor([0, 3]), scale=10.0)(torch.zeros(2, 4))

    assert math.log(4) / 10 == pytest.approx(loss.item())


@pytest.mark.parametrize(
    ("given", "computed"),
    [(torch.bfloat16, torch.float32), (torch.float32, torch.float32), (torch.float64, torch.float64)],
)
def test_precision(given, computed):
    """Half precision is widened; the float64 reference stays float64."""
    assert computed == classification(torch.tensor([1]), 1.0)(torch.zeros(1, 4, dtype=given)).dtype


def test_gradients_tell_logits_apart():
    """Unlike the mean of the output, every logit gets a gradient of its own."""
    logits = torch.arange(6.0).reshape(2, 3).requires_grad_()

    classification(torch.tensor([0, 2]), 1.0)(logits).backward()

    assert logits.grad.unique().numel() >= 4


def test_targets_follow_the_logits(monkeypatch):
    """Targets go to where the logits are, once and not in every step."""
    targets, logits = torch.tensor([1]), torch.zeros(1, 4, device="meta")
    loss = classification(targets, 1.0)
    moved, move = [], torch.Tensor.to

    def to(tensor, *place):
        moved.append(tensor)
        return move(tensor, *place)

    monkeypatch.setattr(torch.Tensor, "to", to)

    assert {"meta"} == {loss(logits).device.type for _ in range(3)}
    assert 1 == sum(tensor is targets for tensor in moved)
