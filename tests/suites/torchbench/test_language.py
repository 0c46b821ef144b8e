"""The networks over text of TorchBench: as measured on the originals, or as their configurations say."""

from __future__ import annotations

import pytest
import torch

from harness import config
from harness.worker.dropout import lower_dropouts
from suites import inputs
from suites.registry import LoadError
from suites.spec import MODES, Attention, Mode, Preset
from suites.torchbench import build
from suites.torchbench.language import END, FIRST_PIECE, PADDING, START, UNKNOWN, WordPieces
from tests.suites import parity

pytestmark = pytest.mark.usefixtures("no_network")

SPECS = {
    spec.name: spec for spec in config.suite("torchbench").models if spec.build_name.partition(":")[0] == "language"
}
SMALL = {name: spec.at(Preset.SMALL) for name, spec in SPECS.items()}


def test_all_are_here():
    """Twelve networks of transformers, and one over words."""
    assert {name for name in parity.TABLE if name.startswith(("hf_", "fastNLP"))} == {*SPECS}


@pytest.mark.parametrize("name", SPECS)
def test_lengths_are_as_listed(name):
    """Each entry has the table's length of its mode."""
    sizes = [int(part.partition("]")[0].split(",")[1]) for part in parity.TABLE[name]["inputs"].split("[")[1:]]
    spec = SPECS[name]

    assert {spec.length[Mode.TRAINING], spec.length[Mode.INFERENCE]} == {*sizes}
    assert spec.length[Mode.TRAINING] == sizes[0]


@pytest.mark.parametrize("spec", SMALL.values(), ids=SMALL)
def test_small_presets(spec):
    """Each small preset runs in both modes; logits depend on tokens, activations stay small, weights are the seed's."""
    one, same, other = (
        build.build(spec, mode, 2, seed) for mode, seed in ((Mode.TRAINING, 7), (Mode.INFERENCE, 7), (Mode.TRAINING, 8))
    )
    state = same.module.state_dict()
    assert all(torch.equal(value, state[name]) for name, value in one.module.state_dict().items())

    lower_dropouts(one.module)
    for mode in MODES:
        one.module.train(mode == Mode.TRAINING)
        with torch.no_grad(), inputs.seeded(7):
            first, second = (scores(one.module(*each.args, **each.kwargs)) for each in (one, other))

        assert (first - second).square().mean().sqrt() >= 0.02 * first.square().mean().sqrt()
        assert first.abs().max() < 1e3

    loss = one.loss(one.module(*one.args, **one.kwargs))
    loss.backward()
    gradients = [each.grad for each in one.module.parameters() if each.grad is not None]

    assert same.loss is None
    assert all(each.isfinite().all() for each in gradients)
    assert sum(bool(each.any()) for each in gradients) > 10


def scores(output):
    return output["pred_start"] if "pred_start" in output else output["logits"]


@pytest.mark.parametrize("name", ["hf_GPT2", "hf_T5"])
def test_arguments_and_output(name):
    """A decoder behind an encoder gets tokens of its own; the output holds numbers and no cache."""
    workload = build.build(SMALL[name], Mode.INFERENCE, 2, seed=7)
    output = workload.module.eval()(**workload.kwargs)

    if name == "hf_T5":
        assert ["input_ids", "decoder_input_ids"] == [*workload.kwargs]
        assert not torch.equal(workload.kwargs["input_ids"], workload.kwargs["decoder_input_ids"])
        assert {"logits", "encoder_last_hidden_state"} == {*output}
    else:
        assert ["input_ids"] == [*workload.kwargs]
        assert {"logits"} == {*output}


def test_cross_entropy_of_tokens():
    """The loss of equal logits is the logarithm of the vocabulary."""
    workload = build.build(SMALL["hf_Bert"], Mode.TRAINING, 2, seed=7)
    output = type("Output", (), {"logits": torch.zeros(2, 32, 1000)})

    torch.testing.assert_close(workload.loss(output), torch.tensor(1000.0).log())


