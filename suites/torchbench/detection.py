"""Networks that find things: Mask R-CNN of torchvision, EfficientDet of effdet. Random weights, nothing downloaded.

What they put out are choices: the best of many boxes, those that no better one covers. With random weights and noise to
look at, candidates lie so close that rounding chooses; so images have areas of colour, and scores are spread apart.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn.functional import interpolate
from torchvision.models.detection import MaskRCNN
from torchvision.models.detection.backbone_utils import resnet_fpn_backbone
from torchvision.models.resnet import Bottleneck
from torchvision.ops import FrozenBatchNorm2d

from suites import inputs
from suites.shorten import shorten
from suites.spec import Attention, Mode
from suites.torchbench.recipe import Ask, Call, Recipe

OBJECTS = 8
"""In each image: COCO has 7.7 on average (Lin et al. 2014)."""

CLASSES = 90
"""Of COCO's numbers, the background apart; some are never used."""

GAINS = {
    "rpn.head.conv.0.0": math.sqrt(2),  # a rectifier halves the variance
    "rpn.head.cls_logits": 10,
    "rpn.head.bbox_pred": 1,
    "roi_heads.box_head.fc6": math.sqrt(2),
    "roi_heads.box_head.fc7": math.sqrt(2),
    "roi_heads.box_predictor.cls_score": 12,
}
"""Layer of Mask R-CNN -> by how much its weights multiply the size, the RMS, of what comes in. Measured with images of
96 by 128: logits of objectness deviate by 0.5 to 3.6, those of classes by 2.7, and what is found scores 0.6 to 0.99."""


def areas(size: Sequence[int], seed: int) -> Tensor:
    """Return an image `(3, height, width)` in [0, 1]: areas of nine by nine random colours.

    With edges: where colours are blended, norms divide by less, and rounding grows about seven times as large
    (EfficientDet's logits against float64).
    """
    colours = torch.rand((1, 3, 9, 9), generator=inputs.stream(seed, "areas"))
    return interpolate(colours, size=tuple(size), mode="nearest")[0]


def boxes(size: Sequence[int], seed: int) -> Tensor:
    """Return boxes `(objects, 4)` as left, top, right, bottom: in whole pixels, a tenth to a half of each side."""
    sides = torch.tensor([size[1], size[0]])
    draws = torch.rand((2, OBJECTS, 2), generator=inputs.stream(seed, "boxes"))
    extent = ((0.1 + 0.4 * draws[0]) * sides).ceil()
    start = (draws[1] * (sides - extent)).floor()
    return torch.cat([start, start + extent], dim=1)


@dataclass(frozen=True)
class MaskRcnn(Recipe):
    """Mask R-CNN (He et al. 2017) on a ResNet-50 with a feature pyramid, built as torchvision does for published
    weights: norms frozen, three stages of the backbone trainable. The loss is the sum of the model's own five.

    Args:
        sizes: heights and widths of the images, in turn.
        min_size: what the network scales the shorter side to.
        proposals: of each image in inference, at most; in training, twice as many.
        samples: of the proposals of an image, this many are learned from.
        detections: of each image, at most.
        backbone_repeats: of equal blocks in a row of the backbone, this many are kept; None: all.
    """

    sizes: Sequence[Sequence[int]] = ((427, 640), (640, 443), (640, 459), (480, 512))
    min_size: int = 800
    proposals: int = 1000
    samples: int = 512
    detections: int = 100
    backbone_repeats: int | None = None

    def network(self, attention: Attention) -> nn.Module:
        backbone = resnet_fpn_backbone(
            backbone_name="resnet50", weights=None, norm_layer=FrozenBatchNorm2d, trainable_layers=3
        )
        if self.backbone_repeats is not None:
            shorten(backbone.body, self.backbone_repeats)
        module = MaskRCNN(
            backbone,
            CLASSES + 1,
            min_size=self.min_size,
            rpn_pre_nms_top_n_train=2 * self.proposals,
            rpn_pre_nms_top_n_test=self.proposals,
            rpn_post_nms_top_n_train=2 * self.proposals,
            rpn_post_nms_top_n_test=self.proposals,
            box_batch_size_per_image=self.samples,
            box_detections_per_img=self.detections,
        )
        return _steady(module)

    def call(self, ask: Ask) -> Call:
        """Return a list of images `(3, height, width)` and, in training, a list of what is in them."""
        sizes = [self.sizes[place % len(self.sizes)] for place in range(ask.batch_size)]
        images = [areas(size, ask.seed + place) for place, size in enumerate(sizes)]
        if ask.mode == Mode.INFERENCE:
            return Call((images,))
        targets = [self._target(size, ask.seed + place) for place, size in enumerate(sizes)]

        def loss(output: Mapping[str, Tensor]) -> Tensor:
            return torch.stack(list(output.values())).sum() / ask.loss_scale

        return Call((images, targets), loss=loss)

    def _target(self, size: Sequence[int], seed: int) -> dict[str, Tensor]:
        """Return `boxes`, their `labels` and `masks`, `(objects, height, width)`: each box, filled."""
        found = boxes(size, seed)
        left, top, right, bottom = found[:, :, None, None].unbind(1)
        row, column = torch.arange(size[0])[:, None], torch.arange(size[1])
        masks = (left <= column) & (column < right) & (top <= row) & (row < bottom)
        labels = inputs.targets(OBJECTS, CLASSES, seed) + 1  # 0 is the background
        return {"boxes": found, "labels": labels, "masks": masks.to(torch.uint8)}


