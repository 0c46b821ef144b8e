"""Text networks of transformers: as listed, seeded, nothing looked up or downloaded."""

from __future__ import annotations

import csv
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch.nn.functional import cross_entropy

from harness import config
from harness.worker.dropout import lower_dropouts
from harness.worker.leaves import flatten
from suites import huggingface, inputs
from suites.huggingface import Task
from suites.registry import LoadError
from suites.spec import MODES, Attention, Mode, Precision, Preset
from tests.suites.operators import Operators

pytestmark = pytest.mark.usefixtures("no_network")

SUITE = config.suite("huggingface")
SPECS = {spec.name: spec for spec in SUITE.models}
LISTED = (Path(__file__).parent.parent / "data" / "huggingface_models.csv").read_text().splitlines()
TABLE = {row["name"]: row for row in csv.DictReader(LISTED)}
SMALL = {name: spec.at(Preset.SMALL) for name, spec in SPECS.items()}
SMALLEST = SMALL["ElectraForCausalLM"]
SUBSTITUTE = "Speech2Text2ForCausalLM"
TASKS = {
    "masked language modelling": Task.MASKED,
    "causal language modelling": Task.CAUSAL,
    "seq2seq language modelling": Task.SEQ2SEQ,
    "span question answering": Task.ANSWERING,
    "sequence classification (2 labels)": Task.CLASSIFYING,
}


def on_meta(name, attention=Attention.FUSED):
    """Return a network without memory behind its weights."""
    with torch.device("meta"):
        return huggingface.network(SPECS[name], attention)


def values(text):
    """Return the pairs of a table's cell, up to the bar; those that the library says otherwise today are left out."""
    pairs = dict(pair.split("=") for pair in text.partition("|")[0].split())
    return {name: value for name, value in pairs.items() if name not in ("tie_word_embeddings", "n_positions")}


def test_the_list_is_the_published_one():
    """The suite has the 46 models of the published list, and no other; those left out have their reason."""
    assert 46 == len(TABLE)
    assert {*TABLE} == {*SPECS}
    assert SUITE.published
    assert 7 == len(SUITE.outside)
    assert not {*SUITE.outside} & {*SPECS}


@pytest.mark.parametrize("row", TABLE.values(), ids=TABLE)
def test_entries_are_as_published(row):
    """Each entry has the table's class of today, batch, length and task; what is odd has a reason."""
    spec = SPECS[row["name"]]

    assert (row["today_class"] if row["name"] != SUBSTITUTE else "TrOCRForCausalLM") == spec.build_name
    assert dict.fromkeys(MODES, int(row["batch_size"])) == spec.batch
    assert 1 == (spec.accuracy_batch or SUITE.accuracy_batch)
    assert dict.fromkeys(MODES, int(row["seq_len"])) == spec.length
    assert TASKS[row["task"]] == spec.task
    assert spec.family
    if spec.build or spec.skip or row["builds_today"] != "yes":
        assert spec.why


@pytest.mark.parametrize("row", TABLE.values(), ids=TABLE)
def test_networks_are_as_listed(row):
    """Each network builds on the meta device, with the table's configuration and count of parameters."""
    module = on_meta(row["name"])
    count = sum(each.numel() for each in module.parameters())

    assert all(each.is_meta for each in module.parameters())
    assert SPECS[row["name"]].parameters == count
    if row["name"] == SUBSTITUTE:
        frozen_sines = 262656
        assert int(row["params"]) - frozen_sines == count
        return
    assert int(row["params"]) == count
    expected = values(row["config_values"])
    set_by_hand = row["config_values"].partition("|")[2]
    if "pad/bos/eos" in set_by_hand:
        del expected["pad_token_id"]
        pad, bos, eos, *_ = map(int, set_by_hand.rpartition("=")[2].split("/"))
        assert (pad, bos, eos) == (module.config.pad_token_id, module.config.bos_token_id, module.config.eos_token_id)
    assert expected == {name: str(getattr(module.config, name)) for name in expected}


