"""Published figures: the file says what they are, and our code of their rule gives what was printed."""

from __future__ import annotations

import csv
import json
import math
from pathlib import Path

import pytest
from pydantic import ValidationError

from harness import config
from harness.errors import BenchError, UsageError
from harness.plan import Matrix
from harness.record import DeviceProfile, OptimizerKind
from harness.reference import Read, Row, Rule, aggregate, weighted
from harness.stats import NoEstimate
from suites.spec import Attention, Mode, Precision

PYTORCH = config.reference("pytorch-2.0")
RULE = PYTORCH.rule
DATA = Path(__file__).parent.parent / "data" / "published_dashboard_cpu"
PRINTED = json.loads((DATA / "published_summary.json").read_text())
SUITES = ("torchbench", "huggingface", "timm_models")
A100 = DeviceProfile(name="a100", kind="cuda", tf32=True, amp_dtype="bfloat16", batch_divisor=4)


def rows_of(suite: str) -> list[Row]:
    """Read the published rows of one suite; `nan` is absent."""

    def number(text: str) -> float | None:
        return None if math.isnan(float(text)) else float(text)

    with (DATA / f"{suite}_float32_inference_cpu_single_core.csv").open() as file:
        return [
            Row(
                accuracy=line["accuracy"],
                speedup=number(line["speedup"]),
                compile_s=number(line["compilation_latency"]),
                memory_ratio=number(line["compression_ratio"]),
            )
            for line in csv.DictReader(file)
        ]


@pytest.mark.parametrize("suite", SUITES)
def test_published_averages(suite: str) -> None:
    """The rule of 2022 gives the twelve published averages of the published rows, to the printed digit."""
    found = aggregate(rows_of(suite), RULE)

    assert PRINTED["pass_rate"][suite] == f"{found.pass_rate:.0%}, {found.passed}/{found.rows}"
    assert PRINTED["geomean_speedup"][suite] == f"{found.speedup:.2f}x"
    assert PRINTED["mean_compilation_time_s"][suite] == f"{found.compile_s:.2f}"
    assert PRINTED["compression_ratio"][suite] == f"{found.memory_ratio:.2f}x"


@pytest.mark.parametrize(("suite", "mean"), [*zip(SUITES, ("0.926", "0.764", "0.854"), strict=True)])
def test_clipping_lifts_the_mean(suite: str, mean: str) -> None:
    """Unclipped, the same rows give a mean below 1: the published ones are above for the clipping alone."""
    unclipped = RULE.model_copy(update={"least_speedup": None})

    assert mean == f"{aggregate(rows_of(suite), unclipped).speedup:.3f}"


def test_slow_downs_are_raised_to_one() -> None:
    """0.5, 1 and 8 average to the cube root of 8."""
    rows = [Row("pass", speedup) for speedup in (0.5, 1.0, 8.0)]

    assert aggregate(rows, RULE).speedup == pytest.approx(2.0)


def test_failures_are_dropped_not_zero() -> None:
    """A failure changes the pass rate, and no mean; `pass_due_to_skip` passes."""
    passing = [Row("pass", 2.0, 10.0, 1.5), Row("pass_due_to_skip", 8.0, 20.0, 0.5)]
    failing = [Row("fail_accuracy", 0.0, 99.0, 9.0), Row("0.0000", 0.0), Row("eager_fail_to_run")]

    found = aggregate(passing + failing, RULE)

    assert (5, 2, 0.4, 2) == (found.rows, found.passed, found.pass_rate, found.models)
    assert [4.0, 15.0, 1.0] == pytest.approx([found.speedup, found.compile_s, found.memory_ratio])


@pytest.mark.parametrize(
    ("rows", "rate", "why"),
    [
        ([], None, "no model passes"),
        ([Row("fail_to_run"), Row("timeout", 2.0)], 0.0, "no model passes"),
        ([Row("pass")], 1.0, "no passing model has a value"),
    ],
)
def test_nothing_to_average(rows: list[Row], rate: float | None, why: str) -> None:
    """Where nothing passes or nothing was timed there is no figure, but the reason: never 0 or 1."""
    found = aggregate(rows, RULE)

    assert rate == found.pass_rate
    assert [NoEstimate(why)] * 3 == [found.speedup, found.compile_s, found.memory_ratio]


def test_passing_model_without_a_time() -> None:
    """A pass that was not timed counts as passed, and is in no mean."""
    found = aggregate([Row("pass", 4.0), Row("pass")], RULE)

    assert (2, 1, 4.0) == (found.passed, found.models, pytest.approx(found.speedup))


@pytest.mark.parametrize("speedup", [math.nan, math.inf, -1.0])
def test_no_number(speedup: float) -> None:
    """What is no number is refused: raised to 1 it would pass for a measurement."""
    with pytest.raises(ValueError, match="holds a number that is none"):
        aggregate([Row("pass", speedup)], RULE)


def test_zero_without_clipping() -> None:
    """A speedup of 0 makes an unclipped geometric mean 0."""
    rule = RULE.model_copy(update={"least_speedup": None})

    assert 0.0 == aggregate([Row("pass", 0.0), Row("pass", 2.0)], rule).speedup


def test_weights() -> None:
    """Three quarters of AMP and one of FP32: 1.51 and 1.21 make 1.435, published as 1.43."""
    both = weighted({Precision.AMP: 1.51, Precision.FP32: 1.21}, RULE)

    assert 1.435 == pytest.approx(both)


def test_weights_of_nothing() -> None:
    """Without one of its parts there is no weighted figure; the reason names the part."""
    assert NoEstimate("amp: not measured") == weighted({Precision.FP32: 1.2}, RULE)
    missing = NoEstimate("no model passes")
    assert NoEstimate("fp32: no model passes") == weighted({Precision.AMP: 1.5, Precision.FP32: missing}, RULE)


