"""What is written is read back as it was; nothing on the way out computes, or makes a zero of nothing."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.derive import derive_stated
from harness.formats import flat, oss_write, pytorch_write
from harness.formats.join import Imported
from harness.record import (
    Accuracy,
    DeviceProfile,
    Flag,
    Outcome,
    Record,
    Reference,
    Run,
    Side,
    Stated,
    record_id,
)
from harness.stats import Estimate
from tests.harness.formats.conftest import ACCURACY, PERFORMANCE
from tests.harness.formats.reading import DATA, EXTERNAL, by_model, imported, run_of
from tests.server.factory import RUN_ID, make_case, make_record, make_run

HELD = (
    "word",
    "speedup",
    "compiled_s",
    "compile_wall_s",
    "compiler_s",
    "memory_ratio",
    "eager_peak_bytes",
    "compiled_peak_bytes",
    "graphs",
    "graph_breaks",
    "unique_graph_breaks",
    "operators",
    "cudagraph_skips",
)
"""Fields of `Stated` that the runner's files can hold."""

MORE = ("instructions", "eager_samples_per_s", "compiled_samples_per_s", "eager_s")
"""And what the records of schema v3 hold beside them."""

RUNNER = {
    "published": sorted((DATA / "published_dashboard_cpu").glob("*.csv")),
    "output": [EXTERNAL / "pytorch_perf/expected_ci_perf_inductor_torchbench_2023-01-30_2b267fa7f2.csv"],
    "expected": [EXTERNAL / "ci_expected_accuracy/cpu_inductor_torchbench_inference.csv"],
    "by-dtype": [EXTERNAL / "xpu_accuracy_by_dtype/latest/lts_inductor_timm_models_training.csv"],
    "zeros": sorted((DATA / "cases").glob("s36-*/*.csv")),
}
RECORDS = RUNNER | {
    "coverage": [EXTERNAL / "torchdynamo_2022/expected_coverage_2022-09-12_2d338c5adc.csv"],
    "instructions": [EXTERNAL / "pytorch_perf/pr_time_benchmarks_expected_results_65a34a1d1f.csv"],
    "userbenchmark": [EXTERNAL / "torchbench_userbenchmark/group_bench_metrics_2024-03-07.json"],
    "timm": [EXTERNAL / "timm_results/benchmark-train-amp-nchw-pt112-cu113-rtx3090.csv"],
    "older": [EXTERNAL / "oss_v3_json/older/add_loop_inductor.json"],
}


def facts(runs: Iterable[Imported], held: tuple[str, ...]) -> dict[tuple[str, ...], tuple[Any, ...]]:
    """Return what is stated of each case, to the sixth decimal."""
    found = {}
    for run in runs:
        for record in run.records:
            assert record.stated is not None
            values = [getattr(record.stated, name) for name in held]
            rounded = tuple(round(value, 6) if isinstance(value, float) else value for value in values)
            case = record.case
            key = (case.suite, case.model, case.mode, case.precision, case.backend, case.variant or "", case.device)
            found[(*key, case.amp_dtype or "")] = (record.outcome, *rounded)
    return found


def as_csv(run: Run, records: Iterable[Record], folder: Path) -> list[Path]:
    paths = []
    for name, text in pytorch_write.files(run, records):
        (folder / name).write_text(text, newline="")
        paths += [folder / name] if name.endswith(".csv") else []
    return paths


def as_records(run: Run, records: Iterable[Record], folder: Path) -> list[Path]:
    path = folder / "records.jsonl"
    path.write_text("".join(f"{line}\n" for line in oss_write.lines(run, records)))
    return [path]


@pytest.mark.parametrize("name", RUNNER)
def test_runner_files_round_trip(tmp_path: Path, name: str) -> None:
    """The runner's files say what the imported ones said."""
    run = run_of(*RUNNER[name])
    back = imported(*as_csv(run.run, run.records, tmp_path))

    assert facts([run], HELD) == facts(back, HELD)


@pytest.mark.parametrize("name", RECORDS)
def test_records_round_trip(tmp_path: Path, name: str) -> None:
    """Records of schema v3 say what the imported files said, of every format."""
    run = run_of(*RECORDS[name])
    back = imported(*as_records(run.run, run.records, tmp_path))

    assert facts([run], HELD + MORE) == facts(back, HELD + MORE)


def measured() -> tuple[Run, list[Record]]:
    """A run of ours: one that passed, and one of each other ending."""
    endings: list[tuple[str, dict[str, Any]]] = [
        ("pass", {}),
        ("fail_accuracy", {}),
        ("oom", {"side": Side.EAGER}),
        ("timeout", {}),
        ("crash", {}),
        ("model_fail_to_load", {}),
        ("skipped", {}),
    ]
    cases = [make_case(f"net_{outcome}", suite="timm") for outcome, _ in endings]
    records = [make_record(case, outcome, **fields) for case, (outcome, fields) in zip(cases, endings, strict=True)]
    return make_run(cases), records


