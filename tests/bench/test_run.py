"""`bench run`: every option changes what is run and is seen in the record, or is refused."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import typer

from bench import main, run
from harness.journal import replay
from harness.record import (
    CompileScope,
    DeviceProfile,
    EndReason,
    Mode,
    Outcome,
    Precision,
    Record,
    Reference,
    Run,
    StopReason,
)
from tests.fakes import Driver
from tests.server import factory

QUICK = ["run", "--suite", "toy", "--model", "mlp", "--mode", "inference", "--backend", "eager", "--max-seconds", "0.2"]


class Bench:
    """Runs `bench` in an empty folder and reads what it left."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys
        self.code = 0
        self.out = self.err = ""

    def __call__(self, *args: str) -> Bench:
        self._capsys.readouterr()
        self.code = main.run(args)
        self.out, self.err = self._capsys.readouterr()
        return self

    @property
    def journal(self) -> Path:
        return max(Path("runs").glob("*.jsonl"))

    @property
    def run(self) -> Run:
        return replay(self.journal).run

    @property
    def records(self) -> list[Record]:
        return list(replay(self.journal).records.values())


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Bench:
    monkeypatch.chdir(tmp_path)
    return Bench(capsys)


def _compile(record: Record) -> Any:
    assert record.compile is not None, record.text
    return record.compile


OBSERVED: dict[str, tuple[list[str], Callable[[Record], object], object]] = {
    "fp32": (["--fp32"], lambda r: (r.case.precision, r.observed.parameter_dtypes), (Precision.FP32, ("float32",))),
    "amp": (["--amp"], lambda r: (r.case.amp_dtype, r.observed.autocast_dtype), ("bfloat16", "bfloat16")),
    "bf16": (["--bf16"], lambda r: (r.observed.parameter_dtypes, r.observed.output_dtypes), (("bfloat16",),) * 2),
    "fp16": (["--fp16"], lambda r: (r.observed.parameter_dtypes, r.observed.output_dtypes), (("float16",),) * 2),
    "mode": (["--mode", "training"], lambda r: (r.observed.training, r.observed.grad), (True, True)),
    "backend eager": (["--backend", "eager"], lambda r: _compile(r).compiled_by, "dynamo"),
    "backend aot_eager": (["--backend", "aot_eager"], lambda r: _compile(r).compiled_by, "aot_autograd"),
    "backend none": (
        ["--backend", "none"],
        lambda r: (
            *(r.compile, r.accuracy, r.timing, r.derived.flags),
            (r.observed.eager_step_s or 0) > 0,
            (r.observed.peak_bytes or 0) > 1 << 20,
        ),
        (None, None, None, (), True, True),
    ),
    "compile scope module": ([], lambda r: _compile(r).frames[0].file.endswith("harness/worker/step.py"), False),
    "compile scope step": (
        ["--compile-scope", "step"],
        lambda r: _compile(r).frames[0].file.endswith("harness/worker/step.py"),
        True,
    ),
    "optimizer none": (["--mode", "training"], lambda r: r.observed.parameters_changed, None),
    "optimizer sgd": (["--mode", "training", "--optimizer", "sgd"], lambda r: r.observed.parameters_changed, True),
    "optimizer adam": (["--mode", "training", "--optimizer", "adam"], lambda r: r.observed.parameters_changed, True),
    "static": ([], lambda r: _compile(r).frames[0].symbols, 0),
    "dynamic": (["--dynamic"], lambda r: _compile(r).frames[0].symbols > 0, True),
    "deterministic": (["--deterministic"], lambda r: r.observed.deterministic, True),
    "not deterministic": ([], lambda r: r.observed.deterministic, False),
    "device": (["--device", "cpu"], lambda r: (r.case.device, r.observed.device_type), ("cpu", "cpu")),
    "preset": (["--preset", "small"], lambda r: (r.case.preset, r.observed.batch_size), ("small", 2)),
    "batch size": (["--batch-size", "3"], lambda r: (r.case.batch_size, r.observed.batch_size), (3, 3)),
    "timeout": (["--timeout", "0.05"], lambda r: r.outcome, Outcome.TIMEOUT),
    "precision target": (
        ["--precision-target", "0.9", "--max-seconds", "20"],
        lambda r: r.timing and r.timing.stop_reason,
        StopReason.PRECISE,
    ),
    "max seconds": (
        ["--precision-target", "0.000001", "--max-seconds", "0.05"],
        lambda r: r.timing and r.timing.stop_reason,
        StopReason.TIME_CAP,
    ),
    "only accuracy": (["--only-accuracy"], lambda r: (r.timing, r.accuracy is not None), (None, True)),
    "only performance": (
        ["--only-performance"],
        lambda r: (r.accuracy and r.accuracy.reference, r.timing is not None),
        (Reference.NONE, True),
    ),
}


