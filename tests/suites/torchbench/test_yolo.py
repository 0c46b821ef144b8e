"""YOLOv3 computes what the original did: raw maps, and in inference the boxes that they stand for."""

from __future__ import annotations

import copy
import math

import pytest
import torch

from suites.spec import Attention, Mode
from suites.torchbench.recipe import Ask
from suites.torchbench.yolo import Scale, Yolo
from tests.suites import parity


@pytest.fixture(scope="module")
def detector():
    return parity.filled(Yolo().network(Attention.FUSED))


@torch.no_grad()
def test_outputs_are_those_of_the_original(detector):
    """Boxes and raw maps of the filled network are the original's."""
    boxes, maps = detector(parity.wave(1, 3, 96, 128))

    parity.assert_computes("yolov3", [boxes, *maps])


@torch.no_grad()
def test_training_gives_maps_alone(detector):
    """In training the output is a list of the raw maps."""
    maps = copy.deepcopy(detector).train()(parity.wave(2, 3, 32, 64))

    assert isinstance(maps, list)
    assert [(2, 3, 1, 2, 85), (2, 3, 2, 4, 85), (2, 3, 4, 8, 85)] == [tuple(each.shape) for each in maps]


@torch.no_grad()
def test_no_call_remembers_another(detector):
    """After a call of another size, and in a copy made then, an image gives what it gave at first."""
    image = parity.wave(1, 3, 64, 32)
    before, _ = detector(image)
    detector(parity.wave(1, 3, 32, 96))
    again, _ = detector(image)
    copied, _ = copy.deepcopy(detector)(image)

    assert torch.equal(before, again)
    assert torch.equal(before, copied)


def test_boxes():
    """A raw map of zeros stands for the anchors in the middle of each cell, with every chance a half."""
    boxes = Scale(8, ((10, 13), (16, 30), (33, 23)))(torch.zeros(1, 3, 2, 4, 6))

    assert [4, 4, 10, 13, 0.5, 0.5] == boxes[0, 0, 0, 0].tolist()
    assert [8 * 3 + 4, 8 + 4, 33, 23, 0.5, 0.5] == boxes[0, 2, 1, 3].tolist()


def test_boxes_leave_the_map_alone():
    """The raw map, which is put out as well, is not written to."""
    raw = parity.wave(1, 3, 2, 4, 6)
    Scale(8, ((10, 13), (16, 30), (33, 23)))(raw)

    assert torch.equal(parity.wave(1, 3, 2, 4, 6), raw)


def test_loss():
    """Of maps of zeros the loss is near 1 for the boxes, drawn normal, and log 2 for the rest."""
    loss = Yolo().call(Ask(Mode.TRAINING, 4, seed=0, size=(3, 128, 192))).loss
    maps = [torch.zeros(4, 3, 128 // stride, 192 // stride, 85) for stride in (32, 16, 8)]

    assert 1 + math.log(2) == pytest.approx(loss(maps).item(), rel=0.05)
