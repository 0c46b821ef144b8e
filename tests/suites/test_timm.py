"""Networks of timm: as listed, seeded, filled, nothing downloaded."""

from __future__ import annotations

import csv
import functools
import warnings
from pathlib import Path

import pytest
import timm as library
import torch
from timm.layers import config as config_of_layers

from benchmarks.sensitivity import as_built, measure
from harness import config
from suites import timm
from suites.registry import LoadError
from suites.spec import MODES, Attention, Mode, ModelSpec, Preset
from tests.suites.operators import Operators

pytestmark = pytest.mark.usefixtures("no_network")

SUITE = config.suite("timm")
SPECS = {spec.name: spec for spec in SUITE.models}
LISTED = (Path(__file__).parent.parent / "data" / "timm_models.csv").read_text().splitlines()
TABLE = {row["name"]: row for row in csv.DictReader(line for line in LISTED if not line.startswith("#"))}
SMALLEST = SPECS["lcnet_050"]


@functools.cache
def on_meta(name, attention=Attention.FUSED):
    """Return a network without memory behind its weights, built under the name that its entry gives."""
    config_of_layers.set_fused_attn(attention == Attention.FUSED)
    try:
        with torch.device("meta"), warnings.catch_warnings():
            warnings.simplefilter("error")  # a name that is no longer timm's own builds with a warning
            return library.create_model(SPECS[name].build_name, pretrained=False)
    finally:
        config_of_layers.set_fused_attn(True)


def size(text):
    return tuple(map(int, text.split("x")))


def test_the_list_is_the_published_one():
    """The suite has the 61 models of the published list, and no other."""
    assert 61 == len(TABLE)
    assert {*TABLE} == {*SPECS}


@pytest.mark.parametrize("row", TABLE.values(), ids=TABLE)
def test_entries_are_as_published(row):
    """Each entry has the table's name of today, batches, count and sizes; what is odd has a reason."""
    spec = SPECS[row["name"]]

    assert row["today"] == spec.build_name
    assert {mode: int(row["batch"]) for mode in MODES} == spec.batch
    assert int(row["accuracy_batch"]) == (spec.accuracy_batch or SUITE.accuracy_batch)
    assert int(row["parameters"]) == spec.parameters
    assert (size(row["input_size"]), size(row["eval_input_size"])) == (spec.input_size, spec.eval_input_size)
    assert spec.family
    assert ("skipped under 25 GiB" in row["special"]) == any(skip.device == "rtx3090" for skip in spec.skip)
    assert ("loss divided by 1000" in row["special"]) == ("no loss_scale" in (spec.why or ""))
    if spec.build or spec.accuracy_batch or spec.tolerance or spec.loss_scale != 1:
        assert spec.why


@pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS)
def test_networks_are_as_listed(spec):
    """Each network builds without a warning, on the meta device, with the entry's count and timm's own sizes."""
    network = on_meta(spec.name)

    assert all(each.is_meta for each in network.parameters())
    assert spec.parameters == sum(each.numel() for each in network.parameters())
    assert spec.input_size == network.pretrained_cfg["input_size"]
    assert spec.eval_input_size == (network.pretrained_cfg.get("test_input_size") or spec.input_size)


@pytest.mark.parametrize("row", TABLE.values(), ids=TABLE)
def test_fused_attention(row):
    """As many blocks as the table says have fused attention by default, none where eager attention is asked for."""

    def fused(attention):
        blocks = on_meta(row["name"], attention).modules()
        return sum(bool(getattr(each, "fused_attn", False)) for each in blocks)

    assert int(row["fused"]) == fused(Attention.FUSED)
    assert 0 == fused(Attention.EAGER)


def test_entries_are_ordered():
    """The suite's file names the smallest first."""
    counts = [spec.parameters for spec in SPECS.values()]

    assert sorted(counts) == counts


# The ten smallest, and five of other kinds that take a few seconds: convolutions with attention, two branches of
# attention, products alone, factorised attention, no norms.
AFFORDABLE = [*[*SPECS][:10], "mobilevit_s", "crossvit_9_240", "resmlp_12_224", "coat_lite_mini", "nfnet_l0"]


