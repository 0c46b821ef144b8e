"""Anyone's own models from the command line: files, functions of modules, and suites of installed packages."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from bench import main
from harness.record import Outcome, Record
from tests.harness.test_packages import install

ROOT = Path(__file__).parents[2]

FILE = """
import torch

def build():
    return torch.nn.Linear(3, 2)

def inputs(batch_size=4):
    return (torch.randn(batch_size, 3),), {}

def wide(batch_size=4):
    return torch.nn.Linear(3, 64), (torch.randn(batch_size, 3),), {}
"""

SUITE = """about = "Of another package"
module = "their_package.models"
tolerance = { inference = 1e-4, training = 1e-3 }

[[model]]
name = "tiny"
batch = { inference = 192 }
"""

BUILDER = """
import torch
from suites.workload import Workload

def build(spec, mode, batch_size, seed, attention):
    return Workload(torch.nn.Linear(3, 2), (torch.randn(batch_size, 3),), {})
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A working directory with a file and a package, and beside it a folder of installed packages."""
    root = tmp_path_factory.mktemp("own")
    for path in ("here/mine.py", "here/other.py", "here/nets/deep/tiny.py"):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(FILE)
    files = {"__init__.py": "", "models.py": BUILDER, "theirs.toml": SUITE}
    install(
        root / "site", "[bench.suites]\ntheirs = their_package", {f"their_package/{n}": t for n, t in files.items()}
    )
    install(root / "site", "[bench.suites]\nbroken = no_package_4a", {}, "broken-models")
    return root / "here"


def bench(
    folder: Path, *args: str, code: str = "from bench import main; main.main()"
) -> subprocess.CompletedProcess[str]:
    """Run the command as it is when installed: without the working directory on the path (-P)."""
    paths = os.pathsep.join([str(ROOT), str(folder.parent / "site")])
    environment = {name: value for name, value in os.environ.items() if name != "BENCH_CONFIGS"} | {"PYTHONPATH": paths}
    command = [sys.executable, "-P", "-c", code, *args]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


RUN = ("run", "--mode", "inference", "--device", "cpu", "--backend", "eager", "--only-accuracy", "--json")


@pytest.fixture(scope="module")
def records(folder: Path) -> dict[str, Record]:
    """What one command says of models of all kinds."""
    named = ("mine.py", "nets.deep.tiny:wide", "nets.deep.tiny:narrow")
    done = bench(folder, *RUN, "--suite", "theirs", *(word for name in named for word in ("--model", name)))
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    found = [Record.model_validate(line) for line in lines if line["type"] == "record"]
    return {record.case.name: record for record in found}


def test_models_run(records: dict[str, Record]) -> None:
    """A suite of an installed package, a file, and functions of a module in the working directory, in that order."""
    assert {name: (record.outcome, record.observed.batch_size) for name, record in records.items()} == {
        "theirs/tiny": (Outcome.PASS, 6),  # 192, by the batch divisor of this device
        "user/mine": (Outcome.PASS, 4),
        "user/nets.deep.tiny:wide": (Outcome.PASS, 4),
        "user/nets.deep.tiny:narrow": (Outcome.MODEL_FAIL_TO_LOAD, None),
    }
    assert [*records][:2] == ["theirs/tiny", "user/mine"]


def test_missing_function(records: dict[str, Record]) -> None:
    """A function that the module lacks is a result that names both."""
    text = records["user/nets.deep.tiny:narrow"].text or ""

    assert text == "LoadError: nets.deep.tiny: the module has no function narrow()."


@pytest.mark.parametrize("what", [("suites",), ("models",), ("suites", "--json")])
def test_listing(folder: Path, what: tuple[str, ...]) -> None:
    """An installed package's suite is listed without importing torch; a broken one is named, and hides none."""
    code = "import sys; from bench import main; sys.exit(main.run(sys.argv[1:]) + 9 * ('torch' in sys.modules))"
    done = bench(folder, "list", *what, code=code)

    assert done.returncode == 1, done.stderr
    assert all(name in done.stdout for name in ("theirs", "toy", "timm"))
    assert "broken" not in done.stdout
    assert done.stderr == (
        'bench: suite "broken" of the installed distribution broken-models 1.0: its entry point says broken = '
        '"no_package_4a", and there is no module no_package_4a. Correct it there, or install what lacks.\n'
    )


