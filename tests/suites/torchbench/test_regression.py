"""The squared error as a loss."""

from __future__ import annotations

import pytest
import torch

from suites.torchbench.regression import squared_error


def test_by_hand():
    """Errors of 1 and 3 have a mean square of 5, divided by the scale."""
    loss = squared_error(torch.tensor([[1.0], [2.0]]), scale=10.0)

    assert 0.5 == loss(torch.tensor([[2.0], [5.0]])).item()


def test_places():
    """With places, all other elements of the output are left out, and get a gradient of zero."""
    output = torch.arange(6.0).reshape(2, 3).requires_grad_()

    squared_error(torch.tensor([0.0, 0.0]), 1.0, torch.tensor([1, 4]))(output).backward()

    assert [[0, 1, 0], [0, 4, 0]] == output.grad.tolist()


@pytest.mark.parametrize(
    ("given", "computed"),
    [(torch.bfloat16, torch.float32), (torch.float32, torch.float32), (torch.float64, torch.float64)],
)
def test_precision(given, computed):
    """Half precision is widened; the float64 reference stays float64."""
    assert computed == squared_error(torch.zeros(1), 1.0)(torch.zeros(1, dtype=given)).dtype


def test_targets_follow_the_output():
    """Targets and places go to where the output is."""
    loss = squared_error(torch.zeros(1), 1.0, torch.tensor([2]))

    assert "meta" == loss(torch.zeros(3, device="meta")).device.type
