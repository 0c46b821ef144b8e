"""The options of `bench plan` and `bench run` are declared once, and each of them counts."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from bench.options import ModeChoice, Selection, selecting
from harness.errors import UsageError
from harness.record import CompileScope, OptimizerKind
from suites.spec import Attention, Mode, Precision, Preset

OTHER = {
    "suite": ["timm"],
    "torchbench": Path(__file__).parent.parent / "data" / "torchbench_checkout",
    "model": ["conv"],
    "exclude": ["conv"],
    "tier": "quick",
    "limit": 1,
    "limit_seconds": 100.0,
    "mode": ModeChoice.TRAINING,
    "fp32": True,
    "amp": True,
    "bf16": True,
    "fp16": True,
    "tf32": True,
    "backend": "eager",
    "compile_mode": "reduce-overhead",
    "compile_scope": CompileScope.STEP,
    "optimizer": OptimizerKind.SGD,
    "dynamic": True,
    "deterministic": True,
    "attention": Attention.EAGER,
    "preset": Preset.SMALL,
    "device": "gpu",
    "batch_size": 3,
    "timeout": 5.0,
    "shard": "1/2",
    "reference": "pytorch-2.0",
}
REFUSED = {"tf32": "NVIDIA", "device": "no device 'gpu'", "reference": "needs a CUDA device"}


@pytest.mark.parametrize("name", [each.name for each in fields(Selection)])
def test_no_option_is_ignored(name, tmp_path, monkeypatch):
    """Each option by itself changes the plan or is refused; --fp32 only says the default aloud."""
    monkeypatch.chdir(tmp_path)  # where no database tells of durations
    plain = Selection(suite=["torchbench" if name == "torchbench" else "toy"])
    asked = replace(plain, **{name: OTHER[name]})

    if name in REFUSED:
        with pytest.raises(UsageError, match=REFUSED[name]):
            asked.plan()
    elif name == "fp32":
        assert plain.plan() == asked.plan()
        assert replace(plain, amp=True).plan() != replace(asked, amp=True).plan()
    else:
        assert plain.plan() != asked.plan()


@pytest.mark.parametrize(
    ("asked", "modes", "precisions"),
    [
        ({}, None, (Precision.FP32,)),
        ({"amp": True}, None, (Precision.AMP,)),
        ({"amp": True, "fp32": True, "fp16": True}, None, (Precision.FP32, Precision.AMP, Precision.FP16)),
        ({"mode": ModeChoice.TRAINING}, (Mode.TRAINING,), (Precision.FP32,)),
        ({"mode": ModeChoice.BOTH}, (Mode.INFERENCE, Mode.TRAINING), (Precision.FP32,)),
    ],
)
def test_matrix(asked, modes, precisions):
    """Precisions add up, FP32 where none is named; without a mode the tier decides."""
    matrix = Selection(suite=["toy"], **asked).matrix()

    assert (modes, precisions) == (matrix.modes, matrix.precisions)


@pytest.fixture
def gpu(tmp_path, monkeypatch):
    """A profile of a GPU whose formats and batch sizes are not those of 2022."""
    (tmp_path / "devices").mkdir()
    (tmp_path / "devices" / "gpu.toml").write_text('kind = "cuda"\ntf32 = true\nbatch_divisor = 4\n')
    monkeypatch.setenv("BENCH_CONFIGS", str(tmp_path))


def test_as(gpu):
    """--as plans the announcement's configuration: training, both precisions, TF32 in FP32, the list's batch sizes."""
    asked = Selection(suite=["timm"], model=["lcnet_050"], device="gpu", reference="pytorch-2.0")

    cases = [each.case for each in asked.plan()]

    shared = {(c.mode, c.backend, c.compile_mode, c.optimizer, c.attention, c.batch_size) for c in cases}
    assert [("fp32", True, None), ("amp", False, "float16")] == [(c.precision, c.tf32, c.amp_dtype) for c in cases]
    assert {("training", "inductor", "reduce-overhead", "none", "eager", 128)} == shared
    assert "float16" == asked.profile().amp_dtype


def test_as_leaves_the_rest_free(gpu):
    """--as says nothing of models, limits and shards: they choose as they do without it."""
    asked = Selection(suite=["timm"], exclude=["*net*"], limit=4, shard="2/2", timeout=5.0, device="gpu")

    with_it = replace(asked, reference="pytorch-2.0").plan()

    assert [each.case.model for each in replace(asked, mode=ModeChoice.TRAINING, fp32=True, amp=True).plan()] == [
        each.case.model for each in with_it
    ]
    assert {5.0} == {each.timeout_s for each in with_it}


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("optimizer", OptimizerKind.ADAM, "--optimizer adam"),
        ("compile_mode", "default", "--compile-mode default"),
        ("compile_scope", CompileScope.STEP, "--compile-scope step"),
        ("backend", "eager", "--backend eager"),
        ("attention", Attention.FUSED, "--attention fused"),
        ("preset", Preset.SMALL, "--preset small"),
        ("mode", ModeChoice.BOTH, "--mode both"),
        ("amp", True, "--amp"),
        ("bf16", True, "--bf16"),
        ("dynamic", True, "--dynamic"),
        ("deterministic", True, "--deterministic"),
        ("batch_size", 8, "--batch-size 8"),
    ],
)
def test_as_refuses_what_contradicts_it(gpu, name, value, said):
    """An option that contradicts --as is refused with both names, its default too where it was typed."""
    asked = replace(Selection(suite=["timm"], device="gpu", reference="pytorch-2.0"), **{name: value})

    with pytest.raises(UsageError, match=rf"^{said} contradicts --as pytorch-2\.0, which means "):
        asked.plan()


def test_as_with_what_it_means(gpu):
    """Options that --as means anyway may be said as well."""
    asked = Selection(suite=["timm"], device="gpu", reference="pytorch-2.0")
    aloud = replace(asked, mode=ModeChoice.TRAINING, fp32=True, amp=True, tf32=True, optimizer=OptimizerKind.NONE)

    assert asked.plan() == aloud.plan()


def test_as_what():
    """A name that --as does not know is answered with what is close."""
    with pytest.raises(UsageError, match=r"no reference configuration 'pytorch'\. Close: pytorch-2\.0\."):
        Selection(suite=["toy"], reference="pytorch").plan()


def test_no_suite():
    """A suite must be named; the sentence names them."""
    with pytest.raises(UsageError, match=r"Name a suite with --suite: .*timm, .*toy, all, or"):
        Selection().plan()


def test_model_files(tmp_path):
    """Model files are a suite of their own, after the others; they are not imported to be planned."""
    file = tmp_path / "mine.py"
    file.write_text("raise RuntimeError")

    planned = Selection(suite=[str(file), "toy"], mode=ModeChoice.INFERENCE).plan()

    assert ["toy/mlp", "toy/conv", "toy/attention", "user/mine"] == [each.case.name for each in planned]
    assert str(file) == planned[-1].spec.build
    assert planned[-1].case.batch_size is None


def test_missing_model_file():
    """A model file that is not there is named."""
    with pytest.raises(UsageError, match=r"--suite nowhere\.py: there is no such file"):
        Selection(suite=["nowhere.py"]).plan()


def test_all():
    """`all` stands for the published suites, and no other; one that is named beside it keeps its place."""
    published = {"huggingface", "timm", "torchbench"}

    assert published == {suite.name for suite in Selection(suite=["all"]).suites()}
    assert ["toy", "timm"] == [suite.name for suite in Selection(suite=["toy", "timm", "all"]).suites()][:2]
    assert len(published) + 1 == len(Selection(suite=["toy", "timm", "all"]).suites())


def test_limit_seconds_of_a_shard(tmp_path, monkeypatch):
    """The limit is that of each shard: both parts of a plan may have cases that fit."""
    monkeypatch.chdir(tmp_path)
    asked = Selection(suite=["toy"], model=["mlp", "conv"], mode=ModeChoice.INFERENCE, limit_seconds=100.0)

    whole, *parts = (replace(asked, shard=shard).plan() for shard in (None, "1/2", "2/2"))

    assert [None, "left out: does not fit into --limit-seconds 100"] == [each.skip for each in whole]
    assert [[None], [None]] == [[each.skip for each in part] for part in parts]


def test_a_suite_named_twice_is_one():
    """Naming a suite twice plans it once."""
    assert Selection(suite=["toy"]).plan() == Selection(suite=["toy", "toy"]).plan()


def test_command_gets_its_own_options_too():
    """A command keeps its own options beside the shared ones, and gets a `Selection`."""
    app = typer.Typer()
    seen = []

    @app.command()
    @selecting
    def main(selection: Selection, loud: Annotated[bool, typer.Option("--loud")] = False) -> None:
        seen.append((selection, loud))

    arguments = ["--suite", "a", "--suite", "b", "--amp", "--loud", "--compile-scope", "step", "--batch-size", "3"]
    result = CliRunner().invoke(app, arguments)

    assert 0 == result.exit_code
    expected = Selection(suite=["a", "b"], amp=True, compile_scope=CompileScope.STEP, batch_size=3)
    assert [(expected, True)] == seen


def test_defaults_are_the_selections():
    """A command without options gets the defaults of `Selection`."""
    app = typer.Typer()
    seen = []
    app.command()(selecting(lambda selection: seen.append(selection)))

    CliRunner().invoke(app, [])

    assert [Selection()] == seen