@pytest.mark.parametrize(("options", "seen", "expected"), OBSERVED.values(), ids=OBSERVED)
def test_option_is_observed(
    bench: Bench, options: list[str], seen: Callable[[Record], object], expected: object
) -> None:
    """What an option asks for is seen in what the worker observed, beside the case."""
    bench(*QUICK, *options)

    assert [seen(record) for record in bench.records] == [expected], bench.records[0].text


def test_attention_is_observed(bench: Bench) -> None:
    """Which attention was asked for stands in the case, which ran in what was observed."""
    options = ["run", "--suite", "toy", "--model", "attention", "--mode", "inference", "--backend", "eager"]
    seen = []
    for kind in ("fused", "eager"):
        bench(*options, "--attention", kind, "--only-accuracy", "--json")
        (record,) = bench.records
        seen.append((record.case.attention.value, record.observed.attention_kernel))

    assert seen == [("fused", "flash_attention_for_cpu"), ("eager", "spelled out")]


@pytest.mark.inductor
def test_compile_mode_is_observed(bench: Bench) -> None:
    """The settings of a compile mode are those that inductor compiled with."""
    bench(*QUICK[:-4], "--compile-mode", "max-autotune-no-cudagraphs", "--only-accuracy")

    assert _compile(bench.records[0]).options["max_autotune"] == "True"


SELECTED: dict[str, tuple[list[str], list[str]]] = {
    "suite": (["--suite", "toy", "--mode", "inference"], ["mlp", "conv", "attention"]),
    "model": (["--suite", "toy", "--model", "c*", "--mode", "inference"], ["conv"]),
    "exclude": (["--suite", "toy", "--exclude", "c*", "--mode", "inference"], ["mlp", "attention"]),
    "limit": (["--suite", "toy", "--limit", "1"], ["mlp"]),
    "tier": (["--suite", "timm", "--tier", "quick"], ["lcnet_050", "regnety_002", "mobilenetv2_100"]),
    "shard": (["--suite", "toy", "--mode", "inference", "--shard", "2/2"], ["conv"]),
}


@pytest.mark.parametrize(("options", "models"), SELECTED.values(), ids=SELECTED)
def test_option_selects(bench: Bench, options: list[str], models: list[str]) -> None:
    """What an option leaves out is not in the plan."""
    assert bench("plan", *options, "--json").code == 0

    assert [
        json.loads(line)["case"]["model"] for line in bench.out.splitlines() if "case" in json.loads(line)
    ] == models


REFUSED: dict[str, tuple[list[str], str]] = {
    "no suite": ([], "Name a suite"),
    "suite": (["--suite", "tou"], "Close: toy"),
    "torchbench": (["--torchbench", "nowhere"], "Give the folder that holds torchbenchmark/"),
    "model": (["--suite", "toy", "--model", "mpl"], "mlp"),
    "tier": (["--suite", "toy", "--tier", "quik"], "quick"),
    "tf32": (["--suite", "toy", "--tf32"], "NVIDIA"),
    "as": (["--suite", "toy", "--as", "pytorch-2.0", "--device", "cpu"], "needs a CUDA device"),
    "as and another option": (["--suite", "toy", "--as", "pytorch-2.0", "--optimizer", "adam"], "contradicts --as"),
    "resume as": (["--as", "pytorch-2.0", "--resume", "latest"], "leave out"),
    "backend": (["--suite", "toy", "--backend", "inductr"], "Close: inductor"),
    "compile mode": (["--suite", "toy", "--compile-mode", "max"], "max-autotune"),
    "compile mode of another backend": (["--suite", "toy", "--backend", "eager", "--compile-mode", "lite"], "inductor"),
    "compile scope": (["--suite", "toy", "--compile-scope", "all"], "module"),
    "optimizer": (["--suite", "toy", "--optimizer", "lion"], "adam"),
    "optimizer in inference": (["--suite", "toy", "--mode", "inference", "--optimizer", "sgd"], "training"),
    "device": (["--suite", "toy", "--device", "a10"], "bench list devices"),
    "batch size": (["--suite", "toy", "--batch-size", "0"], "above 0"),
    "timeout": (["--suite", "toy", "--timeout", "-1"], "above 0"),
    "limit seconds": (["--suite", "toy", "--limit-seconds", "0"], "above 0"),
    "limit seconds that nothing takes": (["--suite", "toy", "--limit-seconds", "1"], "The cheapest case, toy/mlp"),
    "resume with limit seconds": (["--limit-seconds", "9", "--resume", "latest"], "leave out"),
    "tier of a preset": (["--suite", "toy", "--preset", "tiny"], "small"),
    "shard": (["--suite", "toy", "--shard", "3/2"], "1 to 2"),
    "precision target": (["--suite", "toy", "--precision-target", "0"], "between 0 and 1"),
    "max seconds": (["--suite", "toy", "--max-seconds", "0"], "above 0"),
    "both onlys": (["--suite", "toy", "--only-accuracy", "--only-performance"], "exclude each other"),
    "only half of nothing": (["--suite", "toy", "--backend", "none", "--only-accuracy"], "compiles nothing"),
    "resume with a selection": (["--suite", "toy", "--resume", "latest"], "leave out"),
    "resume nothing": (["--resume", "latest"], "Start one"),
    "database": (["--suite", "toy", "--database", "nonsense"], "atabase"),
    "unknown option": (["--siute", "toy"], "--suite"),
    "unknown mode": (["--suite", "toy", "--mode", "train"], "training"),
}