@pytest.mark.parametrize("name", AFFORDABLE)
def test_outputs_depend_on_inputs(name):
    """In both modes outputs of two inputs lie a tenth of their size apart, and no activation exceeds 1e3."""
    spec = SPECS[name]
    module = timm.build(spec, Mode.INFERENCE, 2, seed=1337).module

    for mode in MODES:
        found = measure(module, mode, spec.input_size)

        assert found.relative >= 0.1
        assert found.apart >= 1e-2
        assert found.largest < 1e3


@pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS)
def test_small_presets(spec):
    """Each model has a small preset, of no more parameters or pixels, and a step of training reaches all of it."""
    small = spec.at(Preset.SMALL)
    workload = timm.build(small, Mode.TRAINING, small.batch[Mode.TRAINING], seed=1337)
    module = workload.module.train()

    logits = module(*workload.args)
    workload.loss(logits).backward()

    parameters = list(module.parameters())
    assert (2, 1000) == logits.shape
    assert sum(each.numel() for each in parameters) <= spec.parameters
    assert small.input_size[1] <= spec.input_size[1]
    assert small.input_size == small.eval_input_size
    assert all(each.grad.isfinite().all() for each in parameters)
    assert any(each.grad.any() for each in parameters)


@pytest.mark.parametrize(
    ("name", "kinds"),
    [
        ("swin_base_patch4_window7_224", 2),  # windows as they are, and shifted ones
        ("convit_base", 2),  # attention with and without a notion of place
        ("cait_m36_384", 2),  # attention of patches, and of the class alone
    ],
)
def test_small_presets_keep_both_kinds(name, kinds):
    """Where blocks of two kinds alternate or follow each other, both are there in the small preset."""
    network = timm.network(SPECS[name].at(Preset.SMALL))
    blocks = [each for each in network.modules() if hasattr(each, "attn")]

    assert kinds == len({(type(each), type(each.attn), getattr(each, "attn_mask", None) is None) for each in blocks})


def forward(name, attention):
    """Return the state, the output and the fused attention operators of one forward pass of a small network."""
    workload = timm.build(ModelSpec(name=name), Mode.INFERENCE, 1, seed=7, attention=attention)
    with torch.no_grad(), Operators() as operators:
        output = workload.module.eval()(*workload.args)
    return workload.module.state_dict(), output, {each for each in operators.names if "attention" in each}


def test_eager_attention_is_spelled_out():
    """Eager attention runs no fused operator, fused attention does; weights are the same, outputs nearly."""
    state, fused, kernels = forward("vit_tiny_patch16_224", Attention.FUSED)
    same, eager, none = forward("vit_tiny_patch16_224", Attention.EAGER)

    assert any("scaled_dot_product" in each for each in kernels)
    assert set() == none
    assert all(torch.equal(value, same[name]) for name, value in state.items())
    torch.testing.assert_close(eager, fused, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["swin_tiny_patch4_window7_224", "visformer_tiny"])
def test_attention_that_is_always_spelled_out(name):
    """Families whose fused attention is on trial in timm run none either way, as their entries say."""
    _, one, kernels = forward(name, Attention.FUSED)
    _, other, none = forward(name, Attention.EAGER)

    assert set() == kernels == none
    assert torch.equal(one, other)


def test_attention_does_not_stay():
    """The choice is the library's switch for the whole process; each build sets it anew."""
    forward("vit_tiny_patch16_224", Attention.EAGER)

    assert forward("vit_tiny_patch16_224", Attention.FUSED)[2]


def test_library_without_a_choice_of_attention(monkeypatch):
    """Where timm has no such switch, its own attention runs, and another cannot be had."""
    monkeypatch.delattr(config_of_layers, "set_fused_attn")

    assert timm.build(SMALLEST, Mode.INFERENCE, 1, seed=7)
    with pytest.raises(LoadError, match=r"timm .* has no switch for its attention\. Install timm 1\.0\.30"):
        timm.build(SMALLEST, Mode.INFERENCE, 1, seed=7, attention=Attention.EAGER)


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
