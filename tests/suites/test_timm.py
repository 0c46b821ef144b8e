"""Networks of timm: as listed, seeded, filled, nothing downloaded."""

from __future__ import annotations

import socket

import pytest
import timm as library
import torch

from benchmarks.sensitivity import as_built, measure
from harness import config
from suites import timm
from suites.registry import LoadError
from suites.spec import Mode, ModelSpec

SPECS = {spec.name: spec for spec in config.suite("timm").models}
SMALLEST = SPECS["lcnet_050"]


@pytest.fixture(autouse=True)
def no_network(monkeypatch):
    """Any attempt to reach another machine fails the test."""

    def refuse(*_, **__):
        raise AssertionError("something was about to be downloaded")

    for name in ("connect", "connect_ex"):
        monkeypatch.setattr(socket.socket, name, refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


@pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS)
def test_parameters_are_as_listed(spec):
    """The entry's count and sizes are those of the network."""
    with torch.device("meta"):
        network = library.create_model(spec.build_name, pretrained=False)

    assert spec.parameters == sum(each.numel() for each in network.parameters())
    assert spec.input_size == network.pretrained_cfg["input_size"]
    assert spec.eval_input_size == (network.pretrained_cfg.get("test_input_size") or spec.input_size)


def test_entries_are_ordered():
    """The suite's file names ten models, the smallest first; all have batch sizes for both modes."""
    counts = [spec.parameters for spec in SPECS.values()]

    assert 10 == len(counts)
    assert sorted(counts) == counts
    assert all(set(Mode) == set(spec.batch) for spec in SPECS.values())


@pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS)
def test_outputs_depend_on_inputs(spec):
    """In both modes outputs of two inputs lie a tenth of their size apart, and no activation exceeds 1e3."""
    module = timm.build(spec, Mode.INFERENCE, 2, seed=1337).module

    for mode in Mode:
        found = measure(module, mode, spec.input_size)

        assert found.relative >= 0.1
        assert found.apart >= 1e-2
        assert found.largest < 1e3


def test_as_built_some_are_deaf():
    """The measure sees what filling is for: as built, ghostnet says nearly the same whatever it sees."""
    assert measure(as_built(SPECS["ghostnet_100"]), Mode.INFERENCE, (3, 224, 224)).relative < 0.01


def test_same_seed_same_model():
    """Weights and inputs come from the seed alone; the global random generator does not move."""
    before = torch.get_rng_state()
    one, same = (timm.build(SMALLEST, Mode.TRAINING, 2, seed=7) for _ in range(2))
    other = timm.build(SMALLEST, Mode.TRAINING, 2, seed=8)

    state = one.module.state_dict()
    assert all(torch.equal(value, same.module.state_dict()[name]) for name, value in state.items())
    assert not torch.equal(state["conv_stem.weight"], other.module.state_dict()["conv_stem.weight"])
    assert torch.equal(one.args[0], same.args[0])
    assert one.loss(one.module.eval()(*one.args)) == same.loss(same.module.eval()(*same.args))
    assert torch.equal(before, torch.get_rng_state())


def test_size_follows_the_mode():
    """Training takes the train size, inference the test size; the weights are the same in both."""
    spec = SMALLEST.model_copy(update={"input_size": (3, 64, 64), "eval_input_size": (3, 96, 96)})
    training, inference = (timm.build(spec, mode, 3, seed=7) for mode in (Mode.TRAINING, Mode.INFERENCE))

    assert (3, 3, 64, 64) == training.args[0].shape
    assert (3, 3, 96, 96) == inference.args[0].shape
    assert all(
        torch.equal(value, inference.module.state_dict()[name]) for name, value in training.module.state_dict().items()
    )


def test_size_of_the_library():
    """Without sizes in the entry, those of timm are taken."""
    assert (1, 3, 224, 224) == timm.build(ModelSpec(name="lcnet_050"), Mode.TRAINING, None, seed=7).args[0].shape


def test_loss_is_scaled():
    """The loss is divided by the entry's scale; inference has none."""
    plain = timm.build(SMALLEST, Mode.TRAINING, 2, seed=7)
    scaled = timm.build(SMALLEST.model_copy(update={"loss_scale": 1000.0}), Mode.TRAINING, 2, seed=7)
    logits = torch.zeros(2, 1000)

    assert plain.loss(logits).item() / 1000 == pytest.approx(scaled.loss(logits).item())
    assert timm.build(SMALLEST, Mode.INFERENCE, 2, seed=7).loss is None


def test_entry_may_build_under_another_name():
    """`build` names the network that `name` meant when the list was made."""
    spec = ModelSpec(name="old_name", build="lcnet_050", input_size=(3, 64, 64))

    assert timm.build(spec, Mode.INFERENCE, 1, seed=7).module.num_classes == 1000


def test_unknown_model():
    """A model that timm does not know is named, with what is close."""
    with pytest.raises(LoadError, match=r'timm has no model "resnet50x"\. Close: .*resnet50'):
        timm.build(ModelSpec(name="resnet50x"), Mode.INFERENCE, 1, seed=7)