PLANNED: dict[str, tuple[list[str], list[str]]] = {
    "a file": (["--model", "mine.py"], ["user/mine"]),
    "in the order named": (["--model", "other.py", "--model", "mine.py"], ["user/other", "user/mine"]),
    "a function of a file": (["--model", "mine.py:wide", "--model", "mine.py"], ["user/mine:wide", "user/mine"]),
    "a function of a module": (["--model", "nets.deep.tiny:wide"], ["user/nets.deep.tiny:wide"]),
    "of an installed module": (["--model", "torch.nn:Identity"], ["user/torch.nn:Identity"]),
    "as a suite": (["--suite", "mine.py"], ["user/mine"]),
    "a function as a suite": (["--suite", "nets.deep.tiny:wide"], ["user/nets.deep.tiny:wide"]),
    "twice": (["--suite", "mine.py", "--model", "./mine.py"], ["user/mine"]),
    "beside a suite": (
        ["--suite", "toy", "--model", "mine.py"],
        ["toy/mlp", "toy/conv", "toy/attention", "user/mine"],
    ),
    "beside a name": (["--suite", "toy", "--model", "mine.py", "--model", "mlp"], ["toy/mlp", "user/mine"]),
    "beside a glob": (
        ["--suite", "toy", "--model", "*n*", "--model", "mine.py"],
        ["toy/conv", "toy/attention", "user/mine"],
    ),
    "chosen by name": (["--suite", "mine.py", "--suite", "other.py", "--model", "mi*"], ["user/mine"]),
    "excluded": (["--model", "mine.py", "--model", "other.py", "--exclude", "o*"], ["user/mine"]),
}


@pytest.mark.parametrize(("options", "models"), PLANNED.values(), ids=PLANNED)
def test_planned(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    options: list[str],
    models: list[str],
) -> None:
    """A model of one's own is added to what suites, names and globs choose."""
    monkeypatch.chdir(folder)
    assert main.run(["plan", *options, "--mode", "inference", "--device", "cpu", "--json"]) == 0

    cases = [json.loads(line)["case"] for line in capsys.readouterr().out.splitlines()]
    assert [f"{case['suite']}/{case['model']}" for case in cases] == models


REFUSED: dict[str, tuple[list[str], str]] = {
    "no such file": (
        ["--model", "mime.py"],
        "--model mime.py: there is no such file. Close: mine.py, ",
    ),
    "a folder": (["--model", "nets/deep.py"], "--model nets/deep.py: there is no such file."),
    "no such file with a function": (["--model", "mime.py:wide"], "--model mime.py:wide: there is no such file."),
    "no such file as a suite": (["--suite", "mime.py"], "--suite mime.py: there is no such file."),
    "no such module": (["--model", "nets.deep.tinny:wide"], "there is no module nets.deep.tinny, neither in "),
    "no such package": (["--model", "no_package_4a.b:c"], "there is no module no_package_4a, neither in "),
    "a name without a suite": (["--model", "mine.py", "--model", "mlp"], "--model mlp: in which suite?"),
    "a name alone": (["--model", "mlp"], "Name a suite with --suite"),
    "a name of no suite": (["--suite", "toy", "--model", "mine.py", "--model", "mpl"], "--model mpl: no such model"),
    "small": (["--model", "mine.py", "--preset", "small"], "--preset small: user/mine has no small preset"),
    "attention": (["--model", "mine.py", "--attention", "eager"], "a model file chooses its own attention"),
}


@pytest.mark.parametrize(("options", "said"), REFUSED.values(), ids=REFUSED)
def test_refused(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], options: list[str], said: str
) -> None:
    """What is not there, or cannot be had of a model of one's own, is refused before anything starts."""
    monkeypatch.chdir(folder)

    assert main.run(["run", *options, "--device", "cpu"]) == 2
    assert said in capsys.readouterr().err
