"""What every builder returns: a module, its arguments and its loss."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn


@dataclass(frozen=True)
class Workload:
    """A model ready to run on the CPU in float32; the worker moves and casts it.

    Args:
        module: untrained, seeded, in whatever mode the builder left it.
        args, kwargs: what the module is called with; `kwargs` may be any mapping.
        loss: from the module's output to a scalar. None: the mean over all floating leaves.
    """

    module: nn.Module
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    loss: Callable[[Any], Tensor] | None = None
