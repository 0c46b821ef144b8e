"""From a model's output to the scalar that training walks back from."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

Measure = Callable[[Tensor, Tensor], Tensor]


def classification(targets: Tensor, scale: float) -> Callable[[Tensor], Tensor]:
    """Return the mean cross-entropy of logits `(batch, classes)` against `targets` `(batch,)`, divided by `scale`.

    Upstream took cross-entropy until autumn 2022 and the plain mean of the output later. The mean
    gives every logit the same gradient, and a norm in train mode takes what is equal out again: what
    is left to compare is mostly rounding. Cross-entropy is also what training uses.
    """

    return against(targets, cross_entropy, scale)


def against(targets: Tensor, measure: Measure, scale: float) -> Callable[[Tensor], Tensor]:
    """Return a loss: `measure(output, targets)` in float32 at least, divided by `scale`."""

    def loss(output: Tensor) -> Tensor:
        nonlocal targets
        if targets.device != output.device:
            targets = targets.to(output.device)  # once: a copy in each step would make a GPU wait for the host
        # In half precision a logarithm, say, would be coarser than the differences that are looked for.
        exact = output.to(torch.promote_types(output.dtype, torch.float32))
        return measure(exact, targets.to(exact.dtype) if targets.is_floating_point() else targets) / scale

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