def test_measured_runs_as_runner_files(tmp_path: Path) -> None:
    """What we measured is read back from the runner's files in upstream's words; a crash is a failure to run there."""
    run, records = measured()
    back = by_model(record for found in imported(*as_csv(run, records, tmp_path)) for record in found.records)
    passed, original = back["net_pass"], records[0]

    assert {
        "net_pass": "pass",
        "net_fail_accuracy": "fail_accuracy",
        "net_oom": "oom",
        "net_timeout": "timeout",
        "net_crash": "fail_to_run",
        "net_model_fail_to_load": "model_fail_to_load",
    } == {model: record.outcome.value for model, record in back.items()}
    assert passed.stated is not None
    assert original.derived.speedup is not None
    assert original.derived.speedup.value == pytest.approx(passed.stated.speedup, abs=1e-6)
    assert original.numbers.compile_wall_s == pytest.approx(passed.numbers.compile_wall_s)
    assert original.numbers.graph_breaks == passed.numbers.graph_breaks


def test_skips_are_passes_only_when_asked_for() -> None:
    """A skipped case has no row, unless it is asked for as a word that the runner's readers count as a pass."""
    case = make_case("net")
    run, records = make_run([case]), [make_record(case, "skipped")]

    assert ["README.txt"] == [name for name, _ in pytorch_write.files(run, records)]
    assert any(
        "pass_due_to_skip" in text for name, text in pytorch_write.files(run, records, skips=True) if ".csv" in name
    )


def test_headers_are_the_runners() -> None:
    """Headers, six decimals, line ends and placeholder rows are exactly the runner's."""
    run, records = measured()
    files = dict(pytorch_write.files(run, records))
    accuracy, performance = (
        next(text for name, text in files.items() if target in name) for target in ("accuracy", "performance")
    )
    lines = performance.split("\n")

    assert (ACCURACY, PERFORMANCE) == (accuracy.split("\n")[0], lines[0])
    assert "\r" not in accuracy + performance
    assert lines[1].startswith("cpu,net_pass,4,1.250000,16.000000,27.300000,1.333333,0.067109,0.050332,")
    assert "cpu,net_timeout,0,0.000000,0.000000" + ",0" * 12 in lines
    assert "cpu,net_timeout,0,timeout" + ",0" * 9 in accuracy.split("\n")
    assert "batch_size 0" in files["README.txt"]


def test_unchecked_has_no_status() -> None:
    """A case that was held against nothing is in the performance file alone: no pass is made up."""
    case = make_case("net")
    record = make_record(case, accuracy=None, flags=[Flag.NO_REFERENCE])

    names = [name for name, _ in pytorch_write.files(make_run([case]), [record])]

    assert not [name for name in names if "accuracy" in name]
    assert [name for name in names if "performance" in name]


def test_measured_runs_as_records(tmp_path: Path) -> None:
    """Records of schema v3 keep what the schema has no field for: interval, samples, how a case ended in our words."""
    run, records = measured()
    written = [json.loads(line) for line in oss_write.lines(run, records)]
    (speedup,) = [each for each in written if each["metric"]["name"] == "speedup"]
    (samples,) = [each for each in written if each["metric"]["name"] == "abs_latency_samples"]
    back = by_model(record for found in imported(*as_records(run, records, tmp_path)) for record in found.records)

    assert records[0].derived.speedup is not None
    assert [records[0].derived.speedup.value] == speedup["metric"]["benchmark_values"]
    assert {"low", "high", "n", "method"} <= speedup["metric"]["extra_info"].keys()
    assert records[0].timing is not None
    assert len(records[0].timing.compiled_s) == len(samples["metric"]["benchmark_values"])
    assert "timm_models" == speedup["model"]["origins"][0]
    assert speedup["benchmark"]["extra_info"]["output"].endswith("timm_models_float32_inference_cpu_performance.csv")
    assert all(isinstance(value, str) for value in speedup["benchmark"]["extra_info"].values())
    assert {record.case.model: record.outcome for record in records} == {
        model: record.outcome for model, record in back.items()
    }
    assert Side.EAGER == back["net_oom"].side
    assert "crash while compiling" == back["net_crash"].text


figures = st.floats(1e-3, 1e6).map(lambda value: round(value, 6))
counts = st.integers(0, 10_000)


