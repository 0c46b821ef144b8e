"""The loss of networks that predict numbers."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor
from torch.nn.functional import mse_loss

from suites.losses import against


def squared_error(targets: Tensor, scale: float, places: Tensor | None = None) -> Callable[[Tensor], Tensor]:
    """Return the mean squared error of an output against `targets` of its shape, divided by `scale`.

    Args:
        places: of the flattened output, those that `targets`, a vector, is about; None: all.
    """

    of_predicted = against(targets, mse_loss, scale)

    def loss(output: Tensor) -> Tensor:
        nonlocal places
        if places is not None and places.device != output.device:
            places = places.to(output.device)  # once, as the targets
        return of_predicted(output if places is None else output.flatten().index_select(0, places))

    return loss
