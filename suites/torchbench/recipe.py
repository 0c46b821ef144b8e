"""What each model of the suite is described by: a frozen dataclass that builds a network and the arguments of a call.

@dataclass(frozen=True)
class Perceptron(Recipe):
    width: int = 64                      # an entry's `arguments` may say otherwise

    def network(self, attention): ...
    def call(self, ask): ...
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from torch import Tensor, nn

from suites.spec import Attention, Mode


@dataclass(frozen=True)
class Ask:
    """For what arguments are wanted. `size` and `length` are those of the mode, None where the entry gives none."""

    mode: Mode
    batch_size: int
    seed: int
    size: tuple[int, ...] | None = None
    length: int | None = None
    loss_scale: float = 1.0


@dataclass(frozen=True)
class Call:
    """The arguments of one call, and in training the loss of its output; None: the mean over all floating leaves."""

    args: tuple[Any, ...]
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    loss: Callable[[Any], Tensor] | None = None


class Recipe(ABC):
    """One model. Its fields are the sizes that its entry may change."""

    CALIBRATION_BATCH: ClassVar[int] = 2
    """Of the pass that sets running statistics, in inference, at the size and length of training."""

    @abstractmethod
    def network(self, attention: Attention) -> nn.Module:
        """Return the module with the weights that it is initialised with.

        Raises:
            LoadError: attention spelled out is asked for, and the network knows only one way.
        """

    @abstractmethod
    def call(self, ask: Ask) -> Call:
        """Return seeded arguments, on the CPU in float32 or int64."""
