"""Small networks of control and of physics: two policies that answer with a distribution, and a learned potential."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn
from torch.distributions import Normal, TransformedDistribution
from torch.distributions.transforms import TanhTransform

from suites import inputs
from suites.spec import Attention
from suites.torchbench.recipe import Ask, Call, Recipe
from suites.torchbench.regression import squared_error

LOG_DEVIATION = (-10.0, 2.0)
"""Between these the logarithm of an action's standard deviation lies."""


@dataclass(frozen=True)
class Potential(Recipe):
    """Energy between two particles, learned (Lennard-Jones 1924): distances `(batch, 1)` to energies `(batch, 1)`.

    Perceptron 1-16-16-16-16-1 with tanh. The loss is the mean squared error against 4 (r^-12 - r^-6), at distances from
    1 to 3; the benchmark's own training step also compares forces, which the timed network does not compute.
    """

    hidden: Sequence[int] = (16, 16, 16, 16)

    def network(self, attention: Attention) -> nn.Module:
        network = _perceptron([1, *self.hidden, 1], nn.Tanh)
        for weight in network.parameters():
            if weight.ndim > 1:  # as initialised by default, five layers with tanh answer nearly the same everywhere
                nn.init.xavier_uniform_(weight, nn.init.calculate_gain("tanh"))
        return network

    def call(self, ask: Ask) -> Call:
        generator = inputs.stream(ask.seed, "distances")
        distances = 1 + 2 * torch.rand((ask.batch_size, 1), generator=generator, dtype=torch.float32)
        energies = 4 * (distances**-12 - distances**-6)
        return Call((distances,), loss=squared_error(energies, ask.loss_scale))


class SquashedNormal(TransformedDistribution):
    """Normally distributed actions, pressed by tanh into -1 to 1."""

    base_dist: Normal

    def __init__(self, loc: Tensor, scale: Tensor) -> None:
        super().__init__(Normal(loc, scale), TanhTransform(cache_size=1))

    @property
    def mean(self) -> Tensor:
        """The action of the normal distribution's mean, `(batch, actions)`: the policy without its noise."""
        action = self.base_dist.loc
        for transform in self.transforms:
            action = transform(action)
        return action


def mean_action(scale: float) -> Callable[[SquashedNormal], Tensor]:
    """Return the mean of all mean actions, divided by `scale`: a loss from which no gradient reaches the deviations."""

    def loss(actions: SquashedNormal) -> Tensor:
        mean = actions.mean
        return mean.to(torch.promote_types(mean.dtype, torch.float32)).mean() / scale

    return loss


@dataclass(frozen=True)
class StateActor(Recipe):
    """The policy of soft actor-critic (Haarnoja et al. 2018, arXiv:1801.01290): states `(batch, 3)` to a distribution.

    Perceptron 3-1024-1024-2 with ReLU. States are those of a pendulum: cosine and sine of its angle, and its speed,
    between -8 and 8. The loss is `mean_action`, as in the upstream runner: the paper's needs a critic as well.
    """

    actions: int = 1
    hidden: Sequence[int] = (1024, 1024)

    def network(self, attention: Attention) -> nn.Module:
        return OverStates(self.hidden, self.actions)

    def call(self, ask: Ask) -> Call:
        generator = inputs.stream(ask.seed, "states")
        turn, speed = 2 * torch.rand((2, ask.batch_size), generator=generator, dtype=torch.float32) - 1
        angle = torch.pi * turn
        return Call((torch.stack([angle.cos(), angle.sin(), 8 * speed], dim=1),), loss=mean_action(ask.loss_scale))


class OverStates(nn.Module):
    """The network of `StateActor`."""

    def __init__(self, hidden: Sequence[int], actions: int) -> None:
        super().__init__()
        self.policy = _perceptron([3, *hidden, 2 * actions], nn.ReLU)

    def forward(self, states: Tensor) -> SquashedNormal:
        return SquashedNormal(*_moments(self.policy(states)))


