"""What the pages show works: their files are written, their commands are run."""

from __future__ import annotations

import doctest
import re
import shlex
from pathlib import Path
from textwrap import dedent

import pytest

from bench import main
from harness.journal import replay
from harness.record import Outcome

ROOT = Path(__file__).parents[1]
OWN_MODEL = ROOT / "docs" / "your-own-model.md"
ANALYSIS = ROOT / "docs" / "analysis.md"
QUICK = ["--device", "cpu", "--backend", "eager", "--only-accuracy"]


MODELS = (["user/tiny"], ["user/tiny", "user/nets:narrow", "user/nets:wide"], ["mine/wide"])
"""What each command of the page runs."""


def blocks(page: Path) -> list[str]:
    """Return the indented blocks of a page, in order, without their indent."""
    return [dedent(block).strip() + "\n" for block in re.findall(r"(?:^ {4}.*\n|^\n(?= {4}))+", page.read_text(), re.M)]


def files(page: Path) -> dict[str, str]:
    """Return the files of a page: blocks that begin with a comment that is a path."""
    found = {}
    for block in blocks(page):
        name = re.match(r"# (\S+\.(?:py|toml))\n", block)
        if name:
            found[name[1]] = block
    return found


def commands(page: Path) -> list[list[str]]:
    """Return the arguments of each `$ bench ...`."""
    return [shlex.split(line) for block in blocks(page) for line in re.findall(r"^\$ bench (.*)$", block, re.M)]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with the files of the page."""
    for name, text in files(OWN_MODEL).items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_files_of_the_page() -> None:
    """The page on one's own models shows these files and these commands."""
    assert ["tiny.py", "nets.py", "configs/suites/mine.toml", "mine.py"] == [*files(OWN_MODEL)]
    assert len(MODELS) == len(commands(OWN_MODEL))


@pytest.mark.parametrize(
    ("command", "models"),
    [*zip(commands(OWN_MODEL), MODELS, strict=True)],
    ids=["file", "several", "suite"],
)
def test_own_model(folder: Path, command: list[str], models: list[str]) -> None:
    """The models that the page shows pass in both modes, run as it says, and their answers depend on their inputs."""
    assert 0 == main.run([*command, *QUICK])

    (journal,) = (folder / "runs").glob("*.jsonl")
    records = [*replay(journal).records.values()]
    assert [name for name in models for _ in range(2)] == [record.case.name for record in records]
    assert {(Outcome.PASS, ())} == {(record.outcome, record.derived.flags) for record in records}


def test_analysis(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The page on analysis imports journals of examples, and its questions are answered as it shows."""
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("BENCH_DATABASE", raising=False)
    (load,) = commands(ANALYSIS)
    assert 0 == main.run(load)

    failed, tried = doctest.testfile(
        str(ANALYSIS), module_relative=False, encoding="utf-8", optionflags=doctest.NORMALIZE_WHITESPACE
    )

    assert 0 == failed < 10 < tried


def test_pages_are_listed() -> None:
    """The front page names every page."""
    text = (ROOT / "README.md").read_text()

    assert [] == [page.name for page in (ROOT / "docs").glob("*.md") if f"docs/{page.name}" not in text]
