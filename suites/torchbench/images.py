"""What networks over images share: arguments, random answers to hold an output against, a block."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from suites import inputs
from suites.registry import LoadError
from suites.torchbench.recipe import Ask


class Residual(nn.Module):
    """Adds what its layers make of the input to the input (He et al., 2016)."""

    def __init__(self, *layers: nn.Module) -> None:
        super().__init__()
        self.branch = nn.Sequential(*layers)

    def forward(self, x: Tensor) -> Tensor:
        summed: Tensor = x + self.branch(x)
        return summed


def frame(ask: Ask) -> tuple[int, int]:
    """Return height and width of the entry's images.

    Raises:
        LoadError: the entry gives no size `[channels, height, width]`.
    """
    if ask.size is None or len(ask.size) != 3:
        raise LoadError("a network over images needs input_size = [channels, height, width] in its entry.")
    return ask.size[1], ask.size[2]


def stills(ask: Ask, *channels: int) -> tuple[Tensor, ...]:
    """Return standardised images, one `(batch, channels, height, width)` for each number of channels."""
    whole = inputs.images(ask.batch_size, (sum(channels), *frame(ask)), ask.seed)
    return tuple(part.contiguous() for part in torch.split(whole, list(channels), dim=1))


def answers(ask: Ask, *size: int) -> Tensor:
    """Return `(batch, *size)`, uniform between 0 and 1: what a network is trained towards where there is no data."""
    return torch.rand((ask.batch_size, *size), generator=inputs.stream(ask.seed, "answers"), dtype=torch.float32)


def labels(ask: Ask, *size: int) -> Tensor:
    """Return `(batch, *size)` of zeros and ones, in float32."""
    drawn = torch.randint(2, (ask.batch_size, *size), generator=inputs.stream(ask.seed, "labels"))
    return drawn.to(torch.float32)