@dataclass(frozen=True)
class PixelActor(Recipe):
    """The policy of DrQ (Kostrikov et al. 2020, arXiv:2004.13649): frames `(batch, 27, 84, 84)` to a distribution.

    Nine frames of three colours, 0 to 255; four convolutions, a projection to 50 features with layer norm and tanh, and
    a perceptron 50-1024-1024-2. Weights are orthogonal. As in the benchmark the network keeps what its layers gave in
    dictionaries, so that a compiler must hand those out as well. The loss is `mean_action`, as of `StateActor`.
    """

    channels: int = 27
    image: int = 84
    features: int = 50
    actions: int = 1
    hidden: Sequence[int] = (1024, 1024)

    def network(self, attention: Attention) -> nn.Module:
        return OverPixels(self)

    def call(self, ask: Ask) -> Call:
        size = (ask.batch_size, self.channels, self.image, self.image)
        frames = torch.randint(256, size, generator=inputs.stream(ask.seed, "frames")).to(torch.float32)
        return Call((frames,), loss=mean_action(ask.loss_scale))


class Keeping(nn.Module):
    """A module that keeps what its layers gave last. A copy starts without: a tensor with a history has none."""

    def __init__(self) -> None:
        super().__init__()
        self.kept: dict[str, Tensor] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "kept": {}}


class Encoder(Keeping):
    """Frames `(batch, channels, image, image)` to `(batch, features)`, between -1 and 1."""

    def __init__(self, sizes: PixelActor, filters: int = 32) -> None:
        super().__init__()
        strides = (2, 1, 1, 1)
        channels = (sizes.channels, *[filters] * len(strides))
        self.convolutions = nn.ModuleList(
            nn.Conv2d(above, below, 3, stride)
            for (above, below), stride in zip(pairwise(channels), strides, strict=True)
        )
        side = sizes.image
        for stride in strides:
            side = (side - 3) // stride + 1
        self.projection = nn.Linear(filters * side * side, sizes.features)
        self.norm = nn.LayerNorm(sizes.features)

    def forward(self, frames: Tensor) -> Tensor:
        hidden: Tensor
        hidden = self.kept["frames"] = frames / 255
        for place, convolution in enumerate(self.convolutions, start=1):
            hidden = self.kept[f"convolution {place}"] = convolution(hidden).relu()
        hidden = self.kept["projection"] = self.projection(hidden.flatten(1))
        hidden = self.kept["norm"] = self.norm(hidden)
        hidden = self.kept["features"] = hidden.tanh()
        return hidden


class OverPixels(Keeping):
    """The network of `PixelActor`."""

    def __init__(self, sizes: PixelActor) -> None:
        super().__init__()
        self.encoder = Encoder(sizes)
        self.policy = _perceptron([sizes.features, *sizes.hidden, 2 * sizes.actions], nn.ReLU)
        for weight in self.parameters():
            if weight.ndim > 1:
                nn.init.orthogonal_(weight)

    def forward(self, frames: Tensor) -> SquashedNormal:
        loc, scale = _moments(self.policy(self.encoder(frames)))
        self.kept["loc"], self.kept["scale"] = loc, scale
        return SquashedNormal(loc, scale)


def _perceptron(widths: Sequence[int], activation: Callable[[], nn.Module]) -> nn.Sequential:
    """Return linear layers of these widths with activations between them."""
    layers: list[nn.Module] = []
    for above, below in pairwise(widths):
        layers += [nn.Linear(above, below), activation()]
    return nn.Sequential(*layers[:-1])


def _moments(answer: Tensor) -> tuple[Tensor, Tensor]:
    """Return mean and standard deviation, `(batch, actions)` each, of what a policy answered, `(batch, 2 actions)`."""
    loc, raw = answer.chunk(2, dim=-1)
    low, high = LOG_DEVIATION
    return loc, (low + (high - low) * (raw.tanh() + 1) / 2).exp()