@st.composite
def stated_records(draw: st.DrawFn) -> list[Record]:
    """Records of cases that passed or failed accuracy, with figures of which any may be absent."""
    maybe = {name: draw(st.none() | figures) for name in ("compiled_s", "compile_wall_s", "memory_ratio", "compiler_s")}
    whole = ("graphs", "graph_breaks", "unique_graph_breaks", "operators", "cudagraph_skips")
    maybe |= {name: draw(st.none() | counts) for name in whole}
    if maybe["compiled_s"] is not None:
        maybe["compiled_s"] = round(maybe["compiled_s"] / 1e3, 9)
    peaks = {
        name: draw(st.none() | st.integers(1, 10**6).map(lambda mb: mb * 1000))
        for name in ("eager_peak_bytes", "compiled_peak_bytes")
    }
    word = draw(st.sampled_from(["pass", "fail_accuracy"]))
    stated = Stated(word=word, speedup=draw(figures), **maybe, **peaks)
    outcome = Outcome(word)
    case = make_case(
        draw(st.text("abc_./- =é\"',", min_size=1).map(str.strip).filter(lambda name: name and name[0] != "#")),
        suite="timm",
    )
    return [
        make_record(
            case,
            outcome,
            id=record_id(RUN_ID, case.id, 1),
            stage=None,
            text=None,
            failure=None,
            compile=None,
            memory=None,
            timing=None,
            accuracy=Accuracy(reference=Reference.STATED),
            derived=derive_stated(outcome, stated, True),
            stated=stated,
        )
    ]


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(records=stated_records())
def test_any_record_round_trips(tmp_path_factory: pytest.TempPathFactory, records: list[Record]) -> None:
    """Whatever figures a record has, the runner's files and the records of schema v3 give them back."""
    run = make_run([records[0].case], source="pytorch-csv", profile=DeviceProfile(name="cuda", kind="cuda"))
    here = Imported(run, tuple(records), (), 0, ())
    wanted = list(facts([here], HELD).values())

    assert wanted == list(facts(imported(*as_csv(run, records, tmp_path_factory.mktemp("csv"))), HELD).values())
    assert wanted == list(facts(imported(*as_records(run, records, tmp_path_factory.mktemp("oss"))), HELD).values())


# -- tables -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "cell"),
    [
        ("=HYPERLINK(1)", "'=HYPERLINK(1)"),
        ("+cmd", "'+cmd"),
        ("-cmd", "'-cmd"),
        ("@SUM(A1)", "'@SUM(A1)"),
        ("\t=1", "'\t=1"),
        ("\r=1", "'\r=1"),
        ("-1.5", "-1.5"),
        ("+2e-3", "+2e-3"),
        ("resnet-18", "resnet-18"),
        ("", ""),
    ],
)
def test_no_cell_is_a_formula(text: str, cell: str) -> None:
    """What a spreadsheet would compute is text there; numbers stay numbers."""
    assert cell == flat.neutral(text)


def test_tables() -> None:
    """CSV and JSON hold a row per record with every column; absent is empty or null."""
    case = make_case('=1+1"')
    run, records = make_run([case]), [make_record(case), make_record(make_case("b"), "timeout")]
    as_text = [*csv.DictReader(io.StringIO("".join(flat.csv_text(flat.rows(run, records)))))]
    as_json = json.loads("".join(flat.json_text(flat.rows(run, records))))

    assert [[*flat.TYPES]] * 4 == [[*row] for row in (*as_text, *as_json)]
    assert ("'=1+1\"", '=1+1"') == (as_text[0]["model"], as_json[0]["model"])
    assert ("1.25", "", None) == (as_text[0]["speedup"], as_text[1]["speedup"], as_json[1]["speedup"])
    for row in as_json:
        assert all(value is None or isinstance(value, flat.TYPES[name]) for name, value in row.items())


def test_empty_tables() -> None:
    """A run without records is a header, or an empty array."""
    assert 1 == "".join(flat.csv_text([])).count("\n")
    assert [] == json.loads("".join(flat.json_text([])))


def test_interval_is_exported_or_absent() -> None:
    """A measured speedup has its bounds; one that others state has none, and none are made up."""
    case = make_case()
    measured_row, stated_row = (
        next(flat.rows(make_run([case]), [make_record(case, **fields)]))
        for fields in (
            {},
            {"derived": derive_stated(Outcome.PASS, Stated(speedup=1.5), True), "stated": Stated(speedup=1.5)},
        )
    )

    assert measured_row["speedup_low"] < measured_row["speedup"] < measured_row["speedup_high"]  # type: ignore[operator]
    assert (1.5, None, None, None) == tuple(
        stated_row[name] for name in ("speedup", "speedup_low", "speedup_high", "speedup_n")
    )


def test_parquet(tmp_path: Path) -> None:
    """A Parquet file has typed columns."""
    parquet = pytest.importorskip("pyarrow.parquet")
    case = make_case()
    flat.write_parquet(flat.rows(make_run([case]), [make_record(case)]), tmp_path / "x.parquet")

    found = parquet.read_table(tmp_path / "x.parquet")

    assert (1, [*flat.TYPES]) == (found.num_rows, found.column_names)
    assert ("double", "int64", "bool") == tuple(
        str(found.schema.field(name).type) for name in ("speedup", "graphs", "valid")
    )
    assert found.to_pylist()[0]["speedup"] == 1.25


def test_estimates_of_others_have_no_interval() -> None:
    """What is derived from stated figures is marked as such."""
    derived = derive_stated(Outcome.PASS, Stated(speedup=1.5), False)

    assert Estimate(1.5, None, None, None, "stated by others") == derived.speedup
    assert (True, (Flag.NO_REFERENCE,)) == (derived.valid, derived.flags)
    assert "no speedup is stated" == derive_stated(Outcome.PASS, Stated(), True).invalid_why
