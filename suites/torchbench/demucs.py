"""Music into its sources."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn.functional import l1_loss

from suites import inputs
from suites.spec import Attention
from suites.torchbench.recipe import Ask, Call, Recipe

LENGTH = 426_888
"""Samples, of an entry that gives none."""

KERNEL, STRIDE, CONTEXT = 8, 4, 3
"""Kernel and stride of every (transposed) convolution that changes the length; kernel of those in the decoder that mix
a step with its neighbours."""

REMIXED = 4
"""Songs whose sources are exchanged with each other, in training."""

DEVIATION = 0.1
"""Of weights, at which the initial scale is left alone: section 5 of the paper."""


@dataclass(frozen=True)
class Demucs(Recipe):
    """Defossez et al. 2019, Music source separation in the waveform domain, with its augmentation.

    Takes stereo streams `(batch, 1 + sources, 2, length)`, the mix and its sources; the mix is made anew from the
    augmented sources. Returns sources `(batch, sources, 2, length - shift)` and an estimate of them, shorter at
    both ends for want of padding. In train mode the augmentation draws random numbers. Training: the mean absolute
    difference of estimate and sources, as in the paper.

    The original trains on batches that divide by 4 alone; here songs are remixed in groups of the greatest common
    divisor of 4 and the batch.
    """

    sources: int = 4
    channels: int = 64
    depth: int = 6
    lstm_layers: int = 2
    shift: int = 44_100

    def network(self, attention: Attention) -> nn.Module:
        return _Augmented(self)

    def call(self, ask: Ask) -> Call:
        streams = inputs.features(ask.batch_size, (1 + self.sources, 2, ask.length or LENGTH), ask.seed)

        def loss(output: tuple[Tensor, Tensor]) -> Tensor:
            sources, estimate = output
            exact = estimate.to(torch.promote_types(estimate.dtype, torch.float32))
            return l1_loss(exact, _trimmed(sources, estimate).to(exact.dtype)) / ask.loss_scale

        return Call((streams,), loss=loss)


class _Augmented(nn.Module):
    def __init__(self, sizes: Demucs) -> None:
        super().__init__()
        self.augmentation = nn.Sequential(_FlipSigns(), _FlipChannels(), _Shift(sizes.shift), _Remix())
        self.separator = _Separator(sizes)

    def forward(self, streams: Tensor) -> tuple[Tensor, Tensor]:
        sources = self.augmentation(streams[:, 1:])
        return sources, self.separator(sources.sum(1))


class _FlipSigns(nn.Module):
    def forward(self, sources: Tensor) -> Tensor:
        if not self.training:
            return sources
        signs = torch.randint(2, (*sources.shape[:2], 1, 1), device=sources.device, dtype=sources.dtype)
        return sources * (2 * signs - 1)


class _FlipChannels(nn.Module):
    def forward(self, sources: Tensor) -> Tensor:
        if not self.training:
            return sources
        left = torch.randint(2, (*sources.shape[:2], 1, 1), device=sources.device).expand(-1, -1, -1, sources.shape[3])
        return torch.cat((sources.gather(2, left), sources.gather(2, 1 - left)), 2)


class _Shift(nn.Module):
    """Cuts `most` samples off: at the end, or in train mode a random part of them at the beginning."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self.most = most

    def forward(self, sources: Tensor) -> Tensor:
        length = sources.shape[3] - self.most
        if not self.training:
            return sources[..., :length]
        offsets = torch.randint(self.most, (*sources.shape[:2], 1, 1), device=sources.device)
        places = offsets.expand(-1, -1, sources.shape[2], -1) + torch.arange(length, device=sources.device)
        return sources.gather(3, places)


class _Remix(nn.Module):
    """In train mode, exchanges each source between the songs of a group."""

    def forward(self, sources: Tensor) -> Tensor:
        if not self.training:
            return sources
        group = math.gcd(len(sources), REMIXED)
        grouped = sources.view(-1, group, *sources.shape[1:])
        order = torch.rand((*grouped.shape[:3], 1, 1), device=sources.device).argsort(1)
        return grouped.gather(1, order.expand_as(grouped)).flatten(0, 1)


class _Separator(nn.Module):
    """A U-Net over samples, with an LSTM at its bottom."""

    def __init__(self, sizes: Demucs) -> None:
        super().__init__()
        widths = [2, *(sizes.channels * 2**level for level in range(sizes.depth))]
        steps = list(pairwise(widths))
        self.sources = sizes.sources
        self.encoder = nn.ModuleList(_encoding(outer, inner) for outer, inner in steps)
        self.lstm = nn.LSTM(widths[-1], widths[-1], sizes.lstm_layers, bidirectional=True)
        self.narrow = nn.Linear(2 * widths[-1], widths[-1])
        last = _decoding(widths[1], 2 * sizes.sources, last=True)
        self.decoder = nn.ModuleList([*(_decoding(inner, outer) for outer, inner in steps[:0:-1]), last])
        for each in self.modules():
            if isinstance(each, nn.Conv1d | nn.ConvTranspose1d):
                _rescale(each)

    def forward(self, mix: Tensor) -> Tensor:
        skips = []
        for encode in self.encoder:
            mix = encode(mix)
            skips.append(mix)
        states, _ = self.lstm(mix.permute(2, 0, 1))
        mix = self.narrow(states).permute(1, 2, 0)
        for decode in self.decoder:
            mix = decode(mix + _trimmed(skips.pop(), mix))
        return mix.view(len(mix), self.sources, -1, mix.shape[-1])


def _encoding(outer: int, inner: int) -> nn.Module:
    return nn.Sequential(nn.Conv1d(outer, inner, KERNEL, STRIDE), nn.ReLU(), nn.Conv1d(inner, 2 * inner, 1), nn.GLU(1))


def _decoding(inner: int, outer: int, last: bool = False) -> nn.Module:
    layers = [nn.Conv1d(inner, 2 * inner, CONTEXT), nn.GLU(1), nn.ConvTranspose1d(inner, outer, KERNEL, STRIDE)]
    return nn.Sequential(*layers) if last else nn.Sequential(*layers, nn.ReLU())


@torch.no_grad()
def _rescale(layer: nn.Conv1d | nn.ConvTranspose1d) -> None:
    """Divide weights and biases by the root of how many times too wide the weights are spread."""
    scale = (layer.weight.std() / DEVIATION).sqrt()
    layer.weight /= scale
    if layer.bias is not None:
        layer.bias /= scale


def _trimmed(longer: Tensor, like: Tensor) -> Tensor:
    """Cut both ends of `longer`, until it has as many samples as `like`."""
    excess = longer.shape[-1] - like.shape[-1]
    return longer[..., excess // 2 : longer.shape[-1] - (excess - excess // 2)]
