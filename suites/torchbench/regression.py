"""The loss of networks that predict numbers."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.functional import mse_loss


def squared_error(targets: Tensor, scale: float, places: Tensor | None = None) -> Callable[[Tensor], Tensor]:
    """Return the mean squared error of an output against `targets` of its shape, divided by `scale`.

    Args:
        places: of the flattened output, those that `targets`, a vector, is about; None: all.
    """

    def loss(output: Tensor) -> Tensor:
        nonlocal targets, places
        if targets.device != output.device:  # once: a copy in each step would make a GPU wait for the host
            targets = targets.to(output.device)
            places = None if places is None else places.to(output.device)
        predicted = output if places is None else output.flatten().index_select(0, places)
        # As of cross-entropy: half precision is coarser than the differences that are looked for.
        exact = predicted.to(torch.promote_types(predicted.dtype, torch.float32))
        return mse_loss(exact, targets.to(exact.dtype)) / scale

    return loss
