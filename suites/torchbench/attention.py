"""Attention of several heads spelled out, its branches, and positions as sines: what older transformers share."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

HIDDEN = -1e9
"""The score of a hidden key, or the least number of a half format that ends before it. Not infinity: a row in which
everything is hidden (a sentence that begins with padding) would become NaN."""


class MultiHead(nn.Module):
    """Attention of Vaswani et al. 2017, section 3.2.2: products around a softmax, as everything was in 2022."""

    def __init__(self, width: int, heads: int, bias: bool = True, dropout: float = 0.1) -> None:
        super().__init__()
        self.heads = heads
        self.query = nn.Linear(width, width, bias=bias)
        self.key = nn.Linear(width, width, bias=bias)
        self.value = nn.Linear(width, width, bias=bias)
        self.output = nn.Linear(width, width, bias=bias)
        self.dropout = nn.Dropout(dropout)

    def forward(self, states: Tensor, memory: Tensor, hidden: Tensor) -> Tensor:
        """Return `(batch, queries, width)`.

        Args:
            states: `(batch, queries, width)`, what asks.
            memory: `(batch, keys, width)`, what is asked.
            hidden: True where a query must not see a key; broadcasts to `(batch, queries, keys)`.
        """
        query, key = self._split(self.query(states)), self._split(self.key(memory))
        scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
        scores = scores.masked_fill(hidden.unsqueeze(1), max(HIDDEN, torch.finfo(scores.dtype).min))
        mixed = self.dropout(scores.softmax(-1)) @ self._split(self.value(memory))
        output: Tensor = self.output(mixed.transpose(1, 2).flatten(2))
        return output

    def _split(self, states: Tensor) -> Tensor:
        return states.view(*states.shape[:2], self.heads, -1).transpose(1, 2)


class AttentionBranch(nn.Module):
    """A residual branch of attention; the norm comes after the sum."""

    def __init__(self, width: int, heads: int, bias: bool, epsilon: float) -> None:
        super().__init__()
        self.attention = MultiHead(width, heads, bias)
        self.dropout = nn.Dropout(0.1)
        self.norm = nn.LayerNorm(width, eps=epsilon)

    def forward(self, states: Tensor, memory: Tensor, hidden: Tensor) -> Tensor:
        output: Tensor = self.norm(states + self.dropout(self.attention(states, memory, hidden)))
        return output


class MixingBranch(nn.Module):
    """A residual branch of two layers, position by position; the norm comes after the sum."""

    def __init__(self, width: int, epsilon: float) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(width, 4 * width), nn.ReLU(), nn.Linear(4 * width, width), nn.Dropout(0.1)
        )
        self.norm = nn.LayerNorm(width, eps=epsilon)

    def forward(self, states: Tensor) -> Tensor:
        output: Tensor = self.norm(states + self.layers(states))
        return output


def positions(length: int, width: int) -> Tensor:
    """Return `(length, width)`: sines in even columns, cosines in odd ones (Vaswani et al. 2017, section 3.5)."""
    falling = 10000 ** (torch.arange(0, width, 2, dtype=torch.float64) / width)
    angles = torch.arange(length, dtype=torch.float64).unsqueeze(1) / falling
    return torch.stack((angles.sin(), angles.cos()), -1).flatten(1).float()


def later(length: int, device: torch.device) -> Tensor:
    """Return `(length, length)`: True where the key (column) comes after the query (row)."""
    return torch.ones(length, length, dtype=torch.bool, device=device).triu(1)
