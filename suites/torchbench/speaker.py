"""Who speaks: an embedding of a voice."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

from torch import Tensor, nn
from torch.nn.functional import normalize

from suites import inputs
from suites.losses import classification
from suites.spec import Attention
from suites.torchbench.recipe import Ask, Call, Recipe

LENGTH = 50
"""Frames, of an entry that gives none."""

SCALE, SHIFT = 10.0, -5.0
"""Where the loss starts; the original learns them."""


@dataclass(frozen=True)
class SpeakerEncoder(Recipe):
    """Wan et al. 2018, Generalized end-to-end loss for speaker verification: three LSTM layers, each with a projection.

    Takes mel frames `(batch, length, mels)` and returns the last step's embedding, of unit length: `(batch, width)`.
    Training: the angular prototypical loss (Chung et al. 2020, In defence of metric learning for speaker recognition),
    cross-entropy over scaled cosines, with the axes as prototypes of `width` speakers and a random speaker for each
    voice: the cosine of an embedding and an axis is one of its elements.
    """

    mels: int = 40
    states: int = 768
    width: int = 256
    layers: int = 3

    def network(self, attention: Attention) -> nn.Module:
        return _SpeakerEncoder(self)

    def call(self, ask: Ask) -> Call:
        frames = inputs.features(ask.batch_size, (ask.length or LENGTH, self.mels), ask.seed)
        return Call((frames,), loss=_prototypical(inputs.targets(ask.batch_size, self.width, ask.seed), ask.loss_scale))


def _prototypical(speakers: Tensor, loss_scale: float) -> Callable[[Tensor], Tensor]:
    of_logits = classification(speakers, loss_scale)
    return lambda cosines: of_logits(SCALE * cosines + SHIFT)


class _SpeakerEncoder(nn.Module):
    def __init__(self, sizes: SpeakerEncoder) -> None:
        super().__init__()
        widths = [sizes.mels, *[sizes.width] * sizes.layers]
        self.layers = nn.Sequential(*(_Projected(given, sizes.states, made) for given, made in pairwise(widths)))

    def forward(self, frames: Tensor) -> Tensor:
        return normalize(self.layers(frames)[:, -1], dim=1)


class _Projected(nn.Module):
    """An LSTM, and a matrix that narrows its states."""

    def __init__(self, given: int, states: int, made: int) -> None:
        super().__init__()
        self.lstm = nn.LSTM(given, states, batch_first=True)
        self.projection = nn.Linear(states, made, bias=False)

    def forward(self, sequence: Tensor) -> Tensor:
        self.lstm.flatten_parameters()
        states, _ = self.lstm(sequence)
        output: Tensor = self.projection(states)
        return output
