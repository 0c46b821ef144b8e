"""`--torchbench` and TORCHBENCH_DIR: models out of a person's own checkout of TorchBench."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bench import main
from bench.options import ModeChoice, Selection
from harness import config
from harness.errors import UsageError
from harness.journal import replay
from harness.record import Outcome
from suites.spec import Attention, Mode

CHECKOUT = Path(__file__).parent.parent / "data" / "torchbench_checkout"
NAME = "torchbench-checkout"


def suites(**asked):
    return [suite.name for suite in Selection(**asked, torchbench=CHECKOUT).suites()]


def test_alone():
    """Without a suite, the models of the checkout are planned; none of them is imported, and batches are theirs."""
    planned = Selection(torchbench=CHECKOUT, mode=ModeChoice.INFERENCE).plan()

    assert {(NAME, "suites.checkout", None)} == {(p.case.suite, p.module, p.case.batch_size) for p in planned}
    assert {"takes_jit", "needs_data", "tiny_canary"} < {each.case.model for each in planned}


def test_in_place_of_ours():
    """Suite torchbench means the checkout, as often as it is named; other suites are what they are."""
    assert [NAME, "toy"] == suites(suite=["torchbench", "toy", "torchbench"])
    assert ["toy"] == suites(suite=["toy"])
    assert [each.name for each in config.published()] == suites(suite=["all"])


def test_beside_a_model_of_ones_own(tmp_path):
    """A model file alone is what is meant; beside a name, the name is one of the checkout's."""
    own = tmp_path / "mine.py"
    own.write_text("")

    assert ["user"] == suites(model=[str(own)])
    assert [NAME, "user"] == suites(model=[str(own), "takes_jit"])
    planned = Selection(torchbench=CHECKOUT, model=[str(own), "takes_jit"], mode=ModeChoice.TRAINING).plan()
    assert [f"{NAME}/takes_jit", "user/mine"] == [each.case.name for each in planned]


@pytest.mark.parametrize(("kind", "device"), [("cpu", "cpu"), ("cuda", "cuda"), ("tests.fakes:Accelerator", "cpu")])
def test_device(kind, device, tmp_path, monkeypatch):
    """Models are constructed for CUDA where the profile is of a CUDA device, else for the CPU."""
    (tmp_path / "devices").mkdir()
    (tmp_path / "devices" / "mine.toml").write_text(f'kind = "{kind}"\n')
    monkeypatch.setenv("BENCH_CONFIGS", str(tmp_path))

    planned = Selection(torchbench=CHECKOUT, device="mine").plan()

    assert {device} == {each.spec.arguments["device"] for each in planned}


def test_relative_path(monkeypatch):
    """A path may be relative or begin with a tilde; a run can be resumed from anywhere."""
    monkeypatch.setenv("HOME", str(CHECKOUT.parent))
    monkeypatch.chdir(CHECKOUT.parent)

    for path in (CHECKOUT.name, f"~/{CHECKOUT.name}"):
        planned = Selection(torchbench=Path(path), model=["takes_jit"]).plan()
        assert {str(CHECKOUT / "torchbenchmark" / "models" / "takes_jit")} == {each.spec.build for each in planned}


def test_no_checkout():
    """A path that is no checkout is refused with what to give; but only where its models are asked for."""
    with pytest.raises(UsageError, match=r"^--torchbench: there is no folder /nowhere\. Give the folder that holds"):
        Selection(torchbench=Path("/nowhere")).plan()

    assert Selection(suite=["toy"]).plan() == Selection(suite=["toy"], torchbench=Path("/nowhere")).plan()


def test_unknown_model():
    """A name that the checkout does not have is answered with what is close, and with no list that knows it not."""
    with pytest.raises(UsageError, match=rf"^--model takes_jitt: no such model in {NAME}\. Close: takes_jit[^`]*$"):
        Selection(torchbench=CHECKOUT, model=["takes_jitt"]).plan()


def test_attention():
    """Attention is the models' own: another is refused before anything runs."""
    with pytest.raises(UsageError, match=r"^--attention eager: the models of a checkout choose their own attention\."):
        Selection(torchbench=CHECKOUT, attention=Attention.EAGER).plan()


def test_run(tmp_path, monkeypatch, capsys):
    """What can be measured is; what cannot is told with its remedy. The path may stand in the environment."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TORCHBENCH_DIR", str(CHECKOUT))
    models = [word for name in ("takes_jit", "needs_package", "only_eval") for word in ("--model", name)]

    code = main.run(
        ["run", "--suite", "torchbench", *models, "--mode", "training", "--backend", "eager", "--only-accuracy"]
    )
    out, err = capsys.readouterr()
    (journal,) = Path("runs").glob("*.jsonl")
    records = {(r.case.suite, r.case.model): r.outcome for r in replay(journal).records.values()}

    assert 0 == code, err
    assert {
        (NAME, "needs_package"): Outcome.MODEL_FAIL_TO_LOAD,
        (NAME, "only_eval"): Outcome.MODEL_FAIL_TO_LOAD,
        (NAME, "takes_jit"): Outcome.PASS,
    } == records
    assert re.search(r"needs_package .*model_fail_to_load +.*python install\.py needs_package", out)
    assert re.search(r"only_eval .*model_fail_to_load +.*is unsupported here", out)
    assert "Traceback" not in out + err

    assert 0 == main.run(["run", "--resume", "latest"])
    assert {Mode.TRAINING} == {each.case.mode for each in replay(journal).run.plan}
