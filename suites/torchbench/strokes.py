"""An agent that paints: from a canvas and the picture that it should show to the next strokes of the brush."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import mse_loss

from suites import inputs
from suites.losses import against
from suites.spec import Attention
from suites.torchbench.images import answers, frame
from suites.torchbench.recipe import Ask, Call, Recipe

EPISODE = 40
"""Steps that the agent has for a picture."""


@dataclass(frozen=True)
class Painter(Recipe):
    """The actor of Learning to Paint (Huang et al., 2019): states `(batch, 9, 128, 128)` to `(batch, 65)`, 5 strokes
    of 13 numbers between 0 and 1: shape, position, width, opacity and colour.

    A state is canvas and picture, the share of the steps that are over, and the two coordinates of each pixel,
    everything between 0 and 1. The network is a ResNet-18 without max-pooling, the first stage strided too.

    Loss: mean squared difference from strokes at random; its own is what a critic says of the strokes.
    """

    CHANNELS = 9

    strokes: int = 5
    numbers: int = 13

    def network(self, attention: Attention) -> nn.Module:
        stages = [nn.Sequential(Block(first, out, 2), Block(out, out, 1)) for first, out in _STAGES]
        return nn.Sequential(
            *_normed(self.CHANNELS, 64, 3, 2),
            nn.ReLU(),
            *stages,
            nn.AvgPool2d(4),
            nn.Flatten(),
            nn.Linear(512, self.strokes * self.numbers),
            nn.Sigmoid(),
        )

    def call(self, ask: Ask) -> Call:
        wanted = answers(ask, self.strokes * self.numbers)
        return Call((_states(ask),), loss=against(wanted, mse_loss, ask.loss_scale))


_STAGES = ((64, 64), (64, 128), (128, 256), (256, 512))


class Block(nn.Module):
    """Two convolutions of 3x3 beside a shortcut, which is one of 1x1 where the shape changes (He et al., 2016)."""

    def __init__(self, channels: int, out: int, stride: int) -> None:
        super().__init__()
        self.branch = nn.Sequential(*_normed(channels, out, 3, stride), nn.ReLU(), *_normed(out, out, 3, 1))
        changes = stride != 1 or channels != out
        self.shortcut = nn.Sequential(*_normed(channels, out, 1, stride)) if changes else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        summed: Tensor = self.branch(x) + self.shortcut(x)
        return summed.relu()


def _normed(channels: int, out: int, kernel: int, stride: int) -> list[nn.Module]:
    return [nn.Conv2d(channels, out, kernel, stride, kernel // 2, bias=False), nn.BatchNorm2d(out)]


def _states(ask: Ask) -> Tensor:
    height, width = frame(ask)
    generator = inputs.stream(ask.seed, "states")
    pictures = torch.randint(256, (ask.batch_size, 6, height, width), generator=generator) / 255
    over = torch.randint(EPISODE, (ask.batch_size, 1, 1, 1), generator=generator) / EPISODE
    down = torch.linspace(0, 1, height)[:, None].expand(ask.batch_size, 1, height, width)
    across = torch.linspace(0, 1, width).expand(ask.batch_size, 1, height, width)
    return torch.cat([pictures, over.expand(-1, -1, height, width), down, across], dim=1)