@pytest.mark.parametrize("row", TABLE.values(), ids=TABLE)
def test_attention_of_the_configuration(row):
    """Fused attention is what the library takes by default, as the table says; eager attention is spelled out."""
    assert "eager" == on_meta(row["name"], Attention.EAGER).config._attn_implementation
    if row["name"] != SUBSTITUTE:
        assert row["default_attention_5_24"] == on_meta(row["name"]).config._attn_implementation


def test_entries_are_ordered():
    """The suite's file names the smallest first."""
    counts = [spec.parameters for spec in SPECS.values()]

    assert sorted(counts) == counts


@pytest.mark.parametrize("row", TABLE.values(), ids=TABLE)
def test_inputs_are_as_listed(row):
    """Tokens and labels are those of the table, the same in both modes; a decoder's tokens are the encoder's."""
    spec = SMALL[row["name"]]
    training, inference = (huggingface.build(spec, mode, 3, seed=7) for mode in MODES)
    given, listed = training.kwargs, row["inputs"]
    tokens = given["input_ids"]
    length = spec.length[Mode.TRAINING]
    per_text = "start_positions" in listed or "labels[B] all 0" in listed
    labels = [tensor for name, tensor in given.items() if "input_ids" not in name]

    assert () == training.args
    assert all(torch.equal(tensor, inference.kwargs[name]) for name, tensor in given.items())
    assert (3, length) == tokens.shape
    assert ("all zeros" in listed) == (not tokens.any())
    eos = getattr(training.module.config, "eos_token_id", None)
    assert ("set to the eos id" in listed) == (eos is not None and bool((tokens[:, -1] == eos).all()))
    assert ("decoder_input_ids" in listed) == (given.get("decoder_input_ids") is tokens)
    assert ("start_positions" in listed) == ({"start_positions", "end_positions"} <= {*given})
    assert all(each.shape == ((3,) if per_text else (3, length)) for each in labels)
    assert ("labels[B] all 0" in listed) == (not any(each.any() for each in labels))


@pytest.mark.parametrize("name", ["T5ForConditionalGeneration", "T5Small"])
def test_labels_below_the_last_token(name):
    """Labels are uniform over the vocabulary, where the table says so less its last token."""
    spec = SMALL[name].model_copy(update={"arguments": {**SMALL[name].arguments, "vocab_size": 16}})
    given = huggingface.build(spec, Mode.TRAINING, 16, seed=7).kwargs

    assert 15 == given["input_ids"].max()
    assert (14 if "less its last id" in TABLE[name]["inputs"] else 15) == given["labels"].max()


def outputs(workload, mode, tokens=None):
    """Return the output's leaves and the largest activation of a pass, with the same random numbers each time."""
    largest = 0.0

    def look(_, __, output):
        nonlocal largest
        if isinstance(output, torch.Tensor) and output.is_floating_point():
            largest = max(largest, output.abs().max().item())

    handles = [each.register_forward_hook(look) for each in workload.module.modules()]
    with torch.no_grad(), inputs.seeded(7):
        output = workload.module.train(mode == Mode.TRAINING)(**(tokens or workload.kwargs))
    for handle in handles:
        handle.remove()
    return flatten("output", output).values, largest


@pytest.mark.parametrize("spec", SMALL.values(), ids=SMALL)
def test_small_presets(spec):
    """Each small preset trains; it gives tensors alone, which depend on the tokens unless all are padding."""
    workload = huggingface.build(spec, Mode.TRAINING, 2, seed=7)
    other = huggingface.build(spec, Mode.TRAINING, 2, seed=8).kwargs
    lower_dropouts(workload.module)
    logits = "output.start_logits" if spec.task == Task.ANSWERING else "output.logits"

    for mode in MODES:
        (one, largest), (two, _) = outputs(workload, mode), outputs(workload, mode, other)
        apart = (one[logits] - two[logits]).square().mean().sqrt() / one[logits].square().mean().sqrt()

        kinds = {name.partition("[")[0] for name in one}
        assert kinds <= {"output.loss", "output.encoder_last_hidden_state", "output.end_logits", "output.mems", logits}
        assert largest < 1e3
        assert (0 == apart) if spec.build_name.startswith(huggingface.PADDING_ALONE) else (apart >= 0.02)

    loss = workload.loss(workload.module(**workload.kwargs))
    loss.backward()
    gradients = [each.grad for each in workload.module.parameters() if each.grad is not None]

    assert sum(each.numel() for each in workload.module.parameters()) < 500_000
    assert all(each.isfinite().all() for each in gradients)
    assert sum(bool(each.any()) for each in gradients) > 10


