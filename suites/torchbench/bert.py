"""BERT's encoder as it was written out in PyTorch in 2018, before there was a library for it."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from suites import inputs
from suites.losses import classification
from suites.spec import Attention
from suites.torchbench.attention import MultiHead, positions
from suites.torchbench.recipe import Ask, Call, Recipe

LENGTH = 128
"""Of an entry that gives none."""

PADDING = 0
SPECIAL = 5
"""Tokens below are padding, unknown, end, start and mask."""

FIRST, SECOND = 1, 2
"""Segments; padding is in segment 0."""

IGNORED = -100
"""The target that a cross-entropy passes over."""


@dataclass(frozen=True)
class Bert(Recipe):
    """Devlin et al. 2019, BERT: pre-training of deep bidirectional transformers; the encoder alone, without its heads.

    Takes tokens and segments, int64 `(batch, length)` each, and returns states `(batch, length, width)`. Sentences come
    in pairs and are mostly padding. Training: the states are taken as logits over `width` classes and held against
    random targets by cross-entropy, padding left out, since there is no head that predicts tokens.

    Two things differ from the paper: norms come first in each branch, and divide by the unbiased deviation.
    """

    vocabulary: int = 20005
    width: int = 768
    heads: int = 12
    layers: int = 12
    longest: int = 512

    def network(self, attention: Attention) -> nn.Module:
        return _Encoder(self)

    def call(self, ask: Ask) -> Call:
        length = ask.length or LENGTH
        generator = inputs.stream(ask.seed, "lengths")
        used = torch.randint(max(length // 8, 2), max(length // 2, 2) + 1, (ask.batch_size, 1), generator=generator)
        place = torch.arange(length)
        words = inputs.tokens(ask.batch_size, length, self.vocabulary - SPECIAL, ask.seed) + SPECIAL
        tokens = words.where(place < used, PADDING)
        segments = torch.where(place < used // 2, FIRST, SECOND).where(place < used, PADDING)

        wanted = inputs.targets(ask.batch_size * length, self.width, ask.seed)
        of_states = classification(wanted.where((tokens != PADDING).flatten(), IGNORED), ask.loss_scale)
        return Call((tokens, segments), loss=lambda states: of_states(states.flatten(0, 1)))


class _Encoder(nn.Module):
    positions: Tensor

    def __init__(self, sizes: Bert) -> None:
        super().__init__()
        self.token = nn.Embedding(sizes.vocabulary, sizes.width, padding_idx=PADDING)
        self.segment = nn.Embedding(3, sizes.width, padding_idx=PADDING)
        self.register_buffer("positions", positions(sizes.longest, sizes.width))
        self.dropout = nn.Dropout(0.1)
        self.blocks = nn.ModuleList(_Block(sizes.width, sizes.heads) for _ in range(sizes.layers))

    def forward(self, tokens: Tensor, segments: Tensor) -> Tensor:
        hidden = (tokens == PADDING).unsqueeze(1).expand(-1, tokens.shape[1], -1)
        embedded = self.token(tokens) + self.positions[: tokens.shape[1]] + self.segment(segments)
        states: Tensor = self.dropout(embedded)
        for block in self.blocks:
            states = block(states, hidden)
        return states


class _Block(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.attention_norm = Norm(width)
        self.attention = MultiHead(width, heads)
        self.mixing_norm = Norm(width)
        self.mixing = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(approximate="tanh"), nn.Dropout(0.1), nn.Linear(4 * width, width)
        )
        self.dropout = nn.Dropout(0.1)

    def forward(self, states: Tensor, hidden: Tensor) -> Tensor:
        normal = self.attention_norm(states)
        states = states + self.dropout(self.attention(normal, normal, hidden))
        states = states + self.dropout(self.mixing(self.mixing_norm(states)))
        output: Tensor = self.dropout(states)
        return output


class Norm(nn.Module):
    """A layer norm that divides by the unbiased deviation, to which, not to the variance, it adds epsilon."""

    def __init__(self, width: int, epsilon: float = 1e-6) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.bias = nn.Parameter(torch.zeros(width))
        self.epsilon = epsilon

    def forward(self, states: Tensor) -> Tensor:
        centred = states - states.mean(-1, keepdim=True)
        return self.weight * centred / (states.std(-1, keepdim=True) + self.epsilon) + self.bias