def test_hashing_repeats_itself():
    """Two training steps of the network with random hashing give the same gradients, whatever the generator's state."""
    workload = build.build(SMALL["hf_Reformer"], Mode.TRAINING, 2, seed=7)
    lower_dropouts(workload.module.train())
    gradients = []
    for _ in range(2):
        workload.module.zero_grad()
        workload.loss(workload.module(**workload.kwargs)).backward()
        gradients.append([each.grad.clone() for each in workload.module.parameters() if each.grad is not None])

    assert len(gradients[0]) > 10
    assert all(torch.equal(one, other) for one, other in zip(*gradients, strict=True))


@pytest.mark.parametrize("name", ["hf_BigBird", "hf_Longformer", "hf_Reformer"])
def test_small_presets_keep_their_attention(name):
    """Presets are long enough for the sparse attention of the full network: none falls back to that over everything."""
    workload = build.build(SMALL[name], Mode.INFERENCE, 1, seed=7)
    settings = workload.module.config
    length = workload.kwargs["input_ids"].shape[1]
    workload.module.eval()(**workload.kwargs)

    if name == "hf_BigBird":  # where a text is too short, the network changes its kind for good
        assert "block_sparse" == workload.module.bert.attention_type == workload.module.bert.encoder.attention_type
    elif name == "hf_Longformer":
        assert length > 2 * max(settings.attention_window)
    else:
        assert {"local", "lsh"} == {*settings.attn_layers}
        assert length > max(settings.local_attn_chunk_length, settings.lsh_attn_chunk_length)


def test_words_become_pieces():
    """Words of several pieces are taken apart, enclosed and padded; each word's first piece is found again."""
    layer = WordPieces(words=6, pieces=1000, longest=2)
    layer.lengths[:] = torch.tensor([1, 1, 2, 1, 2, 1])
    words = torch.tensor([[2, 3, 4], [5, PADDING, PADDING]])

    pieces, mask, first = layer(words)

    two, three, four, five = (FIRST_PIECE + 2 * word for word in (2, 3, 4, 5))
    assert [START, two, two + 1, three, four, four + 1, END] == pieces[0].tolist()
    assert [START, five, END, PADDING, PADDING, PADDING, PADDING] == pieces[1].tolist()
    assert [[1] * 7, [1, 1, 1, 0, 0, 0, 0]] == mask.tolist()
    assert [1, 3, 4] == first[0].tolist()
    assert 1 == first[1, 0]


def test_a_word_is_a_piece():
    """As in the original, 474 words are 476 pieces."""
    layer = WordPieces(words=2869, pieces=21128)
    pieces, mask, first = layer(torch.arange(2, 476)[None])

    assert (1, 476) == pieces.shape == mask.shape
    assert torch.equal(torch.arange(1, 475), first[0])
    assert 474 == pieces[0, 1:-1].unique().numel()


def test_words_are_dropped_in_training():
    """In training some words become the unknown one, in inference none; words are never padding or unknown before."""
    workload = build.build(SMALL["fastNLP_Bert"], Mode.TRAINING, 4, seed=7)
    seen = []
    workload.module.pieces.register_forward_pre_hook(lambda _, args: seen.append(args[0]))
    workload.module.word_dropout = 0.5
    for training in (True, False):
        with torch.no_grad():
            workload.module.train(training)(*workload.args)

    assert workload.args[0].min() > UNKNOWN
    dropped = (seen[0] == UNKNOWN).float().mean()
    assert 0.3 < dropped < 0.7
    assert torch.equal(seen[0][seen[0] != UNKNOWN], workload.args[0][seen[0] != UNKNOWN])
    assert torch.equal(seen[1], workload.args[0])


def test_attention_is_chosen():
    """Both recipes hand the choice of attention on, with equal weights."""
    for name in ("hf_Bert", "fastNLP_Bert"):
        fused, eager = (
            build.build(SMALL[name], Mode.INFERENCE, 1, 7, attention).module
            for attention in (Attention.FUSED, Attention.EAGER)
        )

        assert ("sdpa", "eager") == tuple(
            next(each for each in module.modules() if hasattr(each, "config")).config._attn_implementation
            for module in (fused, eager)
        )
        assert all(torch.equal(value, eager.state_dict()[key]) for key, value in fused.state_dict().items())


def test_text_needs_a_length():
    """An entry without a length is refused."""
    with pytest.raises(LoadError, match="needs a length for inference"):
        build.build(SMALL["hf_Bert"].model_copy(update={"length": {}}), Mode.INFERENCE, 1, seed=7)