def forward(name, attention):
    """Return the state, the logits and the fused attention operators of one forward pass of a small preset."""
    workload = huggingface.build(SMALL[name], Mode.INFERENCE, 1, seed=7, attention=attention)
    with torch.no_grad(), Operators() as operators:
        output = workload.module.eval()(**workload.kwargs)
    return workload.module.state_dict(), output.logits, {each for each in operators.names if "attention" in each}


@pytest.mark.parametrize("name", ["BertForMaskedLM", "BartForCausalLM", "T5Small", "DistillGPT2"])
def test_eager_attention_is_spelled_out(name):
    """Eager attention runs no fused operator, fused attention does; weights are the same, outputs nearly."""
    state, fused, kernels = forward(name, Attention.FUSED)
    same, eager, none = forward(name, Attention.EAGER)

    assert any("scaled_dot_product" in each for each in kernels)
    assert set() == none
    assert all(torch.equal(value, same[name]) for name, value in state.items())
    torch.testing.assert_close(eager, fused, rtol=1e-4, atol=1e-5)


def test_attention_that_is_always_spelled_out():
    """Networks without fused attention run none either way."""
    _, one, kernels = forward("XLNetLMHeadModel", Attention.FUSED)
    _, other, none = forward("XLNetLMHeadModel", Attention.EAGER)

    assert set() == kernels == none
    assert torch.equal(one, other)


@pytest.mark.parametrize("seed", range(3))
def test_no_layer_is_dropped(seed):
    """With dropouts lowered, the one network that drops layers keeps them all, whatever it draws."""
    workload = huggingface.build(SMALL["M2M100ForConditionalGeneration"], Mode.TRAINING, 2, seed=7)
    encoder = workload.module.model.encoder

    assert 0.05 == encoder.layerdrop
    lower_dropouts(workload.module)
    assert 0 < encoder.layerdrop < 1e-20
    evaluated = outputs(workload, Mode.INFERENCE)[0]["output.logits"]
    with torch.no_grad(), inputs.seeded(seed):
        trained = workload.module.train()(**workload.kwargs).logits
    torch.testing.assert_close(trained, evaluated)


def test_output_layer_of_its_own():
    """MT5's output layer has weights of its own, as in 2022; T5's has those of the embedding."""
    mt5, same, t5 = (
        huggingface.build(SMALL[name], Mode.INFERENCE, 1, seed=7).module
        for name in ("MT5ForConditionalGeneration", "MT5ForConditionalGeneration", "T5Small")
    )

    assert not torch.equal(mt5.lm_head.weight, mt5.shared.weight)
    assert torch.equal(mt5.lm_head.weight, same.lm_head.weight)
    assert 1.0 == pytest.approx(mt5.lm_head.weight.std().item(), rel=0.05)
    assert t5.lm_head.weight is t5.shared.weight


def test_fourier_network_keeps_out_of_half_precision():
    """The network with an FFT is skipped in the precisions in which none exists; autocast on CPUs runs it."""
    spec = SPECS["GoogleFnet"]
    workload = huggingface.build(SMALL["GoogleFnet"], Mode.INFERENCE, 1, seed=7)

    assert {(skip.device, skip.precision) for skip in spec.skip} == {
        ("cuda", Precision.AMP),
        (None, Precision.BF16),
        (None, Precision.FP16),
    }
    with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.bfloat16 == workload.module(**workload.kwargs).logits.dtype
    for dtype in (torch.bfloat16, torch.float16):
        with pytest.raises(NotImplementedError):
            workload.module.to(dtype)(**workload.kwargs)