@pytest.mark.parametrize(("options", "said"), REFUSED.values(), ids=REFUSED)
def test_option_is_refused(bench: Bench, options: list[str], said: str) -> None:
    """What cannot be done is refused in one sentence that helps, before anything is measured."""
    assert bench("run", *options).code in (1, 2)

    assert said in bench.err
    assert "Traceback" not in bench.err
    assert not Path("runs").exists() or not list(Path("runs").iterdir())


def test_every_option_is_walked() -> None:
    """No option of `bench run` is without a test that shows what it does."""
    options = {name for each in typer.main.get_command(run.app).params for name in each.opts if name != "--help"}
    tables = [args for table in (OBSERVED, SELECTED, REFUSED) for args, *_ in table.values()]
    walked = {word for args in [QUICK, *tables] for word in args if word.startswith("--")}
    elsewhere = {
        "--json",
        "--database",
        "--serve",
        "--port",
        "--keep-clocks",
        "--attention",
        "--server",
        "--token-file",
    }

    assert options == walked - {"--siute"} | elsewhere


def test_serve(bench: Bench) -> None:
    """With `--serve` the dashboard's address is printed before the first model, and it ends with the run."""
    bench(*QUICK, "--only-accuracy", "--serve", "--port", "0")

    first = bench.out.splitlines()[0]
    assert first.startswith("Dashboard: http://127.0.0.1:")
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(first.removeprefix("Dashboard: "), timeout=5)


def test_keep_clocks(driver: Driver, capsys: pytest.CaptureFixture[str]) -> None:
    """The clock is held during a run if the profile says so, and not with `--keep-clocks`; a refusal is told."""
    profile = DeviceProfile(name="a100", kind="cuda", lock_clocks=True)

    with run._clock(profile, keep=True):
        assert driver.locked is None
    with run._clock(profile, keep=False):
        assert [1095, 1095] == driver.locked
    assert "" == capsys.readouterr().err
    driver.change(refuses={"nvmlDeviceSetGpuLockedClocks": 4})
    with run._clock(profile, keep=False):
        pass
    assert "bench: the clock is not held: Insufficient Permissions. With --keep-clocks" in capsys.readouterr().err


def test_database(bench: Bench, tmp_path: Path) -> None:
    """`--database` says where results go; nothing is left at the default place."""
    bench(*QUICK, "--only-accuracy", "--database", f"sqlite:///{tmp_path}/other.db")

    assert (tmp_path / "other.db").exists()
    assert not (tmp_path / "bench.db").exists()


def test_json(bench: Bench) -> None:
    """With `--json` every line of stdout is an object with schema and type, and no number is NaN."""
    bench(*QUICK, "--json")

    def refuse(word: str) -> None:
        raise AssertionError(word)

    lines = [json.loads(line, parse_constant=refuse) for line in bench.out.splitlines()]
    assert [line["type"] for line in lines] == ["run", "record", "end", "summary"]
    assert lines[-1]["rule"] == "unclipped"
    assert all(line["schema"] == 1 for line in lines)


