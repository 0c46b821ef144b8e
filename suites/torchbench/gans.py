"""Networks that are trained against each other: a discriminator, and two generators from images to images."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy, l1_loss

from suites.losses import against
from suites.spec import Attention
from suites.torchbench.images import Residual, answers, frame, labels, stills
from suites.torchbench.recipe import Ask, Call, Recipe


@dataclass(frozen=True)
class Discriminator(Recipe):
    """The discriminator of DCGAN (Radford et al., 2016): images `(batch, 3, 64, 64)` to chances `(batch, 1, 1, 1)`.

    Its own loss: binary cross-entropy, here against labels at random.
    """

    width: int = 64

    def network(self, attention: Attention) -> nn.Module:
        layers: list[nn.Module] = [nn.Conv2d(3, self.width, 4, 2, 1, bias=False), nn.LeakyReLU(0.2, inplace=True)]
        for channels in (self.width, 2 * self.width, 4 * self.width):
            convolution = nn.Conv2d(channels, 2 * channels, 4, 2, 1, bias=False)
            layers += [convolution, nn.BatchNorm2d(2 * channels), nn.LeakyReLU(0.2, inplace=True)]
        layers += [nn.Conv2d(8 * self.width, 1, 4, bias=False), nn.Sigmoid()]
        return _drawn_normal(nn.Sequential(*layers))

    def call(self, ask: Ask) -> Call:
        return Call(stills(ask, 3), loss=against(labels(ask, 1, 1, 1), binary_cross_entropy, ask.loss_scale))


@dataclass(frozen=True)
class CycleGan(Recipe):
    """The generator of CycleGAN with nine residual blocks (Zhu et al., 2017): `(batch, 3, 256, 256)` to the same.

    Loss: mean absolute difference from images at random, as in the cycle and identity terms of its own; its
    adversarial term needs a second network.
    """

    blocks: int = 9

    def network(self, attention: Attention) -> nn.Module:
        return _drawn_normal(
            nn.Sequential(
                *_reflected(3, 64, 7),
                *_normed(nn.Conv2d(64, 128, 3, 2, 1)),
                *_normed(nn.Conv2d(128, 256, 3, 2, 1)),
                *(Residual(*_reflected(256, 256, 3), *_reflected(256, 256, 3)[:-1]) for _ in range(self.blocks)),
                *_normed(nn.ConvTranspose2d(256, 128, 3, 2, 1, output_padding=1)),
                *_normed(nn.ConvTranspose2d(128, 64, 3, 2, 1, output_padding=1)),
                nn.ReflectionPad2d(3),
                nn.Conv2d(64, 3, 7),
                nn.Tanh(),
            )
        )

    def call(self, ask: Ask) -> Call:
        return Call(stills(ask, 3), loss=_towards_images(ask))


@dataclass(frozen=True)
class StarGan(Recipe):
    """The generator of StarGAN (Choi et al., 2018): images `(batch, 3, 128, 128)` and wanted attributes
    `(batch, 5)`, 0 or 1, to images.

    Its instance norms keep running statistics, which inference reads. Loss: mean absolute difference from images at
    random, as in the reconstruction term of its own; the other terms need a second network.
    """

    attributes: int = 5
    blocks: int = 6

    def network(self, attention: Attention) -> nn.Module:
        return Attributed(
            *_tracked(nn.Conv2d(3 + self.attributes, 64, 7, 1, 3, bias=False)),
            *_tracked(nn.Conv2d(64, 128, 4, 2, 1, bias=False)),
            *_tracked(nn.Conv2d(128, 256, 4, 2, 1, bias=False)),
            *(_tracked_block(256) for _ in range(self.blocks)),
            *_tracked(nn.ConvTranspose2d(256, 128, 4, 2, 1, bias=False)),
            *_tracked(nn.ConvTranspose2d(128, 64, 4, 2, 1, bias=False)),
            nn.Conv2d(64, 3, 7, 1, 3, bias=False),
            nn.Tanh(),
        )

    def call(self, ask: Ask) -> Call:
        return Call((*stills(ask, 3), labels(ask, self.attributes)), loss=_towards_images(ask))


class Attributed(nn.Module):
    """Layers over an image with one more channel for each attribute, everywhere of the attribute's value."""

    def __init__(self, *layers: nn.Module) -> None:
        super().__init__()
        self.layers = nn.Sequential(*layers)

    def forward(self, image: Tensor, attributes: Tensor) -> Tensor:
        maps = attributes[:, :, None, None].expand(-1, -1, *image.shape[2:])
        out: Tensor = self.layers(torch.cat([image, maps], dim=1))
        return out


def _towards_images(ask: Ask) -> Callable[[Tensor], Tensor]:
    return against(2 * answers(ask, 3, *frame(ask)) - 1, l1_loss, ask.loss_scale)


def _reflected(channels: int, out: int, kernel: int) -> list[nn.Module]:
    return [nn.ReflectionPad2d(kernel // 2), *_normed(nn.Conv2d(channels, out, kernel))]


def _normed(convolution: nn.Conv2d | nn.ConvTranspose2d) -> list[nn.Module]:
    return [convolution, nn.InstanceNorm2d(convolution.out_channels), nn.ReLU(inplace=True)]


def _tracked(convolution: nn.Conv2d | nn.ConvTranspose2d) -> list[nn.Module]:
    norm = nn.InstanceNorm2d(convolution.out_channels, affine=True, track_running_stats=True)
    return [convolution, norm, nn.ReLU(inplace=True)]


def _tracked_block(channels: int) -> Residual:
    first, second = (_tracked(nn.Conv2d(channels, channels, 3, padding=1, bias=False)) for _ in range(2))
    return Residual(*first, *second[:-1])


def _drawn_normal(module: nn.Module) -> nn.Module:
    """Draw the kernels as both papers do: normal, with a standard deviation of 0.02."""
    for each in module.modules():
        if isinstance(each, nn.Conv2d | nn.ConvTranspose2d):
            nn.init.normal_(each.weight, std=0.02)
    return module
