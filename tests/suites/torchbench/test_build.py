"""Entries become recipes, recipes workloads; what cannot be built says why."""

from __future__ import annotations

import sys

import pytest
import torch

from harness import config
from suites import timm
from suites.registry import LoadError
from suites.spec import Mode, ModelSpec, Preset
from suites.torchbench import build
from tests.suites import parity

SPECS = {spec.name: spec for spec in config.suite("torchbench").models}
RESNET = SPECS["resnet18"]


def altered(**changes):
    return RESNET.model_copy(update=changes)


def test_the_list_is_the_published_one():
    """The suite has the 56 models of the published set, and no other."""
    assert 56 == len(SPECS)
    assert {*parity.TABLE} == {*SPECS}


@pytest.mark.parametrize("name", SPECS)
def test_shapes_are_those_of_the_original(name):
    """Each network has the parameters of the original, and of its entry, in as many tensors of the same shapes."""
    with torch.device("meta"):
        network = build.network(SPECS[name])

    row = parity.TABLE[name]
    found = parity.facts(network)
    assert (int(row["params"]), int(row["param_tensors"]), row["param_shape_digest"]) == found
    assert SPECS[name].parameters == found[0]


def test_weights_are_the_same_everywhere():
    """Weights and statistics depend on the seed, not on the mode or the batch size; no global generator moves."""
    before = torch.get_rng_state()
    spec = RESNET.at(Preset.SMALL)
    one = build.build(spec, Mode.INFERENCE, 1, seed=7).module.state_dict()
    same = build.build(spec, Mode.TRAINING, 3, seed=7).module.state_dict()
    other = build.build(spec, Mode.TRAINING, 3, seed=8).module.state_dict()

    assert all(torch.equal(value, same[name]) for name, value in one.items())
    assert not torch.equal(one["fc.weight"], other["fc.weight"])
    assert one["bn1.running_mean"].any()
    assert torch.equal(before, torch.get_rng_state())


def test_size_follows_the_mode():
    """Training takes the train size, inference the other one where there is one; only training has a loss."""
    spec = altered(input_size=(3, 32, 32), eval_input_size=(3, 48, 48), repeats=1)
    training, inference = (build.build(spec, mode, None, seed=7) for mode in (Mode.TRAINING, Mode.INFERENCE))

    assert ((1, 3, 32, 32), (1, 3, 48, 48)) == (training.args[0].shape, inference.args[0].shape)
    assert training.loss is not None
    assert inference.loss is None


def test_loss_is_scaled():
    """The loss is divided by the entry's scale."""
    spec = RESNET.at(Preset.SMALL)
    plain, scaled = (
        build.build(spec.model_copy(update={"loss_scale": scale}), Mode.TRAINING, 2, seed=7) for scale in (1.0, 8.0)
    )
    logits = torch.zeros(2, 1000)

    assert plain.loss(logits).item() / 8 == pytest.approx(scaled.loss(logits).item())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"build": "classifiers:Torchvison"}, 'there is no recipe "classifiers:Torchvison"'),
        ({"build": "clasifiers:Torchvision"}, 'there is no recipe "clasifiers:Torchvision"'),
        ({"build": "classifiers"}, 'there is no recipe "classifiers"'),
        ({"build": "classifiers:CLASSES"}, 'there is no recipe "classifiers:CLASSES"'),
        ({"arguments": {"nam": "resnet18"}}, 'has no argument "nam". It has: name'),
        ({"arguments": {}}, "missing 1 required positional argument: 'name'"),
        ({"arguments": {"name": "resnet19"}}, 'torchvision has no model "resnet19". Close: resnet18'),
        ({"build": "classifiers:Timm", "arguments": {"name": "vit_smal"}}, 'timm has no model "vit_smal"'),
        ({"input_size": None}, "needs an input_size"),
    ],
)
def test_entries_that_cannot_be_built(changes, message):
    """An entry that names no recipe, or what its recipe does not have, says so."""
    with pytest.raises(LoadError, match=message):
        build.build(altered(**changes), Mode.INFERENCE, 1, seed=7)


def test_missing_package(monkeypatch):
    """A model whose package is not installed names the extra to install; the others are built without it."""
    for package in ("effdet", "omegaconf", "pycocotools"):
        monkeypatch.setitem(sys.modules, package, None)

    with pytest.raises(LoadError, match=r"\"timm_efficientdet\" needs 'effdet', .* Install the extra \[effdet\]: pip"):
        build.build(SPECS["timm_efficientdet"], Mode.INFERENCE, 1, seed=7)
    with torch.device("meta"):
        assert build.network(SPECS["vision_maskrcnn"])


def test_missing_library(monkeypatch):
    """Where a library is not installed, its models name it and the extra that brings it."""
    monkeypatch.delitem(sys.modules, "suites.torchbench.classifiers", raising=False)
    monkeypatch.setitem(sys.modules, "torchvision", None)

    with pytest.raises(LoadError, match=r"\"resnet18\" needs 'torchvision', .* Install the extra \[run\]: pip"):
        build.recipe_of(RESNET)


def test_arguments_that_a_library_refuses():
    """An option that timm's constructor does not have is no traceback either."""
    spec = ModelSpec(name="vit", build="vit_tiny_patch16_224", arguments={"img_sise": 64})

    with pytest.raises(LoadError, match=r"vit_tiny_patch16_224\" cannot be built with .*img_sise"):
        timm.network(spec)
