"""From a model's output to the scalar that training walks back from."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy


def classification(targets: Tensor, scale: float) -> Callable[[Tensor], Tensor]:
    """Return the mean cross-entropy of logits `(batch, classes)` against `targets` `(batch,)`, divided by `scale`.

    Upstream took cross-entropy until autumn 2022 and the plain mean of the output later. The mean
    gives every logit the same gradient, and a norm in train mode takes what is equal out again: what
    is left to compare is mostly rounding. Cross-entropy is also what training uses.
    """

    def loss(logits: Tensor) -> Tensor:
        nonlocal targets
        if targets.device != logits.device:
            targets = targets.to(logits.device)  # once: a copy in each step would make a GPU wait for the host
        # In half precision the logarithm would be coarser than the differences that are looked for.
        exact = logits.to(torch.promote_types(logits.dtype, torch.float32))
        return cross_entropy(exact, targets) / scale

    return loss


def of_tokens(targets: Tensor, scale: float) -> Callable[[Any], Tensor]:
    """Return the mean cross-entropy of `output.logits` `(batch, length, vocabulary)` against `(batch, length)`.

    See `classification`.
    """
    of_flat = classification(targets.flatten(), scale)

    def loss(output: Any) -> Tensor:
        return of_flat(output.logits.flatten(0, 1))

    return loss


def own(scale: float) -> Callable[[Any], Tensor]:
    """Return the loss that the model computed itself from labels among its arguments, divided by `scale`."""

    def loss(output: Any) -> Tensor:
        computed: Tensor = output.loss
        return computed / scale

    return loss