def test_text(bench: Bench) -> None:
    """The text names pass rate, geometric mean with its interval, and where the records are."""
    bench(*QUICK)

    assert bench.code == 0
    assert "toy inference fp32 eager: 1 of 1 passed (100%)" in bench.out
    assert "of 1 model, within one launch" in bench.out
    assert "geometric mean, unclipped: " in bench.out
    assert "PyTorch 2.0" not in bench.out
    assert str(bench.journal) in bench.out


@pytest.mark.parametrize(("reference", "count"), [("pytorch-2.0", 1), (None, 0)])
def test_last_words(capsys: pytest.CaptureFixture[str], reference: str | None, count: int) -> None:
    """A run made with --as ends with what it says beside the published figures, as text and as a line of JSON."""
    asked = factory.make_run(1, reference=reference)
    progress, journal = SimpleNamespace(records={}), SimpleNamespace(path="runs/x.jsonl")

    run._last_words(asked, progress, EndReason.FINISHED, journal, as_json=True)
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    run._last_words(asked, progress, EndReason.FINISHED, journal, as_json=False)
    text = capsys.readouterr().out

    assert [line["type"] for line in lines] == ["summary"] + ["comparison"] * count
    assert all(line["schema"] == 1 for line in lines)
    assert text.count("not comparable with the figures of PyTorch 2.0: device: AMD EPYC 7R13, not A100; ") == count


def test_unchecked_is_no_pass(bench: Bench) -> None:
    """Timed without a check, a model is not counted as passed."""
    bench(*QUICK, "--only-performance")

    assert "0 of 1 passed" in bench.out
    assert "1 not checked" in bench.out


def test_emulated_has_no_mean(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the machine emulates the precision, there is no geometric mean, and the reason is said."""
    bench(*QUICK, "--fp16")
    if not bench.records[0].observed.emulated:
        pytest.skip("this machine has instructions for float16")

    assert "geometric mean, unclipped: none (1 emulated)" in bench.out


def test_nothing_passed(bench: Bench, tmp_path: Path) -> None:
    """When nothing passed the exit code is 4, and the failure is told with its cause."""
    model = tmp_path / "broken.py"
    model.write_text("def build():\n    raise ValueError('no such weights')\n\ndef inputs():\n    return (), {}\n")

    assert bench("run", "--suite", str(model), "--mode", "inference", "--backend", "eager").code == 4
    assert "model_fail_to_load" in bench.out
    assert "no such weights" in bench.out


def test_resume_of_a_finished_run(bench: Bench) -> None:
    """Resuming a finished run measures nothing and says the same again."""
    bench(*QUICK)
    before = bench.journal.read_text().count('"type":"record"')

    assert bench("run", "--resume", "latest").code == 0
    assert bench.journal.read_text().count('"type":"record"') == before
    assert "1 of 1 passed" in bench.out


def test_limit_seconds(bench: Bench) -> None:
    """A limit says on stderr what fits; the rest are rows with the reason, outside of the pass rate, also when resumed.
    What was measured then is the past of the next run that measures the same."""
    options = ["run", "--suite", "toy", "--mode", "inference", "--backend", "eager", "--only-accuracy"]

    assert bench(*options, "--limit-seconds", "30").code == 0

    why = "left out: does not fit into --limit-seconds 30"
    assert "--limit-seconds 30: 1 of 3 cases fit, about 23 s together (known by: 1 default)" in bench.err
    assert [(r.case.model, r.outcome, r.text) for r in bench.records[1:]] == [
        ("conv", Outcome.SKIPPED, why),
        ("attention", Outcome.SKIPPED, why),
    ]
    assert "1 of 1 passed (100%); 2 skipped" in bench.out
    assert f"skipped: {why} (2)" in bench.out
    assert "skipped 2, missing 0" in bench.out
    assert bench("run", "--resume", "latest").code == 0
    assert "1 of 1 passed" in bench.out

    bench(*options, "--limit-seconds", "30", "--limit", "1")
    assert "(known by: 1 past); left out: none" in bench.err


def test_modes(bench: Bench) -> None:
    """Without `--mode` both modes are planned."""
    bench("plan", "--suite", "toy", "--model", "mlp", "--json")

    lines = [json.loads(line) for line in bench.out.splitlines()]
    assert [line["case"]["mode"] for line in lines if "case" in line] == [Mode.INFERENCE, Mode.TRAINING]


def test_compile_scope_words() -> None:
    """The scopes are those of the glossary."""
    assert [scope.value for scope in CompileScope] == ["module", "step"]
