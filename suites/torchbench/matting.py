"""Background matting: which pixels of a photograph are foreground, and of what colour."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import l1_loss

from suites.losses import against
from suites.spec import Attention
from suites.torchbench.images import Residual, answers, frame, stills
from suites.torchbench.recipe import Ask, Call, Recipe


@dataclass(frozen=True)
class Matting(Recipe):
    """The generator of Background Matting (Sengupta et al., 2020): image `(batch, 3, 512, 512)`, background of as
    many channels, segmentation of 1 and motion of 4 to alpha `(batch, 1, 512, 512)` and foreground of 3 channels.

    Loss: mean absolute differences from alpha and colours at random, as in its own supervised training.
    """

    shared_blocks: int = 7
    own_blocks: int = 3

    def network(self, attention: Attention) -> nn.Module:
        return MattingNetwork(self.shared_blocks, self.own_blocks)

    def call(self, ask: Ask) -> Call:
        drawn = 2 * answers(ask, 4, *frame(ask)) - 1
        return Call(stills(ask, 3, 3, 1, 4), loss=_loss(drawn, ask.loss_scale))


class MattingNetwork(nn.Module):
    """Four encoders; three switches that lay one prior each over the image; a trunk; a decoder for each output."""

    def __init__(self, shared_blocks: int, own_blocks: int) -> None:
        super().__init__()
        self.image_half = nn.Sequential(*_entry(3))
        self.image_quarter = nn.Sequential(*_normed(nn.Conv2d(128, 256, 3, 2, 1)))
        self.background, self.segmentation, self.motion = (
            nn.Sequential(*_entry(channels), *_normed(nn.Conv2d(128, 256, 3, 2, 1))) for channels in (3, 1, 4)
        )
        self.over_background, self.over_segmentation, self.over_motion = (_switch() for _ in range(3))
        joined = _normed(nn.Conv2d(256 + 3 * 64, 256, 1, bias=False))
        self.trunk = nn.Sequential(*joined, *_blocks(shared_blocks))
        self.alpha = nn.Sequential(*_blocks(own_blocks), *_doubled(256, 128), *_doubled(128, 64), *_exit(1), nn.Tanh())
        self.foreground_quarter = nn.Sequential(*_blocks(own_blocks), *_doubled(256, 128))
        self.foreground_half = nn.Sequential(*_doubled(256, 64), *_exit(3))

    def forward(self, image: Tensor, background: Tensor, segmentation: Tensor, motion: Tensor) -> tuple[Tensor, Tensor]:
        half = self.image_half(image)
        quarter = self.image_quarter(half)
        with_background = torch.cat([quarter, self.background(background)], dim=1)
        with_segmentation = torch.cat([quarter, self.segmentation(segmentation)], dim=1)
        self.motion(motion)
        laid = [
            self.over_background(with_background),
            self.over_segmentation(with_segmentation),
            # TorchBench's network encodes the motion, then lays the background over the image once more.
            self.over_motion(with_background),
        ]
        trunk = self.trunk(torch.cat([quarter, *laid], dim=1))
        foreground = self.foreground_half(torch.cat([self.foreground_quarter(trunk), half], dim=1))
        return self.alpha(trunk), foreground


def _switch() -> nn.Sequential:
    return nn.Sequential(*_normed(nn.Conv2d(512, 64, 1, bias=False)))


def _entry(channels: int) -> list[nn.Module]:
    first = _normed(nn.Conv2d(channels, 64, 7))
    return [nn.ReflectionPad2d(3), *first, *_normed(nn.Conv2d(64, 128, 3, 2, 1))]


def _exit(channels: int) -> list[nn.Module]:
    return [nn.ReflectionPad2d(3), nn.Conv2d(64, channels, 7)]


def _doubled(channels: int, out: int) -> list[nn.Module]:
    double = nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True)
    return [double, *_normed(nn.Conv2d(channels, out, 3, padding=1))]


def _blocks(count: int) -> list[Residual]:
    return [_block(256) for _ in range(count)]


def _block(channels: int) -> Residual:
    first, second = (_normed(nn.Conv2d(channels, channels, 3)) for _ in range(2))
    return Residual(nn.ReflectionPad2d(1), *first, nn.ReflectionPad2d(1), *second[:-1])


def _normed(convolution: nn.Conv2d) -> list[nn.Module]:
    return [convolution, nn.BatchNorm2d(convolution.out_channels), nn.ReLU(inplace=True)]


def _loss(drawn: Tensor, scale: float) -> Callable[[tuple[Tensor, Tensor]], Tensor]:
    of_alpha, of_foreground = (against(part, l1_loss, scale) for part in torch.split(drawn, [1, 3], dim=1))

    def loss(outputs: tuple[Tensor, Tensor]) -> Tensor:
        alpha, foreground = outputs
        return of_alpha(alpha) + of_foreground(foreground)

    return loss
