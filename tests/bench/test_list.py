"""`bench list` shows what there is."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from bench.list import app
from harness.errors import UsageError
from server.store import Store
from tests.server import factory


def invoke(*arguments):
    return CliRunner().invoke(app, arguments)


def test_suites():
    """Suites come with the number of their models and their tiers."""
    lines = [line.split() for line in invoke("suites").stdout.splitlines()]

    assert ["timm", "61", "quick,", "full"] in [line[:4] for line in lines]
    assert ["toy", "3", "quick,", "full"] in [line[:4] for line in lines]


def test_models():
    """Models come with family, parameters, batch, input size and whether they have a small preset."""
    lines = [line.split() for line in invoke("models", "--suite", "timm").stdout.splitlines()]

    assert ["timm/lcnet_050", "lcnet", "1,880,856", "128", "3x224x224", "yes"] == lines[1]
    assert ["timm/dm_nfnet_f0", "nfnet", "71,489,284", "128", "3x256x256/3x192x192", "yes"] in lines
    assert [] == lines[62]


def test_models_of_all_suites():
    """Without a suite, those of all files are listed; `all` are the published ones. The last line counts them."""
    every, published = (invoke("models", *suite).stdout.splitlines() for suite in ([], ["--suite", "all"]))

    assert {"timm", "toy"} <= {line.partition("/")[0] for line in every[1:]}
    assert not any(line.startswith("toy/") for line in published)
    assert "163 models: 46 huggingface, 61 timm, 56 torchbench" == published[-1]


def test_names_outside():
    """Names that are no model of a suite stand after the models with their reason, in JSON as lines of their own."""
    text = invoke("models", "--suite", "torchbench").stdout
    lines = [json.loads(line) for line in invoke("models", "--suite", "torchbench", "--json").stdout.splitlines()]

    assert text.index("torchbench/hf_Bert ") < text.index("\noutside ") < text.index("torchbench/hf_Bert_large ")
    assert "joined TorchBench on 2 December 2022" in text
    assert ["model"] * 56 + ["outside"] * 15 == [line["type"] for line in lines]
    assert {"schema", "type", "suite", "name", "why"} == set(lines[-1])


def test_model_file(tmp_path):
    """Of a model file only the name is known."""
    (tmp_path / "mine.py").write_text("raise RuntimeError")

    lines = invoke("models", "--suite", str(tmp_path / "mine.py")).stdout.splitlines()

    assert ["user/mine", "", "1 model: 1 user"] == lines[1:]


def test_unknown_suite():
    """An unknown suite is answered with what is close."""
    result = invoke("models", "--suite", "tim")

    assert isinstance(result.exception, UsageError)
    assert "Close: timm" in str(result.exception)


def test_devices():
    """Device profiles come with their kind, product and limits, and with the journals that vouch for them, if any."""
    lines = {line.split()[0]: line.split() for line in invoke("devices").stdout.splitlines()}

    assert ["cpu", "any", "32", "1800", "s", "timm-fp32-cpu.jsonl.gz", "and", "1", "more"] == lines["cpu"][1:10]
    assert ["cuda", "H200", "1", "1800", "s"] == lines["h200"][1:6]


def test_unverified_devices(tmp_path, monkeypatch):
    """A profile that no committed run has used is marked as unverified."""
    (tmp_path / "devices").mkdir()
    (tmp_path / "devices/mine.toml").write_text('kind = "cpu"')
    monkeypatch.setenv("BENCH_CONFIGS", str(tmp_path))
    lines = {line.split()[0]: line.split() for line in invoke("devices").stdout.splitlines()}

    assert ["cpu", "any", "1", "1800", "s", "unverified"] == lines["mine"][1:]
    assert "unverified" not in lines["cpu"]


def test_references():
    """A reference configuration comes with the options it means, its set, its rule, its figures and their sources."""
    text = invoke("references").stdout

    assert "pytorch-2.0: The figures that PyTorch 2.0 was announced with" in text
    assert "--compile-mode reduce-overhead" in text
    assert "AMP in float16; the list's batch sizes" in text
    assert "163: 61 timm, 46 huggingface, 56 torchbench" in text
    assert "a speedup below 1 is raised to 1" in text
    assert "training speedup, AMP: 1.51x (read in a primary source; " in text
    assert "The announcement of 2 December 2022" in text


@pytest.mark.parametrize(
    ("what", "type_", "known"),
    [
        ("suites", "suite", "timm"),
        ("models", "model", "lcnet_050"),
        ("devices", "device", "cpu"),
        ("references", "reference", "pytorch-2.0"),
    ],
)
def test_json(what, type_, known):
    """As JSON, each line carries schema, type and name."""
    lines = [json.loads(line) for line in invoke(what, "--json").stdout.splitlines()]

    assert {1} == {line["schema"] for line in lines}
    assert known in [line["name"] for line in lines if line["type"] == type_]


@pytest.fixture
def database(tmp_path):
    return f"sqlite:///{tmp_path}/bench.db"


def test_no_runs(database):
    """An empty database says how runs come into it."""
    assert "No runs" in invoke("runs", "--database", database).stdout
    assert "" == invoke("runs", "--database", database, "--json").stdout


def test_runs(database):
    """Runs come newest first, with how they ended and how many passed; --limit says what it leaves out."""
    store = Store.connect(database)
    older, newer = (
        factory.make_run(
            2, id=f"0194a3f2-1111-7000-8000-00000000000{n}", at=factory.BEGIN + n * factory.timedelta(days=1)
        )
        for n in (1, 2)
    )
    for run in (older, newer):
        store.open(run)
        store.record(factory.make_record(run.plan[0].case, run_id=run.id))
    store.close(factory.make_end(older.id))

    lines = invoke("runs", "--database", database).stdout.splitlines()

    assert [newer.id, older.id] == [line.split()[0] for line in lines[1:]]
    assert "finished" in lines[2]
    assert "1 of 2" in lines[2]
    lines = invoke("runs", "--database", database, "--limit", "1").stdout.splitlines()
    assert "1 of 2 runs; --limit 2 shows all." == lines[-1]
    found = [json.loads(line) for line in invoke("runs", "--database", database, "--json").stdout.splitlines()]
    assert [(1, "listed_run", newer.id), (1, "listed_run", older.id)] == [
        (line["schema"], line["type"], line["id"]) for line in found
    ]
