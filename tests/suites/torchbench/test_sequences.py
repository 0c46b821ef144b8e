"""Seven networks over words, frames and samples: what holds of each of them, in the small preset."""

from __future__ import annotations

import pytest
import torch

from harness import config
from harness.worker.leaves import tensors
from suites.spec import MODES, Mode, Preset
from suites.torchbench.build import build

NAMES = (
    "pytorch_struct",
    "tts_angular",
    "tacotron2",
    "speech_transformer",
    "attention_is_all_you_need_pytorch",
    "BERT_pytorch",
    "demucs",
)
SPECS = {spec.name: spec for spec in config.suite("torchbench").models if spec.name in NAMES}
SMALL = {name: spec.at(Preset.SMALL) for name, spec in SPECS.items()}


@pytest.mark.parametrize("name", NAMES)
def test_outputs_depend_on_inputs(name):
    """The outputs for arguments of two seeds lie a twentieth of their size apart; no activation exceeds 1e3."""
    workload, other = (build(SMALL[name], Mode.INFERENCE, 2, seed) for seed in (0, 1))
    largest = []
    for each in workload.module.modules():
        each.register_forward_hook(lambda _, __, output: largest.extend(tensors(output)))

    with torch.no_grad():
        one, two = (tensors(workload.module.eval()(*each.args))[0] for each in (workload, other))

    assert (one - two).square().mean().sqrt() >= 0.05 * torch.stack([one, two]).square().mean().sqrt()
    assert max(each[each != 1000].abs().max() for each in largest) < 1e3  # 1000 says in tacotron2: after the end


@pytest.mark.parametrize("name", NAMES)
def test_every_parameter_learns(name):
    """The loss is a finite scalar, divided by the entry's scale, and every parameter gets a gradient from it."""
    workload = build(SMALL[name], Mode.TRAINING, 2, seed=0)
    scaled = build(SMALL[name].model_copy(update={"loss_scale": 10.0}), Mode.TRAINING, 2, seed=0)
    output = workload.module.train()(*workload.args)

    loss = workload.loss(output) if workload.loss else sum(each.mean() for each in output)
    loss.backward()

    assert loss.isfinite()
    assert all(each.grad.any() for each in workload.module.parameters())
    if workload.loss is not None:
        assert loss.item() / 10 == pytest.approx(scaled.loss(output).item())


@pytest.mark.parametrize("name", NAMES)
def test_seed_decides(name):
    """Weights come from the seed alone, arguments from seed and batch size; inference has no loss."""
    one, same, larger = (build(SMALL[name], Mode.TRAINING, batch, seed=7) for batch in (2, 2, 3))
    inference = build(SMALL[name], Mode.INFERENCE, 3, seed=7)
    other = build(SMALL[name], Mode.TRAINING, 2, seed=8)

    for each in (larger, inference):
        pairs = zip(one.module.state_dict().values(), each.module.state_dict().values(), strict=True)
        assert all(torch.equal(a, b) for a, b in pairs)
    first, again, three, different = (tensors(each.args)[0] for each in (one, same, larger, other))
    assert torch.equal(first, again)
    assert not torch.equal(first, different)
    assert (2, 3) == (len(first), len(three))
    assert inference.loss is None


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", NAMES)
def test_batch_of_one(name, mode):
    """One sentence, utterance or song is enough in both modes."""
    workload = build(SMALL[name], mode, 1, seed=0)

    with torch.no_grad():
        output = workload.module.train(mode == Mode.TRAINING)(*workload.args)

    assert all(each.isfinite().all() for each in tensors(output))
