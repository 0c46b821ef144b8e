"""YOLOv3: boxes, and what is in them, at three scales in one pass."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits, interpolate, max_pool2d, mse_loss

from suites import inputs
from suites.losses import against
from suites.spec import Attention
from suites.torchbench.images import Residual, frame, labels, stills
from suites.torchbench.recipe import Ask, Call, Recipe

STRIDES = (32, 16, 8)
ANCHORS = (
    ((116, 90), (156, 198), (373, 326)),
    ((30, 61), (62, 45), (59, 119)),
    ((10, 13), (16, 30), (33, 23)),
)
"""Width and height in pixels of the boxes that are expected, found by clustering those of COCO (the paper, 2.3)."""

Decoded = tuple[Tensor, tuple[Tensor, ...]]


@dataclass(frozen=True)
class Yolo(Recipe):
    """YOLOv3 with spatial pyramid pooling (Redmon & Farhadi, 2018; He et al., 2015): images `(batch, 3, 384, 512)`
    to raw maps `(batch, 3, height, width, 5 + classes)` at strides 32, 16 and 8: in training a list of them, in
    inference the boxes `(batch, 12096, 5 + classes)` in pixels, and the maps.

    Loss: the terms of the paper, squared error of the boxes and binary cross-entropy of the rest, with something
    at random to be found in every cell. Its own takes only the cells that a data set's boxes fall into.
    """

    CALIBRATION_BATCH = 8
    """With two, statistics of the coarsest map of a small image are so far off that boxes are 1e6 pixels wide."""

    classes: int = 80

    def network(self, attention: Attention) -> nn.Module:
        return Detector(self.classes)

    def call(self, ask: Ask) -> Call:
        return Call(stills(ask, 3), loss=_loss(ask, self.classes))


class Detector(nn.Module):
    """Darknet-53, and on the way back up one head for each scale."""

    def __init__(self, classes: int) -> None:
        super().__init__()
        self.small = nn.Sequential(_convolution(3, 32), _stage(32, 64, 1), _stage(64, 128, 2), _stage(128, 256, 8))
        self.middle = _stage(256, 512, 8)
        self.large = _stage(512, 1024, 4)
        self.pyramid = nn.Sequential(*_alternating(1024, 512, 3), Pyramid(), *_alternating(2048, 512, 3))
        self.necks = nn.ModuleList(nn.Sequential(*_alternating(3 * width, width, 5)) for width in (256, 128))
        self.narrow = nn.ModuleList(_convolution(2 * width, width, 1) for width in (256, 128))
        self.heads = nn.ModuleList(Head(width, classes) for width in (512, 256, 128))
        self.scales = nn.ModuleList(Scale(*each) for each in zip(STRIDES, ANCHORS, strict=True))

    def forward(self, image: Tensor) -> list[Tensor] | Decoded:
        small = self.small(image)
        middle = self.middle(small)
        x = self.pyramid(self.large(middle))
        maps = [self.heads[0](x)]
        for narrow, neck, head, seen in zip(self.narrow, self.necks, self.heads[1:], (middle, small), strict=True):
            x = neck(torch.cat([interpolate(narrow(x), scale_factor=2, mode="nearest"), seen], dim=1))
            maps.append(head(x))
        if self.training:
            return maps
        boxes = [scale(each).flatten(1, 3) for scale, each in zip(self.scales, maps, strict=True)]
        return torch.cat(boxes, dim=1), tuple(maps)


class Pyramid(nn.Module):
    """Lays the largest values nearby, of three sizes, over the map itself."""

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([*(max_pool2d(x, kernel, 1, kernel // 2) for kernel in (13, 9, 5)), x], dim=1)


class Head(nn.Module):
    """From a map to `(batch, anchors, height, width, 5 + classes)`."""

    def __init__(self, channels: int, classes: int) -> None:
        super().__init__()
        self.widen = _convolution(channels, 2 * channels)
        self.predict = nn.Conv2d(2 * channels, 3 * (5 + classes), 1)

    def forward(self, x: Tensor) -> Tensor:
        predicted: Tensor = self.predict(self.widen(x))
        batch, _, height, width = predicted.shape
        return predicted.view(batch, 3, -1, height, width).permute(0, 1, 3, 4, 2).contiguous()


class Scale(nn.Module):
    """From raw maps to centre, width and height in pixels, and the chances of an object and of each class.

    Each call makes the grid of cells anew, so that copies of the module and compiled code know of no past call; one
    that is kept until size or device change has the same values.
    """

    anchors: Tensor

    def __init__(self, stride: int, anchors: tuple[tuple[int, int], ...]) -> None:
        super().__init__()
        self.stride = stride
        self.register_buffer("anchors", torch.tensor(anchors).view(3, 1, 1, 2), persistent=False)

    def forward(self, raw: Tensor) -> Tensor:
        height, width = raw.shape[2:4]
        down, across = torch.meshgrid(
            torch.arange(height, device=raw.device), torch.arange(width, device=raw.device), indexing="ij"
        )
        boxes = raw.clone()
        boxes[..., :2] = (raw[..., :2].sigmoid() + torch.stack([across, down], dim=2)) * self.stride
        boxes[..., 2:4] = raw[..., 2:4].exp() * self.anchors
        boxes[..., 4:].sigmoid_()
        return boxes


def _stage(channels: int, out: int, blocks: int) -> nn.Sequential:
    rest = (Residual(*_alternating(out, out // 2, 2)) for _ in range(blocks))
    return nn.Sequential(_convolution(channels, out, 3, 2), *rest)


def _alternating(channels: int, width: int, count: int) -> list[nn.Module]:
    """Return convolutions in turn of 1x1 to `width` and of 3x3 to twice that."""
    layers: list[nn.Module] = []
    for at in range(count):
        out, kernel = (2 * width, 3) if at % 2 else (width, 1)
        layers.append(_convolution(channels, out, kernel))
        channels = out
    return layers


def _convolution(channels: int, out: int, kernel: int = 3, stride: int = 1) -> nn.Sequential:
    convolution = nn.Conv2d(channels, out, kernel, stride, kernel // 2, bias=False)
    return nn.Sequential(convolution, nn.BatchNorm2d(out, eps=1e-4, momentum=0.03), nn.LeakyReLU(0.1, inplace=True))


def _loss(ask: Ask, classes: int) -> Callable[[Any], Tensor]:
    height, width = frame(ask)
    terms = []
    for stride in STRIDES:
        cells = (3, height // stride, width // stride)
        boxes = torch.randn((ask.batch_size, *cells, 4), generator=inputs.stream(ask.seed, f"boxes/{stride}"))
        terms.append(
            (
                against(boxes, mse_loss, ask.loss_scale),
                against(labels(ask, *cells, 1 + classes), binary_cross_entropy_with_logits, ask.loss_scale),
            )
        )

    def loss(maps: list[Tensor]) -> Tensor:
        of_scales = [
            of_boxes(each[..., :4]) + of_rest(each[..., 4:])
            for (of_boxes, of_rest), each in zip(terms, maps, strict=True)
        ]
        return torch.stack(of_scales).mean()

    return loss
