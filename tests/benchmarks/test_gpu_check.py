"""The prepared check of a GPU, its whole path on an accelerator of ours: no GPU is needed, and none was used."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from benchmarks import gpu_check
from harness import config
from harness.journal import read, replay
from harness.record import Outcome, Record, Run
from suites.spec import MODES, Precision
from tests.fakes import NVML, Driver

ROOT = Path(__file__).parents[2]

PROFILE = """
kind = "tests.fakes:Accelerator"
batch_divisor = 32
lock_clocks = true
tf32 = true
"""


@dataclass
class Check:
    """Runs the script, and reads what it left."""

    folder: Path

    def __call__(self, **settings: str) -> subprocess.CompletedProcess[str]:
        devices = self.folder / "configs" / "devices"
        devices.mkdir(parents=True, exist_ok=True)
        (devices / "fake.toml").write_text(PROFILE)
        plain = {
            name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "CUDA_VISIBLE_DEVICES")
        }
        given = {
            "PYTHON": sys.executable,
            "PYTHONPATH": str(NVML),
            "NVML_STUB": str(Driver(self.folder / "nvml.json").path),
            "BENCH_CONFIGS": str(self.folder / "configs"),
            "DEVICE": "fake",
            "OUT": str(self.out),
            "SUITE": "toy",
            "MODELS": "mlp",
            "BACKEND": "aot_eager",
            "SAMPLING_S": "0.2",
        }
        command = [str(ROOT / "benchmarks" / "gpu_check.sh")]
        environment = plain | given | settings
        return subprocess.run(
            command, capture_output=True, text=True, check=False, cwd=self.folder, env=environment, timeout=560
        )

    @property
    def out(self) -> Path:
        return self.folder / "found"

    @property
    def runs(self) -> list[Run]:
        return [replay(path).run for path in sorted(self.out.glob("*.jsonl.gz"))]

    @property
    def records(self) -> list[Record]:
        lines = [line for path in sorted(self.out.glob("*.jsonl.gz")) for line in read(path)]
        return [line for line in lines if isinstance(line, Record)]

    @property
    def summary(self) -> str:
        return (self.out / "summary.md").read_text(encoding="utf-8")


@pytest.fixture
def check(tmp_path: Path) -> Check:
    return Check(tmp_path)


@pytest.mark.timeout(600)
def test_whole_path(check: Check) -> None:
    """From a plain checkout: both modes, FP32 with and without TF32, and AMP, each with events beside the clock, the
    device's conditions, memory, and the clock left alone; no parent touched CUDA; what was refused stops nothing."""
    done = check()
    records = check.records

    assert 0 == done.returncode, done.stdout + done.stderr
    assert {Outcome.PASS} == {record.outcome for record in records}
    assert {(mode, precision) for mode in MODES for precision in (Precision.FP32, Precision.AMP)} == {
        (record.case.mode, record.case.precision) for record in records
    }
    assert {True, False} == {record.case.tf32 for record in records}
    for record in records:
        assert record.timing is not None
        assert len(record.timing.eager_s) == len(record.timing.eager_events_s) == len(record.timing.compiled_events_s)
        assert record.conditions is not None
        assert (1410.0, None) == (record.conditions.clock_median_mhz, record.conditions.lock)
        assert record.memory is not None
    assert all("--keep-clocks" in run.command for run in check.runs)
    assert '"history"' not in (check.folder / "nvml.json").read_text()  # nobody set the clock

    assert "GPU 0: NVIDIA A100-SXM4-40GB, 40 GiB, compute capability (8, 0), driver 580.95.05" in check.summary
    assert "one model, reduce-overhead | 2 |" in check.summary  # aot_eager has no modes
    assert "toy/mlp training amp(bfloat16) aot_eager | cpu |" in check.summary  # where the tensors were
    assert "| no |" in check.summary
    assert "| yes |" not in check.summary
    assert "Nothing was left out." in check.summary
    assert "4 of 4 batches ran" in done.stdout


def test_time_is_up(check: Check) -> None:
    """What does not fit is not begun, and is named; nothing passed, so the check failed."""
    began = time.monotonic()
    done = check(SECONDS_LIMIT="20")

    assert 1 == done.returncode
    assert time.monotonic() - began < 120  # the import of torch, on a busy machine
    assert "Did not fit: one model, FP32 and AMP" in done.stdout
    assert "- one model, TF32" in check.summary
    assert [] == check.records


def test_batches() -> None:
    """Each of the models is asked for in inference and training, FP32 with and without TF32, AMP, and reduce-overhead;
    the first of them in all of that before any other."""
    planned = list(gpu_check.batches("timm", gpu_check.MODELS, "inductor"))[1:]

    def options(model: str) -> set[str]:
        return {word for batch in planned if model in batch.options for word in batch.options} - set(gpu_check.MODELS)

    everything = {"--fp32", "--tf32", "--amp", "reduce-overhead", "inference", "training"}
    assert all(everything <= options(model) for model in gpu_check.MODELS[1:])
    assert everything - {"inference", "training"} | {"both"} <= options(gpu_check.MODELS[0])
    assert all(gpu_check.MODELS[0] in batch.options for batch in planned[:3])


def test_something_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Packages that are not there are named with the commands that install them and leave torch alone."""
    there = gpu_check.find_spec
    absent = {"alembic", "pydantic_settings", "timm"}
    monkeypatch.setattr(gpu_check, "find_spec", lambda name: None if name in absent else there(name))

    said = gpu_check.missing("timm") or ""

    assert "lacks alembic, pydantic_settings, timm." in said
    assert "-m pip install alembic pydantic-settings\n" in said
    assert "-m pip install --no-deps timm" in said
    assert "torchvision" not in said


def test_no_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    """An interpreter without torch is told from one that lacks the rest."""
    monkeypatch.setattr(gpu_check, "find_spec", lambda name: None)

    assert "has no torch. Set PYTHON" in (gpu_check.missing("timm") or "")


@pytest.mark.parametrize(
    ("printed", "words"),
    [
        ('["2.5.1", "12.1", null, false, []]', "torch 2.5.1 is older than 2.6"),
        ('["2.9.0", "13.0", null, false, ["torch.x"]]', "torch 2.9.0 has not got torch.x"),
    ],
)
def test_torch_that_will_not_do(monkeypatch: pytest.MonkeyPatch, printed: str, words: str) -> None:
    """A torch that is too old, or lacks what the worker uses, is refused in so many words."""
    monkeypatch.setattr(gpu_check, "FACTS", f"print('''{printed}''')")

    with pytest.raises(SystemExit, match=words):
        gpu_check.torch_facts()


STUBBORN = """
import signal, time
signal.signal(signal.SIGINT, lambda *_: print("asked", flush=True))
print("up", flush=True)
while True:
    time.sleep(0.1)
"""


def test_interrupted_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch that runs into the end is interrupted once, a second time, and then killed."""
    monkeypatch.setattr(gpu_check, "LAST_WORDS_S", 1.0)
    child = subprocess.Popen([sys.executable, "-c", STUBBORN], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    assert "up\n" == child.stdout.readline()
    now = time.monotonic()

    code = gpu_check._wait(child, (now + 0.5, now + 1.5))

    assert -9 == code
    assert "asked\nasked\n" == child.stdout.read()


def test_models_are_in_the_suite() -> None:
    """The five models are those of the published set."""
    assert set(gpu_check.MODELS) <= {model.name for model in config.suite("timm").models}
