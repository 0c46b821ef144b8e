"""What holds for every network over images: its shapes, its answers, its loss."""

from __future__ import annotations

import pytest
import torch
from torch.nn.functional import l1_loss

from harness import config
from harness.worker.leaves import tensors
from suites.losses import against
from suites.registry import LoadError
from suites.spec import Mode, Preset
from suites.torchbench.build import build, network, recipe_of
from suites.torchbench.images import Residual, answers, frame, labels, stills
from suites.torchbench.recipe import Ask
from tests.suites import parity

NAMES = (
    "dcgan",
    "LearningToPaint",
    "pytorch_stargan",
    "pytorch_CycleGAN_and_pix2pix",
    "pytorch_unet",
    "Background_Matting",
    "Super_SloMo",
    "yolov3",
)
SPECS = {spec.name: spec for spec in config.suite("torchbench").models if spec.name in NAMES}
SMALL = {name: SPECS[name].at(Preset.SMALL) for name in NAMES}


SHAPES = {
    "dcgan": ["1x1x1x1"],
    "LearningToPaint": ["1x65"],
    "pytorch_stargan": ["1x3x128x128"],
    "pytorch_CycleGAN_and_pix2pix": ["1x3x256x256"],
    "pytorch_unet": ["1x2x640x959"],
    "Background_Matting": ["1x1x512x512", "1x3x512x512"],
    "Super_SloMo": ["1x3x352x352", ""],
    "yolov3": ["1x12096x85", "1x3x12x16x85", "1x3x24x32x85", "1x3x48x64x85"],
}


@pytest.mark.parametrize("name", NAMES)
def test_full_size(name):
    """An image of the full size gives outputs of the original's shapes."""
    spec = SPECS[name]
    with torch.device("meta"):
        module = network(spec).eval()
    arguments = recipe_of(spec).call(Ask(Mode.INFERENCE, 1, 0, spec.input_size)).args
    outputs = tensors(module(*(each.to("meta") for each in arguments)))

    assert SHAPES[name] == ["x".join(map(str, each.shape)) for each in outputs]


@torch.no_grad()
@pytest.mark.parametrize("name", NAMES)
def test_outputs_depend_on_inputs(name):
    """What is put out for inputs of two seeds lies a twentieth of its size apart; no activation exceeds 1e4.

    A painter's strokes are half a constant, and a detector's boxes are in pixels: of others, a tenth and 1e3 hold. The
    loss that Super SloMo puts out is a mean over noise, as much for one seed as for another.
    """
    workload, other = (build(SMALL[name], Mode.INFERENCE, 2, seed) for seed in (0, 1))
    module = workload.module.eval()
    largest = []
    for each in module.modules():
        each.register_forward_hook(lambda *told: largest.extend(x.abs().max().item() for x in tensors(told[2])))
    pairs = zip(tensors(module(*workload.args)), tensors(module(*other.args)), strict=True)
    apart = [((one - two).norm() / torch.stack([one, two]).norm()).item() for one, two in pairs if one.ndim]

    assert min(apart) > (0.05 if name == "LearningToPaint" else 0.1)
    assert max(largest) < (1e4 if name == "yolov3" else 1e3)


@pytest.mark.parametrize("name", NAMES)
def test_training_reaches_what_takes_part(name):
    """The loss is finite and gives a gradient to every parameter but those whose outputs are not used."""
    workload = build(SMALL[name], Mode.TRAINING, 2, seed=0)
    module = workload.module.train()
    workload.loss(module(*workload.args)).backward()
    unreached = {path.split(".")[0] for path, each in module.named_parameters() if each.grad is None}

    assert {"Background_Matting": {"motion"}, "Super_SloMo": {"look"}}.get(name, set()) == unreached
    assert all(each.grad.isfinite().all() for each in module.parameters() if each.grad is not None)


def test_loss_is_as_measured():
    """A loss is what the measure says of output and answer, over the scale, and in float32 at least."""
    answer, output = torch.tensor([0.0, 1.0]), torch.tensor([0.5, 2.0])
    loss = against(answer, l1_loss, scale=3)

    assert 0.25 == loss(output).item()
    assert torch.float32 == loss(output.bfloat16()).dtype
    assert torch.float64 == loss(output.double()).dtype


def test_arguments():
    """Images are apart in memory, answers lie between 0 and 1, labels are either; another seed gives others."""
    ask, other = (Ask(Mode.TRAINING, 2, seed, size=(3, 4, 6)) for seed in (0, 1))
    one, two = stills(ask, 3, 1)

    assert ((2, 3, 4, 6), (2, 1, 4, 6)) == (one.shape, two.shape)
    assert one.is_contiguous()
    assert two.is_contiguous()
    assert 0 <= answers(ask, 8).min() < answers(ask, 8).max() <= 1
    assert {0, 1} == {*labels(ask, 8).flatten().tolist()}
    assert not torch.equal(one, stills(other, 3, 1)[0])
    assert not torch.equal(answers(ask, 8), answers(other, 8))


@pytest.mark.parametrize("size", [None, (64, 64)])
def test_entry_without_a_size(size):
    """An entry whose images have no size is told what it lacks."""
    with pytest.raises(LoadError, match=r"input_size = \[channels, height, width\]"):
        frame(Ask(Mode.INFERENCE, 1, 0, size))


def test_residual_of_nothing():
    """A residual block without layers doubles its input."""
    assert torch.equal(2 * parity.wave(3), Residual()(parity.wave(3)))
