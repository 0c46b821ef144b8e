"""`bench plan` prints what `bench run` would do."""

from __future__ import annotations

import json
import re
from datetime import timedelta

import pytest
from typer.testing import CliRunner

from bench.options import Selection
from bench.plan import app
from harness.errors import UsageError
from harness.record import Planned
from server.store import Store
from tests.server import factory


def invoke(*arguments):
    return CliRunner().invoke(app, arguments)


def test_lines():
    """One line a case, in order, and a last one that counts them."""
    result = invoke("--suite", "timm", "--fp32", "--amp", "--tier", "quick", "--device", "cpu")

    lines = result.stdout.splitlines()
    assert 0 == result.exit_code
    assert 6 == len(lines)
    assert ["1", "timm/lcnet_050", "inference", "fp32", "4", "0.001", "1800", "s"] == lines[1].split()
    assert ["4", "timm/lcnet_050", "inference", "amp(bfloat16)"] == lines[4].split()[:4]
    assert "4 cases on cpu: 3 fp32, 1 amp" == lines[5]


def test_json():
    """As JSON, each line is a planned case with its place and its id; it can be read back."""
    result = invoke("--suite", "toy", "--mode", "training", "--backend", "aot_eager", "--json")

    lines = [json.loads(line) for line in result.stdout.splitlines()]
    expected = Selection(suite=["toy"], mode="training", backend="aot_eager").plan()
    assert [1, 2, 3] == [line["place"] for line in lines]
    assert [(1, "planned", each.case.id) for each in expected] == [
        (line["schema"], line["type"], line["case_id"]) for line in lines
    ]
    assert [*expected] == [
        Planned.model_validate({name: line[name] for name in Planned.model_fields}) for line in lines
    ]


def test_as(tmp_path, monkeypatch):
    """A plan of the announcement's configuration needs the profile of a GPU, and no GPU."""
    (tmp_path / "devices").mkdir()
    (tmp_path / "devices" / "gpu.toml").write_text('kind = "cuda"\ntf32 = true\n')
    monkeypatch.setenv("BENCH_CONFIGS", str(tmp_path))

    lines = invoke("--as", "pytorch-2.0", "--suite", "timm", "--device", "gpu").stdout.splitlines()

    assert "training fp32 reduce-overhead tf32 eager attention" in lines[1]
    assert "122 cases on gpu: 61 fp32, 61 amp" == lines[-1]


def test_small():
    """A small case says so in its configuration, with its own batch."""
    lines = invoke("--suite", "toy", "--preset", "small", "--mode", "training", "--device", "cpu").stdout.splitlines()

    assert ["1", "toy/mlp", "small", "training", "fp32", "2", "0.001"] == lines[1].split()[:7]


LONG = [("mlp", "inference", 200.0), ("mlp", "training", 250.0), ("conv", "inference", 900.0)]


@pytest.fixture
def long_ago(url):
    """A database with a run in which two toy models took long."""
    store = Store.connect(url)
    asked = Selection(suite=["toy"], device="cpu").plan()
    cases = {(each.case.model, each.case.mode): each.case for each in asked}
    store.open(factory.make_run([*cases.values()]))
    for model, mode, seconds in LONG:
        at = factory.BEGIN + timedelta(seconds=seconds)
        store.record(factory.make_record(cases[model, mode], started_at=factory.BEGIN, finished_at=at))
    store.dispose()
    return url


def test_limit_seconds(long_ago):
    """With a limit each case shows its seconds and how they are known; a last line says what fits and what does not."""
    arguments = ("--suite", "toy", "--device", "cpu", "--exclude", "attention", "--limit-seconds", "700")
    lines = invoke(*arguments, "--database", long_ago).stdout.splitlines()

    assert "expected" in lines[0]
    assert ["200.0", "s", "(past)"] == lines[1].split()[8:]
    assert "900.0 s (past)" in lines[3]
    assert lines[3].endswith("skipped: left out: does not fit into --limit-seconds 700")
    assert "(model)" in lines[4]
    assert "4 cases on cpu: 2 fp32, 2 skipped" == lines[5]
    assert (
        "--limit-seconds 700: 2 of 4 cases fit, about 450 s together (known by: 2 past); left out: 2 of toy" == lines[6]
    )


def test_limit_seconds_as_json(long_ago):
    """As JSON each line carries what is expected; without a limit nothing is."""
    arguments = ("--suite", "toy", "--device", "cpu", "--database", long_ago, "--json")
    limited, plain = (
        [json.loads(line) for line in invoke(*arguments, *more).stdout.splitlines()]
        for more in (("--limit-seconds", "450"), ())
    )

    assert [(200.0, "past"), (250.0, "past"), (900.0, "past")] == [
        (line["expected_s"], line["expected_from"]) for line in limited[:3]
    ]
    assert (67.0, "default") == (limited[4]["expected_s"], limited[4]["expected_from"])
    assert [line["case_id"] for line in plain] == [line["case_id"] for line in limited]
    assert not any("expected_s" in line for line in plain)


