"""`bench plan` prints what `bench run` would do."""

from __future__ import annotations

import json

from typer.testing import CliRunner

from bench.options import Selection
from bench.plan import app
from harness.errors import UsageError
from harness.record import Planned


def invoke(*arguments):
    return CliRunner().invoke(app, arguments)


def test_lines():
    """One line a case, in order, and a last one that counts them."""
    result = invoke("--suite", "timm", "--fp32", "--amp", "--tier", "quick")

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


def test_skips_are_shown(tmp_path, monkeypatch):
    """A skipped case stands in its place with the reason."""
    (tmp_path / "configs" / "suites").mkdir(parents=True)
    (tmp_path / "configs" / "suites" / "mine.toml").write_text(
        'about = ""\nmodule = "suites.toy"\ntolerance = { inference = 1, training = 1 }\n'
        '[[model]]\nname = "mlp"\naccuracy_batch = 1\nskip = [{ mode = "training", why = "too slow" }]\n'
    )
    monkeypatch.chdir(tmp_path)

    lines = invoke("--suite", "mine").stdout.splitlines()

    assert lines[1].endswith("checked with batch 1")
    assert lines[2].endswith("skipped: too slow, checked with batch 1")
    assert "2 cases on cpu: 1 fp32, 1 skipped" == lines[3]


def test_refusal():
    """What cannot be planned ends the command with wrong usage."""
    result = invoke("--suite", "toy", "--tf32")

    assert isinstance(result.exception, UsageError)
    assert 2 == result.exception.exit_code
