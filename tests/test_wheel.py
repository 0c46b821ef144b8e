"""The wheel, installed into an empty environment outside the checkout: it has all that it needs but torch."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from harness.journal import Journal
from tests.harness.runs import make_run
from tests.harness.test_journal import make_record

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the wheel and its pinned dependencies, and nothing else."""
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    shutil.copytree(
        ROOT,
        source,
        ignore=shutil.ignore_patterns(
            ".git", ".venv", "build", "dist", "runs", "examples", "tests", "*.egg-info", "*.db*"
        ),
    )
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    subprocess.run([*pip, "wheel", "--no-deps", "-w", str(folder), str(source)], check=True)
    (wheel,) = folder.glob("*.whl")
    subprocess.run([sys.executable, "-m", "venv", str(folder / "venv")], check=True)
    here = folder / "venv" / "bin" / "python"
    pip[0] = str(here)
    subprocess.run([*pip, "install", "-c", str(ROOT / "constraints.txt"), str(wheel)], check=True)
    return here


def bench(python: Path, folder: Path, *args: str) -> subprocess.CompletedProcess[str]:
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHONPATH", "BENCH_"))}
    command = [str(python.parent / "bench"), *args]
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120, check=False
    )


def test_no_torch(python: Path) -> None:
    """The base install brings no torch, and importing the command needs none."""
    code = "import importlib.util, bench.main; print(importlib.util.find_spec('torch'))"
    done = subprocess.run([str(python), "-c", code], capture_output=True, text=True, check=True, cwd="/")
    assert done.stdout.strip() == "None"


def test_finds_its_configs(python: Path, tmp_path: Path) -> None:
    """The packaged suites and devices are found from any folder."""
    done = bench(python, tmp_path, "list", "models", "--suite", "timm", "--json")
    assert done.returncode == 0, done.stderr
    assert sum('"type": "model"' in line for line in done.stdout.splitlines()) == 61


def test_own_configs_win(python: Path, tmp_path: Path) -> None:
    """A suite file in the user's own `configs/` hides the packaged one of that name, and only that one."""
    own = tmp_path / "configs" / "suites"
    own.mkdir(parents=True)
    text = (ROOT / "configs" / "suites" / "toy.toml").read_text()
    (own / "toy.toml").write_text(text.replace('name = "mlp"', 'name = "my_mlp"').replace('"mlp"', '"my_mlp"'))
    done = bench(python, tmp_path, "list", "models", "--json")
    assert done.returncode == 0, done.stderr
    names = [json.loads(line)["name"] for line in done.stdout.splitlines()]
    assert "my_mlp" in names
    assert "mlp" not in names
    assert "lcnet_050" in names


def test_run_without_torch(python: Path, tmp_path: Path) -> None:
    """Measuring without torch is refused in a sentence that says what to install."""
    done = bench(python, tmp_path, "run", "--suite", "toy")
    assert done.returncode == 1
    assert "compile-bench[run]" in done.stderr
    assert "Traceback" not in done.stderr


def test_imports_and_serves(python: Path, tmp_path: Path) -> None:
    """Migrations, templates and static files are in the wheel: a journal is imported and its page is served."""
    run = make_run()
    with Journal(tmp_path / "a.jsonl") as journal:
        journal.write(run)
        journal.write(make_record(run, run.plan[0]))
    assert bench(python, tmp_path, "import", "a.jsonl").returncode == 0

    command = [str(python.parent / "bench"), "serve", "--port", "0"]
    server = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        address = server.stdout.readline().split()[-1]
        with urllib.request.urlopen(f"{address}runs/{run.id}", timeout=20) as page:
            text = page.read().decode()
        assert "mlp" in text
        (path,) = re.findall(r'src="/(static/plotly[^"]+)"', text)
        with urllib.request.urlopen(f"{address}{path}", timeout=20) as script:
            assert len(script.read()) > 1_000_000
    finally:
        server.terminate()
        server.wait(20)