def test_weights_are_a_whole() -> None:
    """Weights that do not add up to 1 are refused."""
    with pytest.raises(ValidationError, match="weights must add up to 1"):
        Rule(name="r", about="", weights={Precision.AMP: 0.75, Precision.FP32: 0.5})


def test_the_announcement() -> None:
    """The file of PyTorch 2.0 says everything: its configuration, its set, its rule, its figures and their sources."""
    assert {"fp32": (True, None), "amp": (False, "float16")} == {
        precision.value: (numbers.tf32, numbers.amp_dtype) for precision, numbers in PYTORCH.precisions.items()
    }
    assert (Mode.TRAINING, "inductor", "reduce-overhead", OptimizerKind.NONE, Attention.EAGER) == (
        PYTORCH.mode,
        PYTORCH.backend,
        PYTORCH.compile_mode,
        PYTORCH.optimizer,
        PYTORCH.attention,
    )
    assert ("cuda", "A100", 1) == (PYTORCH.device.kind, PYTORCH.device.product, PYTORCH.batch_divisor)
    assert 163 == sum(PYTORCH.models.values())
    assert {Precision.AMP: 0.75, Precision.FP32: 0.25} == RULE.weights
    assert ["93 %", "1.21x", "1.51x", "1.43x"] == [figure.printed for figure in PYTORCH.published]
    assert all(figure.read == Read.PRIMARY and figure.reading for figure in PYTORCH.published)
    assert any("2 December 2022" in source for source in PYTORCH.source)


TEXT = (Path(__file__).parents[2] / "configs" / "references" / "pytorch-2.0.toml").read_text()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("tf32 = true", "tf23 = true", r'unknown field "precision\.fp32\.tf23"'),
        ("[precision.amp]", "[precision.amb]", "precision"),
        ("timm = 61", "timm = 0", r'field "set.timm" is 0: .*greater than 0'),
        ("amp = 0.75", "amp = 0.8", r"weights must add up to 1"),
        ('read = "primary"', 'read = "hearsay"', r"hearsay"),
        ('product = "A100"', "", r'field "device.product" is missing'),
    ],
)
def test_broken_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, old: str, new: str, message: str) -> None:
    """A broken file is one sentence that names the file and what is wrong in it."""
    path = tmp_path / "references" / "mine.toml"
    path.parent.mkdir()
    path.write_text(TEXT.replace(old, new, 1))
    monkeypatch.setenv("BENCH_CONFIGS", str(tmp_path))

    with pytest.raises(BenchError, match=message) as caught:
        config.reference("mine")

    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)


def test_list_of_timm_is_whole() -> None:
    """The suite holds as many of its models as were measured."""
    assert PYTORCH.models["timm"] == len(config.suite("timm").models)


def test_asked() -> None:
    """What it fixes are fields of a matrix."""
    matrix = Matrix(suites=("timm",), **PYTORCH.asked())

    assert (("fp32", "amp"), True, ("training",)) == (matrix.precisions, matrix.tf32, matrix.modes)
    assert ("reduce-overhead", "eager", None) == (matrix.compile_mode, matrix.attention, matrix.batch_size)


@pytest.mark.parametrize(
    ("said", "message"),
    [
        (
            {"optimizer": OptimizerKind.ADAM},
            r"--optimizer adam contradicts --as pytorch-2\.0, which means --optimizer none",
        ),
        ({"compile_mode": "default"}, r"--compile-mode default contradicts .* means --compile-mode reduce-overhead"),
        ({"attention": Attention.FUSED}, r"--attention fused contradicts .* --attention eager"),
        ({"dynamic": True}, r"--dynamic contradicts .*, which means no --dynamic\. Leave one of them out\."),
        ({"batch_size": 8}, r"--batch-size 8 contradicts .* no --batch-size"),
        ({"modes": (Mode.INFERENCE, Mode.TRAINING)}, r"--mode both contradicts .* --mode training"),
        ({"precisions": (Precision.AMP,)}, r"--amp contradicts .* --fp32 --amp"),
        ({"precisions": (Precision.FP32, Precision.BF16)}, r"--fp32 --bf16 contradicts"),
    ],
)
def test_contradictions(said: dict, message: str) -> None:
    """An option that says otherwise is refused, and both are named."""
    with pytest.raises(UsageError, match=message):
        PYTORCH.agreed(said)


def test_the_same_said_twice() -> None:
    """Options that say the same are no contradiction."""
    said = {"optimizer": OptimizerKind.NONE, "precisions": (Precision.FP32, Precision.AMP), "tf32": True}

    assert PYTORCH.asked() == PYTORCH.agreed(said)


def test_profile_is_asked_for_its_formats() -> None:
    """On a profile of the same kind it brings its AMP format and the list's batch sizes, and changes nothing else."""
    changes = {"amp_dtype": "float16", "batch_divisor": 1}

    assert A100.model_copy(update=changes) == PYTORCH.on(A100)


@pytest.mark.parametrize(
    ("profile", "message"),
    [
        (
            {"name": "cpu", "kind": "cpu"},
            r"--as pytorch-2\.0 needs a CUDA device, and cpu is of kind cpu\. Name one with",
        ),
        ({"name": "mac", "kind": "mps"}, r"mac is of kind mps"),
        ({"tf32": False}, r"allows TF32 in FP32, and device a100 has no TF32 units"),
    ],
)
def test_other_devices(profile: dict, message: str) -> None:
    """A device that cannot be what was measured is refused with what to do."""
    with pytest.raises(UsageError, match=message):
        PYTORCH.on(A100.model_copy(update=profile))
