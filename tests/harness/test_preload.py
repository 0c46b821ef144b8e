"""The preload: what computes while it is imported is caught before any child hangs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]

CODE = """
from harness.workers import Workers
from harness.errors import BenchError
if __name__ == "__main__":
    try:
        print(Workers(["{module}"]).host(None).environment.threads)
    except BenchError as error:
        print("refused:", error)
"""


def _host(module: str, folder: Path) -> str:
    script = folder / "host.py"
    script.write_text(CODE.format(module=module))
    done = subprocess.run(
        [sys.executable, str(script)],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
        env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"},
    )
    return done.stdout


def test_tensor_operation_in_the_preload_is_caught(tmp_path: Path) -> None:
    """A module that computes while it is imported is named; no child of that forkserver is trusted."""
    said = _host("tests.harness.preloads.computes", tmp_path)

    assert said.startswith("refused:")
    assert "tests.harness.preloads.computes" in said
    assert "started threads" in said


def test_plain_imports_are_fine(tmp_path: Path) -> None:
    """A module that only imports is no trouble."""
    assert int(_host("tests.harness.preloads.imports", tmp_path)) >= 1


def test_asking_for_gpus_touches_no_cuda() -> None:
    """A library that asks while it is imported whether there is a GPU leaves CUDA alone, which survives no fork."""
    code = "import harness.worker.preload, torch; print(torch.cuda._nvml_based_avail(), torch.cuda.is_initialized())"
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
        env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"},
    )

    assert "True False\n" == done.stdout
