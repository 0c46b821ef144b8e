"""Detectors: their choices are steady, and what they are asked to learn is in the picture."""

from __future__ import annotations

import copy

import pytest
import torch

from harness import config
from suites.spec import MODES, Mode, Preset
from suites.torchbench import build
from suites.torchbench.detection import OBJECTS
from tests.suites import parity

SPECS = {spec.name: spec for spec in config.suite("torchbench").models}
NAMES = ["vision_maskrcnn", "timm_efficientdet"]


def workload(name, mode):
    return build.build(SPECS[name].at(Preset.SMALL), mode, 2, seed=1337)


def found(module, args):
    """Return the detections of one image after another: scores, labels and boxes."""
    with torch.no_grad():
        output = module.eval()(*args)
    if isinstance(output, torch.Tensor):
        return [(each[:, 4], each[:, 5], each[:, :4]) for each in output]
    return [(each["scores"], each["labels"], each["boxes"]) for each in output]


def seeded(module, *args):
    """Call a module that draws random numbers: which proposals to learn from, which branches to leave out."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return module(*args)


@pytest.mark.parametrize("name", NAMES)
def test_detections_are_steady(name):
    """Things of several kinds are found; weights that differ by rounding find the same ones, in the same order."""
    built = workload(name, Mode.INFERENCE)
    shaken = copy.deepcopy(built.module)
    with torch.no_grad():
        for place, each in enumerate(shaken.parameters()):
            each.mul_(1 + (-1) ** place * 1e-7)

    before, after = found(built.module, built.args), found(shaken, built.args)

    assert 2 == len(before)
    assert len(torch.cat([labels for _, labels, _ in before]).unique()) > 1
    for (scores, labels, boxes), (others, same, near) in zip(before, after, strict=True):
        assert len(scores) >= 8
        assert len(scores.unique()) == len(scores)
        assert torch.equal(labels, same)
        torch.testing.assert_close(scores, others, rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(boxes, near, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("name", NAMES)
def test_weights_are_the_same_in_both_modes(name):
    """Weights, frozen statistics and anchors do not depend on the mode."""
    inference, training = (workload(name, mode).module.state_dict() for mode in MODES)

    assert all(torch.equal(value, training[key]) for key, value in inference.items())


def test_mask_rcnn_is_partly_frozen():
    """Norms and the first two stages of the backbone take no gradient, as with published weights."""
    with torch.device("meta"):
        network = build.network(SPECS["vision_maskrcnn"])

    assert 44178993 == sum(each.numel() for each in network.parameters() if each.requires_grad)


def test_mask_rcnn_images():
    """The full preset has images of the four sizes, one after the other."""
    recipe = build.recipe_of(SPECS["vision_maskrcnn"])
    images = recipe.call(build._ask(SPECS["vision_maskrcnn"], Mode.INFERENCE, 5, 7, Mode.INFERENCE)).args[0]

    assert [(3, 427, 640), (3, 640, 443), (3, 640, 459), (3, 480, 512), (3, 427, 640)] == [
        each.shape for each in images
    ]
    assert all(each.min() >= 0 and each.max() <= 1 for each in images)
    assert not torch.equal(images[0], images[4])


def test_mask_rcnn_targets():
    """Each image has eight objects: boxes inside of it, masks that fill them, labels but that of the background."""
    images, targets = workload("vision_maskrcnn", Mode.TRAINING).args

    for image, target in zip(images, targets, strict=True):
        left, top, right, bottom = target["boxes"].unbind(1)
        assert (OBJECTS, *image.shape[1:]) == target["masks"].shape
        assert torch.stack([left, top]).min() >= 0
        assert (right <= image.shape[2]).all()
        assert (bottom <= image.shape[1]).all()
        assert torch.equal((right - left) * (bottom - top), target["masks"].sum((1, 2)).float())
        assert 1 <= target["labels"].min() <= target["labels"].max() <= 90


def test_mask_rcnn_losses():
    """Training gives five losses, and their sum is what is walked back from: all that is trained gets a gradient."""
    built = workload("vision_maskrcnn", Mode.TRAINING)
    module = built.module.train()

    losses = seeded(module, *built.args)
    built.loss(losses).backward()

    assert {"loss_classifier", "loss_box_reg", "loss_mask", "loss_objectness", "loss_rpn_box_reg"} == {*losses}
    assert all(0 < each < 100 for each in losses.values())
    assert built.loss(losses).item() == pytest.approx(sum(each.item() for each in losses.values()), rel=1e-5)
    assert all(each.grad.any() for each in module.parameters() if each.requires_grad)


def test_efficientdet_computes_what_the_original_did():
    """With the same weights the maps of classes and boxes, at five scales, are the recorded ones."""
    network = build.network(SPECS["timm_efficientdet"]).finding.model
    parity.filled(network, lambda module, name: parity.is_gain(module, name) or name == "edge_weights")

    with torch.no_grad():
        classes, boxes = network(parity.wave(1, 3, 640, 640))

    parity.assert_computes("timm_efficientdet", [*classes, *boxes])


def test_efficientdet_anchors_are_labelled_beforehand():
    """Labels that come as arguments give the loss that the package finds from boxes and classes."""
    from effdet import DetBenchTrain

    built = workload("timm_efficientdet", Mode.TRAINING)
    recipe = build.recipe_of(SPECS["timm_efficientdet"].at(Preset.SMALL))
    images, labels = built.args
    boxes, classes = recipe.objects(2, 1337)

    labelling = DetBenchTrain(built.module.learning.model, create_labeler=True)
    own, theirs = (
        seeded(module.train(), images, about)
        for module, about in ((built.module, labels), (labelling, {"bbox": boxes, "cls": classes}))
    )

    assert {"loss", "class_loss", "box_loss"} == {*own}
    assert all(own[key].item() == pytest.approx(theirs[key].item()) for key in own)
    assert built.loss(own) == own["loss"]
    assert (labels["label_num_positives"] >= OBJECTS).all()
