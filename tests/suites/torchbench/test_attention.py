"""Attention spelled out is what the fused function computes; positions are sines."""

from __future__ import annotations

import math

import pytest
import torch
from torch.nn.functional import scaled_dot_product_attention

from suites.torchbench.attention import MultiHead, later, positions


def test_heads_are_those_of_the_fused_function():
    """Between the projections lies scaled dot-product attention per head, without what is hidden."""
    torch.manual_seed(0)
    module = MultiHead(8, 2).eval()
    states, memory, hidden = torch.randn(3, 4, 8), torch.randn(3, 5, 8), torch.rand(3, 4, 5) < 0.3

    def split(each):
        return each.unflatten(2, (2, 4)).transpose(1, 2)

    fused = scaled_dot_product_attention(
        split(module.query(states)),
        split(module.key(memory)),
        split(module.value(memory)),
        attn_mask=~hidden.unsqueeze(1),
    )

    torch.testing.assert_close(module.output(fused.transpose(1, 2).flatten(2)), module(states, memory, hidden))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_everything_hidden(dtype):
    """A query that may see no key sees them all alike, in every number format, and is not NaN."""
    module = MultiHead(8, 2).eval().to(dtype)
    states = torch.ones(1, 2, 8, dtype=dtype)

    output = module(states, states, torch.ones(1, 1, 2, dtype=torch.bool))

    torch.testing.assert_close(module(states, states, torch.zeros(1, 1, 2, dtype=torch.bool)), output)


def test_positions():
    """Even columns are sines, odd ones cosines, of angles that fall from column pair to column pair."""
    table = positions(3, 4)

    assert [0, 1, 0, 1] == table[0].tolist()
    assert [math.sin(2), math.cos(2), math.sin(0.02), math.cos(0.02)] == pytest.approx(table[2].tolist())


def test_later():
    """A word sees itself and what comes before."""
    assert [[False, True], [False, False]] == later(2, torch.device("cpu")).tolist()