def test_limit_seconds_without_a_past(url, tmp_path):
    """A database that is not there is no past, and a plan does not make one."""
    result = invoke("--suite", "toy", "--device", "cpu", "--limit-seconds", "700", "--database", url)

    assert "(known by: 6 default)" in result.stdout
    assert [] == [*tmp_path.iterdir()]


@pytest.mark.parametrize(
    ("limit", "message"),
    [("0", r"--limit-seconds 0: must be above 0"), ("1", r"nothing fits\. The cheapest case, toy/mlp inference fp32")],
)
def test_limits_that_cannot_be_meant(url, limit, message):
    """A limit that is none, or too low for any case, is wrong usage."""
    result = invoke("--suite", "toy", "--device", "cpu", "--database", url, "--limit-seconds", limit)

    assert isinstance(result.exception, UsageError)
    assert re.search(message, str(result.exception))


def test_names_outside():
    """A name that is outside of a suite is answered with why."""
    result = invoke("--suite", "all", "--model", "hf_Bert_large")

    assert isinstance(result.exception, UsageError)
    assert "hf_Bert_large is none of torchbench's models: it joined TorchBench on 2 Dec" in str(result.exception)


def test_skips_are_shown(tmp_path, monkeypatch):
    """A skipped case stands in its place with the reason."""
    (tmp_path / "configs" / "suites").mkdir(parents=True)
    (tmp_path / "configs" / "suites" / "mine.toml").write_text(
        'about = ""\nmodule = "suites.toy"\ntolerance = { inference = 1, training = 1 }\n'
        '[[model]]\nname = "mlp"\naccuracy_batch = 1\nskip = [{ mode = "training", why = "too slow" }]\n'
    )
    monkeypatch.chdir(tmp_path)

    lines = invoke("--suite", "mine", "--device", "cpu").stdout.splitlines()

    assert lines[1].endswith("checked with batch 1")
    assert lines[2].endswith("skipped: too slow, checked with batch 1")
    assert "2 cases on cpu: 1 fp32, 1 skipped" == lines[3]


def test_expired_skips_are_shown(tmp_path, monkeypatch):
    """A case whose skip is over runs, and says so in its place and in the last line."""
    (tmp_path / "configs" / "suites").mkdir(parents=True)
    (tmp_path / "configs" / "suites" / "mine.toml").write_text(
        'about = ""\nmodule = "suites.toy"\ntolerance = { inference = 1, training = 1 }\n'
        '[[model]]\nname = "mlp"\nskip = [{ mode = "training", why = "crashes", until = 2026-01-31 },\n'
        '{ mode = "inference", why = "for ever", until = 9999-12-31 }]\n'
    )
    monkeypatch.chdir(tmp_path)

    lines = invoke("--suite", "mine", "--device", "cpu").stdout.splitlines()

    assert lines[1].endswith("skipped: for ever")
    assert lines[2].endswith("skip expired: crashes (until 2026-01-31)")
    assert "2 cases on cpu: 1 fp32, 1 skipped, 1 with an expired skip" == lines[3]


def test_refusal():
    """What cannot be planned ends the command with wrong usage."""
    result = invoke("--suite", "toy", "--tf32")

    assert isinstance(result.exception, UsageError)
    assert 2 == result.exception.exit_code


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--suite", "tim"), r"no suite 'tim'\. Close: timm"),
        (("--suite", "timm", "--model", "vit_base_patch16_22"), r"no such model in timm\. Close: vit_base_patch16_224"),
        (("--suite", "timm", "--exclude", "lcnet_05"), r"no such model in timm\. Close: lcnet_050"),
        (("--suite", "timm", "--tier", "quik"), r"Suite timm has no tier 'quik'\. Close: quick"),
        (("--suite", "timm", "--device", "a10"), r"no device 'a10'\. Close: a100"),
        (("--suite", "timm", "--device", "rtx3900"), r"no device 'rtx3900'\. Close: rtx3090"),
    ],
)
def test_unknown_names(arguments, message):
    """What is not known is answered with what is close to it."""
    result = invoke(*arguments)

    assert isinstance(result.exception, UsageError)
    assert re.search(message, str(result.exception))


@pytest.mark.parametrize(
    ("option", "known"),
    [("--attention", ("fused", "eager")), ("--mode", ("inference", "training")), ("--optimizer", ("sgd", "adam"))],
)
def test_unknown_words(option, known):
    """A word that an option does not know is answered with all that it knows."""
    result = invoke("--suite", "toy", option, "other")

    assert 2 == result.exit_code
    assert all(word in result.stderr for word in known)


def test_attention(tmp_path):
    """The attention that is asked for stands in each case; with a model file, which has its own, it is refused."""
    (tmp_path / "mine.py").write_text("raise RuntimeError")

    shown = invoke("--suite", "toy", "--tier", "quick", "--attention", "eager").stdout.splitlines()[1:-1]
    refused = invoke("--suite", str(tmp_path / "mine.py"), "--attention", "eager")

    assert 3 == len(shown)
    assert all("inference fp32 eager attention" in line for line in shown)
    assert isinstance(refused.exception, UsageError)
    assert "a model file chooses its own attention (mine)" in str(refused.exception)
