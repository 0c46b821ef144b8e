"""The Transformer of the paper, for translation."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from suites import inputs
from suites.losses import classification
from suites.spec import Attention
from suites.torchbench.attention import AttentionBranch, MixingBranch, later, positions
from suites.torchbench.recipe import Ask, Call, Recipe

LENGTH = 33
"""Of an entry that gives none."""

PADDING = 1
SPECIAL = 4
"""Tokens below are unknown, padding, start and end."""

EPSILON = 1e-6
"""Of the norms."""

IGNORED = -100
"""The target that a cross-entropy passes over."""


@dataclass(frozen=True)
class Transformer(Recipe):
    """Vaswani et al. 2017, Attention is all you need: the base model, its three embeddings not shared.

    Takes source `(batch, length)` and target `(batch, target_length)`, int64 padded at the end, stored word by word
    (strides 1 and batch) as a loader of text gives them; returns logits `(batch * target_length, vocabulary)`.
    Training: cross-entropy against the target's next words, padding left out.
    """

    vocabulary: int = 9521
    width: int = 512
    heads: int = 8
    layers: int = 6
    target_length: int = 31
    longest: int = 200

    def network(self, attention: Attention) -> nn.Module:
        return _Transformer(self)

    def call(self, ask: Ask) -> Call:
        source = self._sentences(ask, ask.length or LENGTH, "source")
        sentences = self._sentences(ask, self.target_length + 1, "target")
        target, following = sentences[:, :-1], sentences[:, 1:].flatten()
        loss = classification(following.where(following != PADDING, IGNORED), ask.loss_scale)
        return Call((source, target), loss=loss)

    def _sentences(self, ask: Ask, length: int, name: str) -> Tensor:
        """Return words `(batch, length)`; each sentence but the first fills two thirds of it or more."""
        generator = inputs.stream(ask.seed, name)
        words = torch.randint(SPECIAL, self.vocabulary, (length, ask.batch_size), generator=generator)
        used = torch.randint(length * 2 // 3, length + 1, (ask.batch_size,), generator=generator)
        used[0] = length
        return words.where(torch.arange(length).unsqueeze(1) < used, PADDING).t()


class _Transformer(nn.Module):
    def __init__(self, sizes: Transformer) -> None:
        super().__init__()
        self.encoder = _Encoder(sizes)
        self.decoder = _Decoder(sizes)
        self.head = nn.Linear(sizes.width, sizes.vocabulary, bias=False)
        for parameter in self.parameters():
            if parameter.ndim > 1:
                nn.init.xavier_uniform_(parameter)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        padded = (source == PADDING).unsqueeze(1)
        hidden = (target == PADDING).unsqueeze(1) | later(target.shape[1], target.device)
        states = self.decoder(target, hidden, self.encoder(source, padded), padded)
        logits: Tensor = self.head(states)
        return logits.flatten(0, 1)


class _Embedding(nn.Module):
    """Words plus positions, then dropout and a norm."""

    positions: Tensor

    def __init__(self, sizes: Transformer) -> None:
        super().__init__()
        self.word = nn.Embedding(sizes.vocabulary, sizes.width, padding_idx=PADDING)
        self.register_buffer("positions", positions(sizes.longest, sizes.width))
        self.dropout = nn.Dropout(0.1)
        self.norm = nn.LayerNorm(sizes.width, eps=EPSILON)

    def forward(self, words: Tensor) -> Tensor:
        states: Tensor = self.norm(self.dropout(self.word(words) + self.positions[: words.shape[1]]))
        return states


class _Encoder(nn.Module):
    def __init__(self, sizes: Transformer) -> None:
        super().__init__()
        self.embedding = _Embedding(sizes)
        self.blocks = nn.ModuleList(_EncoderBlock(sizes) for _ in range(sizes.layers))

    def forward(self, words: Tensor, hidden: Tensor) -> Tensor:
        states: Tensor = self.embedding(words)
        for block in self.blocks:
            states = block(states, hidden)
        return states


class _Decoder(nn.Module):
    def __init__(self, sizes: Transformer) -> None:
        super().__init__()
        self.embedding = _Embedding(sizes)
        self.blocks = nn.ModuleList(_DecoderBlock(sizes) for _ in range(sizes.layers))

    def forward(self, words: Tensor, hidden: Tensor, memory: Tensor, padded: Tensor) -> Tensor:
        states: Tensor = self.embedding(words)
        for block in self.blocks:
            states = block(states, hidden, memory, padded)
        return states


class _EncoderBlock(nn.Module):
    def __init__(self, sizes: Transformer) -> None:
        super().__init__()
        self.attention = AttentionBranch(sizes.width, sizes.heads, bias=False, epsilon=EPSILON)
        self.mixing = MixingBranch(sizes.width, EPSILON)

    def forward(self, states: Tensor, hidden: Tensor) -> Tensor:
        output: Tensor = self.mixing(self.attention(states, states, hidden))
        return output


class _DecoderBlock(nn.Module):
    def __init__(self, sizes: Transformer) -> None:
        super().__init__()
        self.attention = AttentionBranch(sizes.width, sizes.heads, bias=False, epsilon=EPSILON)
        self.source_attention = AttentionBranch(sizes.width, sizes.heads, bias=False, epsilon=EPSILON)
        self.mixing = MixingBranch(sizes.width, EPSILON)

    def forward(self, states: Tensor, hidden: Tensor, memory: Tensor, padded: Tensor) -> Tensor:
        states = self.attention(states, states, hidden)
        output: Tensor = self.mixing(self.source_attention(states, memory, padded))
        return output
