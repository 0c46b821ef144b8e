"""A Transformer that hears features and writes characters."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from suites import inputs
from suites.spec import Attention
from suites.torchbench.attention import AttentionBranch, MixingBranch, later, positions
from suites.torchbench.recipe import Ask, Call, Recipe

LENGTH = 204
"""Frames, of an entry that gives none."""

START, END = 1, 2
SPECIAL = 3
"""Tokens below are unknown, start and end."""

IGNORED = -1
"""What fills up a row of targets."""

EPSILON = 1e-5
"""Of the norms."""


@dataclass(frozen=True)
class SpeechTransformer(Recipe):
    """Dong et al. 2018, Speech-Transformer: without convolutions, on frames that were stacked and thinned beforehand.

    Takes features `(batch, length, features)`, lengths int64 `(batch,)` and targets int64 `(batch, target_length)`
    filled up with -1. Returns logits `(batch, target_length + 1, vocabulary)` and what they should have said,
    int64 `(batch, target_length + 1)`. Training: cross-entropy between the two, padding left out.

    As in the original, rows are stripped of their padding in a loop of Python and masks are made row by row:
    shapes depend on data, and the compiler breaks its graph there.
    """

    vocabulary: int = 1014
    features: int = 320
    width: int = 512
    heads: int = 8
    layers: int = 6
    target_length: int = 21
    longest: int = 5000

    def network(self, attention: Attention) -> nn.Module:
        return _SpeechTransformer(self)

    def call(self, ask: Ask) -> Call:
        length = ask.length or LENGTH
        features = inputs.features(ask.batch_size, (length, self.features), ask.seed)
        lengths = _lengths(ask, length, "frames")
        written = _lengths(ask, self.target_length, "characters").unsqueeze(1)
        words = inputs.tokens(ask.batch_size, self.target_length, self.vocabulary - SPECIAL, ask.seed) + SPECIAL
        targets = words.where(torch.arange(self.target_length) < written, IGNORED)

        def loss(output: tuple[Tensor, Tensor]) -> Tensor:
            logits, gold = output
            exact = logits.to(torch.promote_types(logits.dtype, torch.float32))
            return cross_entropy(exact.flatten(0, 1), gold.flatten(), ignore_index=IGNORED) / ask.loss_scale

        return Call((features, lengths, targets), loss=loss)


def _lengths(ask: Ask, longest: int, name: str) -> Tensor:
    """Return `(batch,)` of lengths from two thirds of the longest on; the first row has that."""
    lengths = torch.randint(
        longest * 2 // 3, longest + 1, (ask.batch_size,), generator=inputs.stream(ask.seed, f"lengths/{name}")
    )
    lengths[0] = longest
    return lengths


class _SpeechTransformer(nn.Module):
    def __init__(self, sizes: SpeechTransformer) -> None:
        super().__init__()
        self.encoder = _Encoder(sizes)
        self.decoder = _Decoder(sizes)

    def forward(self, features: Tensor, lengths: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
        memory = self.encoder(features, lengths)
        output: tuple[Tensor, Tensor] = self.decoder(targets, memory, lengths)
        return output


class _Encoder(nn.Module):
    positions: Tensor

    def __init__(self, sizes: SpeechTransformer) -> None:
        super().__init__()
        self.first = nn.Linear(sizes.features, sizes.width)
        self.norm = nn.LayerNorm(sizes.width, eps=EPSILON)
        self.register_buffer("positions", positions(sizes.longest, sizes.width))
        self.dropout = nn.Dropout(0.1)
        self.blocks = nn.ModuleList(_EncoderBlock(sizes) for _ in range(sizes.layers))

    def forward(self, features: Tensor, lengths: Tensor) -> Tensor:
        length = features.shape[1]
        heard = _heard(features, lengths).unsqueeze(2)
        hidden = _silent(features, lengths, length)
        states: Tensor = self.dropout(self.norm(self.first(features)) + self.positions[:length])
        for block in self.blocks:
            states = block(states, hidden, heard)
        return states


class _EncoderBlock(nn.Module):
    def __init__(self, sizes: SpeechTransformer) -> None:
        super().__init__()
        self.attention = AttentionBranch(sizes.width, sizes.heads, bias=True, epsilon=EPSILON)
        self.mixing = MixingBranch(sizes.width, EPSILON)

    def forward(self, states: Tensor, hidden: Tensor, heard: Tensor) -> Tensor:
        states = self.attention(states, states, hidden) * heard
        output: Tensor = self.mixing(states) * heard
        return output


class _Decoder(nn.Module):
    positions: Tensor

    def __init__(self, sizes: SpeechTransformer) -> None:
        super().__init__()
        self.word = nn.Embedding(sizes.vocabulary, sizes.width)
        nn.init.xavier_normal_(self.word.weight)
        self.register_buffer("positions", positions(sizes.longest, sizes.width))
        self.dropout = nn.Dropout(0.1)
        self.blocks = nn.ModuleList(_DecoderBlock(sizes) for _ in range(sizes.layers))
        self.head = nn.Linear(sizes.width, sizes.vocabulary, bias=False)
        self.head.weight = self.word.weight
        self.scale = math.sqrt(sizes.width)
        """Of the embedding, which would be small beside the positions: its weights are those of the last layer."""

    def forward(self, targets: Tensor, memory: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        said, gold = _shifted(targets)
        length = said.shape[1]
        written = (said != END).to(memory.dtype).unsqueeze(2)
        hidden = (said == END).unsqueeze(1) | later(length, said.device)
        silent = _silent(memory, lengths, length)
        states: Tensor = self.dropout(self.word(said) * self.scale + self.positions[:length])
        for block in self.blocks:
            states = block(states, hidden, memory, silent, written)
        return self.head(states), gold


class _DecoderBlock(nn.Module):
    def __init__(self, sizes: SpeechTransformer) -> None:
        super().__init__()
        self.attention = AttentionBranch(sizes.width, sizes.heads, bias=True, epsilon=EPSILON)
        self.source_attention = AttentionBranch(sizes.width, sizes.heads, bias=True, epsilon=EPSILON)
        self.mixing = MixingBranch(sizes.width, EPSILON)

    def forward(self, states: Tensor, hidden: Tensor, memory: Tensor, silent: Tensor, written: Tensor) -> Tensor:
        states = self.attention(states, states, hidden) * written
        states = self.source_attention(states, memory, silent) * written
        output: Tensor = self.mixing(states) * written
        return output


def _heard(states: Tensor, lengths: Tensor) -> Tensor:
    """Return `(batch, length)`: one where a row has frames, zero after its end. Made row by row."""
    heard = states.new_ones(states.shape[:2])
    for row in range(len(heard)):
        heard[row, lengths[row] :] = 0
    return heard


def _silent(states: Tensor, lengths: Tensor, queries: int) -> Tensor:
    """Return `(batch, queries, length)`: True after the end of a row."""
    return (_heard(states, lengths) < 1).unsqueeze(1).expand(-1, queries, -1)


def _shifted(targets: Tensor) -> tuple[Tensor, Tensor]:
    """Return what is said before each target, and the targets with their end; each row stripped, then filled up."""
    rows = [row[row != IGNORED] for row in targets]
    start, end = targets.new_tensor([START]), targets.new_tensor([END])
    said = _padded([torch.cat((start, row)) for row in rows], END)
    return said, _padded([torch.cat((row, end)) for row in rows], IGNORED)


def _padded(rows: list[Tensor], filler: int) -> Tensor:
    padded = rows[0].new_full((len(rows), max(len(row) for row in rows)), filler)
    for place, row in enumerate(rows):
        padded[place, : len(row)] = row
    return padded
