"""The command itself: verbs, help, and mistakes that end in one sentence."""

from __future__ import annotations

import subprocess
import sys

import pytest

from bench import main


def test_help_names_every_verb(capsys: pytest.CaptureFixture[str]) -> None:
    """`bench --help` names every verb; without a verb it does too, and the exit code says that one was missing."""
    for args, code in (["--help"], 0), ([], 2):
        assert main.run(args) == code
        out = capsys.readouterr().out
        assert all(verb in out for verb in main.VERBS)


@pytest.mark.parametrize("verb", main.VERBS)
def test_every_verb_has_help(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Every verb explains its options."""
    assert main.run([verb, "--help"]) == 0
    assert "Usage" in capsys.readouterr().out


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    """`bench --version` names the version that is installed."""
    assert main.run(["--version"]) == 0
    assert capsys.readouterr().out.startswith("bench 0.")


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["rum"], "Close: run"),
        (["run", "--siute", "toy"], "--suite"),
        (["list", "model"], "models"),
        (["import"], "FILE"),
    ],
)
def test_mistakes_are_sentences(args: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A misspelt verb, option or argument is one sentence that says what is close, and exit code 2."""
    assert main.run(args) == 2
    err = capsys.readouterr().err
    assert said in err
    assert "Traceback" not in err


def test_verbs_are_imported_when_called() -> None:
    """Asking for help loads neither torch nor the server."""
    heavy = "{'torch', 'fastapi', 'sqlalchemy'}"
    code = f"import sys; from bench import main; main.run(['--help']); print({heavy} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "set()"


def test_reader_that_leaves(tmp_path: object) -> None:
    """A reader that closes the pipe early, such as `head`, is no traceback."""
    command = f"{sys.executable} -m bench.main list models | head -n 1"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert done.stdout.startswith("model")
    assert "Traceback" not in done.stderr