def _steady(module: nn.Module) -> nn.Module:
    """Set what training would have set, in place, and return the module. As torchvision initialises it

    - frozen norms change nothing, and activations grow a thousandfold: the last norm of each branch gets a gain;
    - no class reaches the score at which something is detected, and objectness, once a probability, differs by little
      more than float32 can tell: the layers of `GAINS` get larger weights.
    """
    blocks = [each for each in module.modules() if isinstance(each, Bottleneck)]
    for block in blocks:
        nn.init.constant_(block.bn3.weight, 1 / math.sqrt(len(blocks)))
    for name, gain in GAINS.items():
        weight = module.get_submodule(name).get_parameter("weight")
        nn.init.normal_(weight, std=gain / math.sqrt(weight[0].numel()))
    classes = module.get_submodule("roi_heads.box_predictor.cls_score").get_parameter("weight")
    with torch.no_grad():  # features are positive: what is common to all of them would make one class of everything
        classes.sub_(classes.mean(1, keepdim=True))
    return module


@dataclass(frozen=True)
class EfficientDet(Recipe):
    """EfficientDet-D1 (Tan et al. 2020) of the package effdet, in the extra [effdet].

    In inference it gives the best boxes of each image, in training the package's loss, focal and Huber. Which anchor
    stands for which object is found once and given as an argument.

    Args:
        image_size: height and width, a multiple of 128.
        cells: of the feature pyramid.
        layers: of either head, before the last.
        backbone_repeats: of equal blocks in a row of the backbone, this many are kept; None: all.
    """

    CALIBRATION_BATCH: ClassVar[int] = 8

    image_size: int = 640
    cells: int = 4
    layers: int = 3
    backbone_repeats: int | None = None

    def network(self, attention: Attention) -> nn.Module:
        from effdet import EfficientDet as Network  # here: Mask R-CNN runs without the package

        network = Network(self._config(), pretrained_backbone=False)
        if self.backbone_repeats is not None:
            shorten(network.backbone, self.backbone_repeats)
        with torch.no_grad():  # as built, logits reach 14, and float32 cannot tell the scores of the best boxes apart
            network.class_net.predict.conv_pw.weight.mul_(0.5)
        return Detector(network)

    def call(self, ask: Ask) -> Call:
        """Return images `(batch, 3, size, size)` and their scales and sizes, or the labels of all anchors."""
        size = (self.image_size, self.image_size)
        images = torch.stack([areas(size, ask.seed + place) for place in range(ask.batch_size)])
        images = (images - 0.5) / 0.25
        if ask.mode == Mode.INFERENCE:
            about = {"img_scale": torch.ones(ask.batch_size), "img_size": torch.tensor([size] * ask.batch_size).float()}
            return Call((images, about))

        def loss(output: Mapping[str, Tensor]) -> Tensor:
            return output["loss"] / ask.loss_scale

        return Call((images, self._labels(ask)), loss=loss)

    def objects(self, batch_size: int, seed: int) -> tuple[list[Tensor], list[Tensor]]:
        """Return each image's boxes `(objects, 4)`, as top, left, bottom, right, and the classes of what is in them."""
        size, places = (self.image_size, self.image_size), range(batch_size)
        found = [boxes(size, seed + place)[:, [1, 0, 3, 2]] for place in places]
        return found, [inputs.targets(OBJECTS, CLASSES, seed + place) + 1 for place in places]

    def _labels(self, ask: Ask) -> dict[str, Tensor]:
        """Return for each level the class and the box of each anchor, `(batch, height, width, anchors)`."""
        from effdet.anchors import AnchorLabeler, Anchors

        labeler = AnchorLabeler(Anchors.from_config(self._config()), CLASSES)
        classes, offsets, positives = labeler.batch_label_anchors(*self.objects(ask.batch_size, ask.seed))
        named = {"label_cls": classes, "label_bbox": offsets}
        levels = {f"{name}_{level}": each for name, values in named.items() for level, each in enumerate(values)}
        return {**levels, "label_num_positives": positives}

    def _config(self) -> Any:
        from effdet import get_efficientdet_config

        config = get_efficientdet_config("tf_efficientdet_d1")
        config.image_size = (self.image_size, self.image_size)
        config.fpn_cell_repeats, config.box_class_repeats = self.cells, self.layers
        return config


class Detector(nn.Module):
    """The two wrappers of effdet around one network: in train mode the one with the loss, else the one that finds."""

    def __init__(self, network: nn.Module) -> None:
        from effdet import DetBenchPredict, DetBenchTrain

        super().__init__()
        self.learning: Callable[..., dict[str, Tensor]] = DetBenchTrain(network, create_labeler=False)
        self.finding: Callable[..., Tensor] = DetBenchPredict(network)

    def forward(self, images: Tensor, about: dict[str, Tensor]) -> dict[str, Tensor] | Tensor:
        """Map images to three losses, or to boxes `(batch, 100, 6)`: left, top, right, bottom, score, class."""
        return self.learning(images, about) if self.training else self.finding(images, about)
