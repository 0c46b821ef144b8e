"""Networks that learn by telling two views of one image from views of others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torchvision
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, normalize

from suites import inputs
from suites.registry import LoadError
from suites.spec import Attention
from suites.torchbench.recipe import Ask, Call, Recipe

MOMENTUM = 0.999
TEMPERATURE = 0.07


class MomentumContrast(nn.Module):
    """A query encoder that is trained, a key encoder that follows it, and a queue of keys seen before.

    Every call moves the key encoder and the queue, in eval mode too. One process: the batch is shuffled and put back,
    as it is between processes, but nothing is gathered.
    """

    queue: Tensor
    place: Tensor

    def __init__(self, width: int, queue: int) -> None:
        super().__init__()
        self.query_encoder = torchvision.models.resnet50(weights=None, num_classes=width)
        self.key_encoder = torchvision.models.resnet50(weights=None, num_classes=width).requires_grad_(False)
        self.key_encoder.load_state_dict(self.query_encoder.state_dict())
        self.register_buffer("queue", normalize(torch.randn(width, queue), dim=0))
        self.register_buffer("place", torch.zeros(1, dtype=torch.int64))

    def forward(self, queries: Tensor, keys: Tensor) -> tuple[Tensor, Tensor]:
        """Map two views `(batch, 3, height, width)` to logits `(batch, 1 + queue)` and labels `(batch,)`, all 0.

        The first logit of a row is the cosine of the two views of one image, the others those with the queue.
        """
        found = normalize(self.query_encoder(queries), dim=1)
        with torch.no_grad():
            self._follow()
            order = torch.randperm(len(keys), device=keys.device)
            wanted = normalize(self.key_encoder(keys[order]), dim=1)[order.argsort()]
        own = (found * wanted).sum(1, keepdim=True)
        others = found @ self.queue.clone().detach()  # a copy: the queue is written to before backward reads it
        logits = torch.cat([own, others], dim=1) / TEMPERATURE
        self._enqueue(wanted)
        return logits, torch.zeros(len(logits), dtype=torch.int64, device=logits.device)

    @torch.no_grad()
    def _follow(self) -> None:
        for query, key in zip(self.query_encoder.parameters(), self.key_encoder.parameters(), strict=True):
            key.mul_(MOMENTUM).add_(query, alpha=1 - MOMENTUM)

    @torch.no_grad()
    def _enqueue(self, keys: Tensor) -> None:
        """Overwrite the oldest keys. Their place is read as a number, as in the original: the compiler stops there."""
        start = int(self.place)
        self.queue[:, start : start + len(keys)] = keys.T
        self.place[0] = (start + len(keys)) % self.queue.shape[1]


@dataclass(frozen=True)
class Moco(Recipe):
    """MoCo (He et al. 2020) on two ResNet-50, with the loss of the paper.

    Args:
        width: features of a key.
        queue: keys in the queue; a multiple of the batch size.
    """

    width: int = 128
    queue: int = 32000

    def network(self, attention: Attention) -> nn.Module:
        return MomentumContrast(self.width, self.queue)

    def call(self, ask: Ask) -> Call:
        """Return two views of images: as they are, and mirrored."""
        if ask.size is None:
            raise LoadError("MoCo needs an input_size in its entry.")
        if self.queue % ask.batch_size:
            raise LoadError(
                f"MoCo's queue of {self.queue} keys takes whole batches, and {ask.batch_size} is no divisor of that. "
                "Choose another --batch-size."
            )
        images = inputs.images(ask.batch_size, ask.size, ask.seed)
        return Call((images, images.flip(-1)), loss=_loss(ask.loss_scale))


def _loss(scale: float) -> Callable[[Any], Tensor]:
    def loss(output: tuple[Tensor, Tensor]) -> Tensor:
        logits, labels = output
        return cross_entropy(logits.to(torch.promote_types(logits.dtype, torch.float32)), labels) / scale

    return loss
