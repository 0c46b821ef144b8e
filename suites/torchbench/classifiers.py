"""Image classifiers of torchvision and timm, with random weights. Nothing is downloaded."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any, ClassVar, cast

import torchvision
from torch import nn

from suites import inputs, timm
from suites.losses import classification
from suites.registry import LoadError
from suites.spec import Attention
from suites.torchbench.recipe import Ask, Call, Recipe

CLASSES = 1000


class _Classifier(Recipe):
    """Images to logits, trained by cross-entropy."""

    CALIBRATION_BATCH: ClassVar[int] = timm.CALIBRATION_BATCH

    def call(self, ask: Ask) -> Call:
        """Return images `(batch, channels, height, width)` of the entry's size."""
        if ask.size is None:
            raise LoadError("an image classifier needs an input_size in its entry.")
        images = inputs.images(ask.batch_size, ask.size, ask.seed)
        targets = inputs.targets(ask.batch_size, CLASSES, ask.seed)
        return Call((images,), loss=classification(targets, ask.loss_scale))


@dataclass(frozen=True)
class Torchvision(_Classifier):
    """A network of torchvision by name. None of the suite's has attention: there is no choice to make."""

    name: str

    def network(self, attention: Attention) -> nn.Module:
        if self.name not in (known := torchvision.models.list_models(module=torchvision.models)):
            close = get_close_matches(self.name, known, n=3, cutoff=0.5)
            raise LoadError(
                f'torchvision has no model "{self.name}".' + (f" Close: {', '.join(close)}." if close else "")
            )
        return cast(nn.Module, torchvision.models.get_model(self.name, weights=None))


@dataclass(frozen=True)
class DenseNet(_Classifier):
    """DenseNet-121 (Huang et al. 2017): each layer sees the outputs of all before it, so that no two are equal.

    Args:
        blocks: layers of each dense block.
    """

    blocks: tuple[int, ...] = (6, 12, 24, 16)

    def network(self, attention: Attention) -> nn.Module:
        module = torchvision.models.DenseNet(growth_rate=32, block_config=self.blocks, num_init_features=64)
        return cast(nn.Module, module)


@dataclass(frozen=True)
class Timm(_Classifier):
    """A network of timm by name.

    Args:
        options: of timm's constructor, in place of its defaults.
    """

    name: str
    options: Mapping[str, Any] = field(default_factory=dict)

    def network(self, attention: Attention) -> nn.Module:
        return timm.create(self.name, attention, scriptable=True, **self.options)  # scriptable as upstream


@dataclass(frozen=True)
class GroupNormResnet(_Classifier):
    """ResNet-18 with group norms (He et al. 2016; Wu & He 2018), as private training needs it (Abadi et al. 2016).

    A batch norm would mix the samples of a batch. The step is the plain one; gradients per sample are not taken.

    Args:
        groups: at most, in each norm.
    """

    groups: int = 32

    def network(self, attention: Attention) -> nn.Module:
        return cast(nn.Module, torchvision.models.resnet18(weights=None, norm_layer=_group_norm(self.groups)))


def _group_norm(groups: int) -> Callable[[int], nn.Module]:
    return lambda channels: nn.GroupNorm(min(groups, channels), channels)
