"""The options of `bench plan` and `bench run` are declared once, and each of them counts."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from bench.options import ModeChoice, Selection, selecting
from harness.errors import UsageError
from harness.record import CompileScope, OptimizerKind
from suites.spec import Mode, Precision

OTHER = {
    "suite": ["timm"],
    "model": ["conv"],
    "exclude": ["conv"],
    "tier": "quick",
    "limit": 1,
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
    "device": "gpu",
    "batch_size": 3,
    "timeout": 5.0,
    "shard": "1/2",
}
REFUSED = {"tf32": "NVIDIA", "device": "no device 'gpu'"}


@pytest.mark.parametrize("name", [each.name for each in fields(Selection)])
def test_no_option_is_ignored(name):
    """Each option by itself changes the plan or is refused; --fp32 only says the default aloud."""
    plain = Selection(suite=["toy"])
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


def test_no_suite():
    """A suite must be named; the sentence names them."""
    with pytest.raises(UsageError, match=r"Name a suite with --suite: .*timm, toy"):
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