def test_same_seed_same_model():
    """Weights and inputs come from the seed alone, weights not from the mode; the global generator does not move."""
    before = torch.get_rng_state()
    one = huggingface.build(SMALLEST, Mode.TRAINING, 2, seed=7)
    same = huggingface.build(SMALLEST, Mode.INFERENCE, 4, seed=7)
    other = huggingface.build(SMALLEST, Mode.TRAINING, 2, seed=8)

    state = one.module.state_dict()
    assert all(torch.equal(value, same.module.state_dict()[name]) for name, value in state.items())
    name = "electra.embeddings.word_embeddings.weight"
    assert not torch.equal(state[name], other.module.state_dict()[name])
    assert not torch.equal(one.kwargs["input_ids"], one.kwargs["labels"])
    assert not torch.equal(one.kwargs["input_ids"], other.kwargs["input_ids"])
    assert torch.equal(before, torch.get_rng_state())


def test_loss_is_the_models_own():
    """The loss is what the network computed, divided by the entry's scale; inference computes it and takes none."""
    spec = SMALLEST.model_copy(update={"loss_scale": 10.0})
    workload = huggingface.build(spec, Mode.TRAINING, 2, seed=7)
    output = workload.module.eval()(**workload.kwargs)

    assert output.loss.item() / 10 == pytest.approx(workload.loss(output).item())
    labels = workload.kwargs["labels"]
    of_next_tokens = cross_entropy(output.logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten())
    torch.testing.assert_close(of_next_tokens, output.loss)
    assert huggingface.build(SMALLEST, Mode.INFERENCE, 2, seed=7).loss is None


def test_no_graph_break_by_a_warning():
    """A class whose loss the library does not know by name compiles to one graph: nothing is logged on the way."""
    workload = huggingface.build(SMALL["DistillGPT2"], Mode.INFERENCE, 1, seed=7)

    with torch.no_grad():
        explained = torch._dynamo.explain(workload.module.eval())(**workload.kwargs)

    assert 0 == explained.graph_break_count
    torch._dynamo.reset()


def test_repeats():
    """An entry may keep fewer of the equal layers."""
    one = huggingface.network(SMALLEST.model_copy(update={"repeats": 1}))

    assert 1 == len(one.electra.encoder.layer)
    assert 2 == len(huggingface.network(SMALLEST).electra.encoder.layer)


def test_import_loads_no_part_of_the_library():
    """Imported before workers are forked, the suite starts no thread: the library's parts, which do, come later."""
    code = "import suites.huggingface, sys; print('transformers.modeling_utils' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert "False" == run.stdout.strip()


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        ({"build": "BertForMaskedLm"}, r'no network "BertForMaskedLm"\. Close: .*BertForMaskedLM'),
        ({"build": "BertConfig"}, 'no network "BertConfig"'),
        ({"arguments": {"hidden_sise": 64}}, r'ElectraConfig has no value "hidden_sise"\. Close: .*hidden_size'),
        ({"arguments": {"hidden_size": "wide"}}, r"ElectraConfig refuses a value: .*hidden_size"),
        ({"build": "BertForMaskedLM", "arguments": {"hidden_size": 65}}, r"BertForMaskedLM cannot be built: .*65"),
        ({"length": {}}, r"needs a length for inference in its entry"),
        ({"task": None}, r"has no task\. Give it one of masked_lm, .*sequence_classification"),
        ({"task": "translation"}, r'has the task "translation"\. Give it one of masked_lm'),
    ],
)
def test_entries_that_cannot_be_built(changed, text):
    """What an entry says wrong is named, with what is close."""
    with pytest.raises(LoadError, match=text):
        huggingface.build(SMALLEST.model_copy(update=changed), Mode.INFERENCE, 1, seed=7)


def test_batch_of_one_by_default():
    """Without a batch size one text is built."""
    assert (1, 32) == huggingface.build(SMALLEST, Mode.INFERENCE, None, seed=7).kwargs["input_ids"].shape
