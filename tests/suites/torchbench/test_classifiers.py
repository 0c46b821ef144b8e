"""Image classifiers: what goes in and comes out, at both sizes."""

from __future__ import annotations

import pytest
import torch

from benchmarks.sensitivity import measure
from harness import config
from suites.spec import MODES, Attention, Mode, Preset
from suites.torchbench import build
from tests.suites import parity

SPECS = {spec.name: spec for spec in config.suite("torchbench").models if spec.build_name.startswith("classifiers:")}


@pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS)
def test_full_size(spec):
    """Each maps images of the published size to 1000 logits; told on meta, where nothing is computed."""
    row = parity.TABLE[spec.name]
    with torch.device("meta"):
        network = build.network(spec).eval()
        logits = network(torch.empty(2, *spec.input_size))

    assert f"3,{spec.input_size[1]},{spec.input_size[2]}]" in row["inputs"]
    assert (2, 1000) == logits.shape


@pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS)
def test_batches_are_as_published(spec):
    """Each has the batch sizes of the table, but for one that the upstream runner changed."""
    row = parity.TABLE[spec.name]
    training = 4 if spec.name == "densenet121" else int(row["train_batch_size"])

    assert {Mode.TRAINING: training, Mode.INFERENCE: int(row["eval_batch_size"])} == spec.batch


# The largest build in seconds, for their initial weights alone.
LIGHT = [name for name in SPECS if name not in ("alexnet", "vgg16")]


@pytest.mark.parametrize("name", LIGHT)
def test_small_preset(name):
    """The small preset runs forward and backward: every parameter gets a gradient, and activations stay small."""
    spec = SPECS[name].at(Preset.SMALL)
    workload = build.build(spec, Mode.TRAINING, spec.batch[Mode.TRAINING], seed=1337)
    module = workload.module.train()

    logits = module(*workload.args)
    workload.loss(logits).backward()

    assert (2, 1000) == logits.shape
    assert logits.abs().max() < 1e3
    assert all(each.grad.isfinite().all() and each.grad.any() for each in module.parameters())
    assert spec.input_size[1] <= 64
    assert sum(each.numel() for each in module.parameters()) <= SPECS[name].parameters


@pytest.mark.parametrize("name", ["squeezenet1_1", "mobilenet_v2", "densenet121", "timm_vision_transformer"])
def test_outputs_depend_on_inputs(name):
    """Outputs of two inputs lie a fiftieth of their size apart, in both modes: ten times what the check in reduced
    precision lets pass. SqueezeNet, a mean of noise without norms, shows least."""
    spec = SPECS[name].at(Preset.SMALL)
    module = build.build(spec, Mode.INFERENCE, 2, seed=1337).module

    for mode in MODES:
        found = measure(module, mode, spec.input_size)

        assert found.relative >= 0.02
        assert found.largest < 1e3


def test_group_norm_resnet_computes_what_the_original_did():
    """ResNet-18 with group norms gives the recorded outputs of the original."""
    network = parity.filled(build.network(SPECS["functorch_dp_cifar10"]))

    with torch.no_grad():
        parity.assert_computes("functorch_dp_cifar10", [network(parity.wave(2, 3, 32, 32))])


def test_attention_is_timms_switch():
    """A vision transformer is built with fused attention or with attention spelled out."""
    with torch.device("meta"):
        fused, eager = (build.network(SPECS["timm_vision_transformer"], attention) for attention in Attention)

    assert all(block.attn.fused_attn for block in fused.blocks)
    assert not any(block.attn.fused_attn for block in eager.blocks)
