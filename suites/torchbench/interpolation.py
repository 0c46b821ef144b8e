"""Super SloMo: the frame between two frames of a video, at any of seven times."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn.functional import avg_pool2d, grid_sample, interpolate, l1_loss, leaky_relu, mse_loss
from torchvision.models import vgg

from suites import inputs
from suites.spec import Attention
from suites.torchbench.images import stills
from suites.torchbench.recipe import Ask, Call, Recipe

TIMES = 7
"""A video of 240 frames a second, of which every eighth is shown."""


@dataclass(frozen=True)
class SlowMotion(Recipe):
    """Super SloMo (Jiang et al., 2018): numbers of times `(batch,)` and three frames `(batch, 3, 352, 352)`, the
    first, the last and the true one between, to the frame between, and the training loss, which the network computes
    in both modes.

    Loss: that one.
    """

    def network(self, attention: Attention) -> nn.Module:
        return Interpolator()

    def call(self, ask: Ask) -> Call:
        times = torch.randint(TIMES, (ask.batch_size,), generator=inputs.stream(ask.seed, "times"))
        return Call((times, *stills(ask, 3, 3, 3)), loss=_own_loss(ask.loss_scale))


class Interpolator(nn.Module):
    """One U-Net estimates the flow between the frames, a second mends the flows towards the time between; a frozen
    VGG-16 up to its tenth convolution tells how alike two frames look.
    """

    times: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.flow = FlowUnet(6, 4)
        self.mending = FlowUnet(20, 5)
        self.look = _look()
        self.register_buffer("times", torch.linspace(0.125, 0.875, TIMES), persistent=False)

    def forward(self, time: Tensor, first: Tensor, last: Tensor, between: Tensor) -> tuple[Tensor, Tensor]:
        t = self.times[time][:, None, None, None]
        forth, back = self.flow(torch.cat([first, last], dim=1)).split(2, dim=1)
        to_first = -(1 - t) * t * forth + t * t * back
        to_last = (1 - t) * (1 - t) * forth - t * (1 - t) * back
        from_first, from_last = warped(first, to_first), warped(last, to_last)
        seen = [first, last, forth, back, to_last, to_first, from_last, from_first]
        change_first, change_last, visible = self.mending(torch.cat(seen, dim=1)).split((2, 2, 1), dim=1)
        weight_first = (1 - t) * visible.sigmoid()
        weight_last = t * (1 - visible.sigmoid())
        shown_first = weight_first * warped(first, to_first + change_first)
        shown_last = weight_last * warped(last, to_last + change_last)
        frame = (shown_first + shown_last) / (weight_first + weight_last)

        warps = l1_loss(from_first, between) + l1_loss(from_last, between)
        warps = warps + l1_loss(warped(first, back), last) + l1_loss(warped(last, forth), first)
        looks = mse_loss(self.look(frame), self.look(between))
        loss = 204 * l1_loss(frame, between) + 102 * warps + 0.005 * looks + roughness(back) + roughness(forth)
        return frame, loss


class FlowUnet(nn.Module):
    """A U-Net that halves by average pooling and doubles by bilinear interpolation, five times each."""

    def __init__(self, channels: int, out: int) -> None:
        super().__init__()
        widths = (32, 64, 128, 256, 512, 512)
        self.stem = _two_convolutions(channels, 32, 32, 7)
        stages = zip(widths, widths[1:], (5, 3, 3, 3, 3), strict=False)
        self.down = nn.ModuleList(_two_convolutions(above, below, below, kernel) for above, below, kernel in stages)
        self.up = nn.ModuleList(Up(widths[at + 1], widths[at]) for at in reversed(range(5)))
        self.head = nn.Conv2d(32, out, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        seen = [self.stem(x)]
        for stage in self.down:
            seen.append(stage(avg_pool2d(seen[-1], 2)))
        x = seen.pop()
        for stage in self.up:
            x = stage(x, seen.pop())
        return leaky_relu(self.head(x), 0.1)


class Up(nn.Module):
    """Doubles height and width, and mixes in the map of that size from the way down."""

    def __init__(self, channels: int, out: int) -> None:
        super().__init__()
        self.narrow = nn.Conv2d(channels, out, 3, padding=1)
        self.mix = nn.Conv2d(2 * out, out, 3, padding=1)

    def forward(self, x: Tensor, seen: Tensor) -> Tensor:
        x = interpolate(x, scale_factor=2, mode="bilinear")
        x = leaky_relu(self.narrow(x), 0.1)
        return leaky_relu(self.mix(torch.cat([x, seen], dim=1)), 0.1)


def warped(image: Tensor, flow: Tensor) -> Tensor:
    """Return `image` as it looks from where `flow` (in pixels: across, down) leads.

    Each call makes the grid of pixels anew, so that the network takes frames of any size and moves to any device.
    """
    height, width = image.shape[2:]
    # In float32 also where autocast makes the flow half as wide: bfloat16 counts to 256.
    across = torch.arange(width, device=flow.device, dtype=torch.float32) + flow[:, 0]
    down = torch.arange(height, device=flow.device, dtype=torch.float32)[:, None] + flow[:, 1]
    # By the number of pixels, as in the original: a flow of nothing moves the image by half a pixel.
    grid = torch.stack([2 * (across / width - 0.5), 2 * (down / height - 0.5)], dim=3)
    return grid_sample(image, grid.to(image.dtype), align_corners=False)


def roughness(flow: Tensor) -> Tensor:
    """Return the mean absolute difference of neighbours in a row, and of those in a column, summed."""
    return flow.diff(dim=3).abs().mean() + flow.diff(dim=2).abs().mean()


def _two_convolutions(channels: int, middle: int, out: int, kernel: int) -> nn.Sequential:
    pairs = ((channels, middle), (middle, out))
    layers = [(nn.Conv2d(before, after, kernel, padding=kernel // 2), nn.LeakyReLU(0.1)) for before, after in pairs]
    return nn.Sequential(*(each for pair in layers for each in pair))


def _look() -> nn.Sequential:
    """Return the first layers of VGG-16, drawn as torchvision draws them; the whole would take half a GiB."""
    layers: nn.Sequential = vgg.make_layers(vgg.cfgs["D"])[:22]
    for each in layers:
        if isinstance(each, nn.Conv2d):
            nn.init.kaiming_normal_(each.weight, mode="fan_out", nonlinearity="relu")
            nn.init.zeros_(cast(Tensor, each.bias))
    return layers.requires_grad_(False)


def _own_loss(scale: float) -> Callable[[Any], Tensor]:
    def loss(outputs: tuple[Tensor, Tensor]) -> Tensor:
        return outputs[1].to(torch.promote_types(outputs[1].dtype, torch.float32)) / scale

    return loss
