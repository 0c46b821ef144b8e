"""Three tiny models, built and run in milliseconds: the suite of our own tests, and of a first try."""

from __future__ import annotations

import math
from typing import Any

from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

from suites import fill, inputs
from suites.losses import classification
from suites.registry import LoadError
from suites.spec import Attention, Mode, ModelSpec
from suites.workload import Workload

CLASSES = 10
VOCABULARY = 64
CALIBRATION_BATCH = 8


class Attending(nn.Module):
    """One block of self-attention over tokens. Its output is nested, with leaves that are no tensors."""

    def __init__(self, kind: Attention, width: int = 32, heads: int = 4) -> None:
        super().__init__()
        self.kind = kind
        self.heads = heads
        self.embedding = nn.Embedding(VOCABULARY, width)
        self.norm = nn.LayerNorm(width)
        self.query_key_value = nn.Linear(width, 3 * width)
        self.projection = nn.Linear(width, width)
        self.head = nn.Linear(width, CLASSES)

    def forward(self, tokens: Tensor) -> dict[str, Any]:
        """Map tokens of shape `(batch, length)` to logits of shape `(batch, classes)` and the states behind them."""
        embedded = self.embedding(tokens)
        batch, length, width = embedded.shape
        split = self.query_key_value(self.norm(embedded)).view(batch, length, 3, self.heads, width // self.heads)
        query, key, value = split.permute(2, 0, 3, 1, 4).unbind(0)
        mixed = self.mix(query, key, value).transpose(1, 2).reshape(batch, length, width)
        hidden = embedded + self.projection(mixed)
        pooled = hidden.mean(1)
        return {"logits": self.head(pooled), "states": {"hidden": hidden, "pooled": (pooled, None)}, "length": length}

    def mix(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        """Return `(batch, heads, length, width / heads)`, as the arguments are."""
        if self.kind == Attention.FUSED:
            return scaled_dot_product_attention(query, key, value)
        scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
        return scores.softmax(-1) @ value


def _mlp(width: int) -> nn.Module:
    return nn.Sequential(nn.Linear(width, 32), nn.GELU(), nn.Linear(32, CLASSES))


def _conv(channels: int) -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(channels, 16, 3, padding=1, bias=False),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        nn.Conv2d(16, 32, 3, stride=2, padding=1, bias=False),
        nn.BatchNorm2d(32),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Dropout(0.2),
        nn.Linear(32, CLASSES),
    )


def build(
    spec: ModelSpec, mode: Mode, batch_size: int | None, seed: int, attention: Attention = Attention.FUSED
) -> Workload:
    """Return one of `mlp`, `conv` and `attention`.

    Raises:
        LoadError: the entry names another model, or gives no input size.
    """
    if spec.build_name not in ("mlp", "conv", "attention"):
        raise LoadError(f'the toy suite has no model "{spec.build_name}". It has: mlp, conv, attention.')
    if spec.input_size is None:
        raise LoadError(f'model "{spec.name}" needs an input_size in its entry.')
    size = spec.input_size
    with inputs.seeded(seed):
        module = _module(spec.build_name, size[0], attention)
    fill.wake(module, (_arguments(spec.build_name, CALIBRATION_BATCH, size, seed),), {}, seed)

    batch = 1 if batch_size is None else batch_size
    of_logits = classification(inputs.targets(batch, CLASSES, seed), spec.loss_scale)

    def loss(output: Any) -> Tensor:
        return of_logits(output["logits"] if isinstance(output, dict) else output)

    arguments = (_arguments(spec.build_name, batch, size, seed),)
    return Workload(module, arguments, {}, loss if mode == Mode.TRAINING else None)


def _module(model: str, width: int, attention: Attention) -> nn.Module:
    if model == "attention":
        return Attending(attention)
    return _conv(width) if model == "conv" else _mlp(width)


def _arguments(model: str, batch_size: int, size: tuple[int, ...], seed: int) -> Tensor:
    if model == "attention":
        return inputs.tokens(batch_size, size[0], VOCABULARY, seed)
    return inputs.images(batch_size, size, seed) if model == "conv" else inputs.features(batch_size, size, seed)
