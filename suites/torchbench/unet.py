"""U-Net: labels each pixel of an image."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from suites import inputs
from suites.losses import classification
from suites.spec import Attention
from suites.torchbench.images import frame, stills
from suites.torchbench.recipe import Ask, Call, Recipe


@dataclass(frozen=True)
class Unet(Recipe):
    """U-Net with batch norm and bilinear upsampling (Ronneberger et al., 2015): images `(batch, 3, 640, 959)` to
    logits `(batch, 2, 640, 959)`.

    Loss: cross-entropy against masks at random; its own adds a Dice term.
    """

    classes: int = 2
    width: int = 64

    def network(self, attention: Attention) -> nn.Module:
        return LabellingUnet(self.width, self.classes)

    def call(self, ask: Ask) -> Call:
        size = (ask.batch_size, *frame(ask))
        masks = torch.randint(self.classes, size, generator=inputs.stream(ask.seed, "masks"))
        return Call(stills(ask, 3), loss=classification(masks, ask.loss_scale))


class LabellingUnet(nn.Module):
    """Four halvings, four doublings that see what was there before each halving, and a logit per class and pixel."""

    def __init__(self, width: int, classes: int) -> None:
        super().__init__()
        # The last stage has no more channels than the one before: bilinear upsampling leaves their number as it is.
        widths = [width, 2 * width, 4 * width, 8 * width, 8 * width]
        self.stem = _two_convolutions(3, width, width)
        self.down = nn.ModuleList(
            nn.Sequential(nn.MaxPool2d(2), _two_convolutions(above, below, below)) for above, below in pairwise(widths)
        )
        self.up = nn.ModuleList(Up(seen, out) for seen, out in zip(widths[3::-1], [*widths[2::-1], width], strict=True))
        self.head = nn.Conv2d(width, classes, 1)

    def forward(self, image: Tensor) -> Tensor:
        seen = [self.stem(image)]
        for stage in self.down:
            seen.append(stage(seen[-1]))
        x = seen.pop()
        for stage in self.up:
            x = stage(x, seen.pop())
        logits: Tensor = self.head(x)
        return logits


class Up(nn.Module):
    """Doubles height and width, pads to those of the map from the way down (both of `channels`), and mixes the two."""

    def __init__(self, channels: int, out: int) -> None:
        super().__init__()
        self.enlarge = nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True)
        self.mix = _two_convolutions(2 * channels, channels, out)

    def forward(self, x: Tensor, seen: Tensor) -> Tensor:
        x = self.enlarge(x)
        rows, columns = seen.shape[2] - x.shape[2], seen.shape[3] - x.shape[3]
        x = pad(x, (columns // 2, columns - columns // 2, rows // 2, rows - rows // 2))
        mixed: Tensor = self.mix(torch.cat([seen, x], dim=1))
        return mixed


def _two_convolutions(channels: int, middle: int, out: int) -> nn.Sequential:
    layers: list[nn.Module] = []
    for before, after in ((channels, middle), (middle, out)):
        layers += [nn.Conv2d(before, after, 3, padding=1), nn.BatchNorm2d(after), nn.ReLU(inplace=True)]
    return nn.Sequential(*layers)
