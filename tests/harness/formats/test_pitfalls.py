"""What goes wrong when the upstream runner's files are read: twenty traps, each by its number."""

from __future__ import annotations

import json
from typing import Any

import pytest

from harness.errors import BenchError
from harness.formats.facts import Where
from harness.record import Outcome, Side, Stage
from suites.spec import Mode, Precision
from tests.harness.formats.conftest import ACCURACY, PERFORMANCE, Put
from tests.harness.formats.reading import by_model, imported, run_of

NAME = "inductor_no_cudagraphs_timm_models_bfloat16_inference_cuda_h100_{}"
TIMED = "cuda,net,32,1.437500,6.250000,11.900000,1.080000,1.620000,1.500000,112,1,0,0,0,0,0,0"


def record_json(metric: dict[str, Any] | None = None, **fields: Any) -> str:
    values: dict[str, Any] = {
        "benchmark": {
            "name": "TorchInductor",
            "mode": "inference",
            "dtype": "bfloat16",
            "extra_info": {"device": "cuda", "output": "out/" + NAME.format("performance.csv")},
        },
        "model": {"name": "net", "type": "OSS model", "backend": "inductor", "origins": ["timm_models"]},
        "metric": metric or {"name": "speedup", "benchmark_values": [1.4375]},
    }
    return json.dumps(values | fields)


def accuracy_json(word: str, **extra: Any) -> dict[str, Any]:
    return {"name": "accuracy", "extra_info": {"benchmark_values": [word]} | extra}


def test_01_padding_of_placeholder_rows(put: Put) -> None:
    """Zeros of a row with batch size 0 are no numbers: it failed."""
    path = put(NAME.format("performance.csv"), PERFORMANCE, TIMED, "cuda,broken,0,0.000000,0.000000" + ",0" * 12)
    record = by_model(run_of(path).records)["broken"]

    assert (Outcome.FAIL_TO_RUN, None) == (record.outcome, record.observed.batch_size)
    assert record.stated is not None
    assert {"word", "notes", "rows"} >= {name for name, value in record.stated if value not in (None, {}, (), True)}


def test_02_tag_shift(put: Put) -> None:
    """A placeholder row lacks the cell of the tag: its status is read all the same."""
    header = "dev,name,batch_size,tag,accuracy,calls_captured"
    path = put("accuracy.csv", header, "cuda,net,4,night,pass,112", "cuda,huge,0,timeout,0,0")
    records = by_model(run_of(path).records)

    assert (Outcome.PASS, Outcome.TIMEOUT) == (records["net"].outcome, records["huge"].outcome)
    assert "timeout" == (records["huge"].stated and records["huge"].stated.word)


@pytest.mark.parametrize(
    ("word", "outcome", "stage"),
    [
        ("model_fail_to_load", Outcome.MODEL_FAIL_TO_LOAD, Stage.LOAD),
        ("timeout", Outcome.TIMEOUT, None),
        ("pass", Outcome.FAIL_TO_RUN, Stage.TIME),
        ("pass_due_to_skip", Outcome.SKIPPED, None),
    ],
)
def test_03_speedup_zero_joins_accuracy(put: Put, word: str, outcome: Outcome, stage: Stage | None) -> None:
    """A speedup of 0 says not why; the accuracy file of the same upload does, where it can."""
    run = run_of(
        put(NAME.format("performance.csv"), PERFORMANCE, "cuda,net,0,0.000000,0.000000" + ",0" * 12),
        put(NAME.format("accuracy.csv"), ACCURACY, f"cuda,net,4,{word}" + ",0" * 9),
    )
    (record,) = run.records

    assert (outcome, stage) == (record.outcome, record.stage)
    assert record.numbers.speedup is None


def test_04_two_meanings_of_compilation_latency(put: Put) -> None:
    """The accuracy file's seconds are the compiler's own, the performance file's are of the wall: two figures."""
    run = run_of(
        put(NAME.format("performance.csv"), PERFORMANCE, TIMED),
        put(NAME.format("accuracy.csv"), ACCURACY, "cuda,net,4,pass,112,1,0,0,0,0,0,0,8.412345"),
    )
    stated = run.records[0].stated

    assert stated is not None
    assert (11.9, 8.412345) == (stated.compile_wall_s, stated.compiler_s)
    assert 11.9 == run.records[0].numbers.compile_wall_s


def test_04_batches_of_both_files(put: Put) -> None:
    """The batch that was timed is the case's; that of the check stands with the check."""
    run = run_of(
        put(NAME.format("performance.csv"), PERFORMANCE, TIMED),
        put(NAME.format("accuracy.csv"), ACCURACY, "cuda,net,4,pass,112,1,0,0,0,0,0,0,8.412345"),
    )
    (record,) = run.records

    assert (32, 4) == (record.observed.batch_size, record.accuracy and record.accuracy.batch_size)


def test_05_phases_are_text(put: Put) -> None:
    """Seconds by phase come as text in JSON records, under their right names."""
    metric = {"name": "phase_codegen", "extra_info": {"benchmark_values": ["3.870000"]}}
    stated = run_of(put("x_compilation_metrics.json", record_json(metric=metric))).records[0].stated

    assert stated is not None
    assert {"phase_codegen": 3.87} == stated.phases_s


@pytest.mark.parametrize(("cells", "phases"), [("1.2,5.1", {"a": 1.2, "b": 5.1}), ("1.2,0", {})])
def test_05_phases_in_csv(put: Put, cells: str, phases: dict[str, float]) -> None:
    """In CSV a row that was filled up may be another model's columns: then no phase is taken."""
    name = NAME.format("performance_compilation_metrics.csv")
    run = run_of(put(name, "dev,name,batch_size,a,b", f"cuda,net,32,{cells}", "cuda,other,16,4.9,12.7"))
    stated = by_model(run.records)["net"].stated

    assert stated is not None
    assert phases == stated.phases_s


def test_06_changed_header(put: Put) -> None:
    """Cells beyond the width at which a row was written are padding, not zeros."""
    old = "cuda,old,32,1.200000,6.250000,11.900000" + ",0" * 11
    records = by_model(run_of(put("performance.csv", PERFORMANCE, old, TIMED)).records)

    assert (11.9, None, None) == (
        records["old"].numbers.compile_wall_s,
        records["old"].numbers.memory_ratio,
        records["old"].numbers.graph_breaks,
    )
    assert (1.08, 0) == (records["net"].numbers.memory_ratio, records["net"].numbers.graph_breaks)


def test_06_shifted_counts(put: Put) -> None:
    """Seconds in a column of counts tell that the row was written under another header: no count of it is taken."""
    record = run_of(put("accuracy.csv", ACCURACY, "cuda,net,4,pass,112,1,0,0,0,0,0,8.412345,0")).records[0]

    assert (Outcome.PASS, None) == (record.outcome, record.numbers.graphs)
    assert record.stated is not None
    assert "written under another header" in record.stated.notes[0]


@pytest.mark.parametrize(
    ("header", "cells", "text"),
    [
        ("dev,name,batch_size,accuracy", "cuda,net,4,0.0000", '"0.0000" is no status that anybody knows'),
        ("dev,name,batch_size,accuracy", "cuda,net,4,melted", '"melted" is no status that anybody knows'),
        ("dev,name,batch_size,speedup", "cuda,net,4,infra_error", 'speedup: "infra_error" is no number'),
    ],
)
def test_07_words_and_numbers_in_the_wrong_column(put: Put, header: str, cells: str, text: str) -> None:
    """A number for a status and a status for a number are kept as they are written, and called unknown."""
    record = run_of(put("x.csv", header, cells)).records[0]

    assert (Outcome.UNKNOWN, text) == (record.outcome, record.text)
    assert record.stated is not None
    assert cells.split(",")[-1] in record.stated.rows[0].cells.values()


def test_08_timeout_record_without_mode(put: Put) -> None:
    """A record of a timeout says nothing of its configuration: the name of its file does."""
    bare = {
        "benchmark": {"name": "TorchInductor", "mode": "", "dtype": "", "extra_info": {}},
        "model": {"name": "slow", "type": "OSS model", "backend": "", "origins": ["timm_models"]},
        "metric": accuracy_json("timeout"),
    }
    run = run_of(put(NAME.format("accuracy.json"), record_json(), json.dumps(bare)))
    slow = by_model(run.records)["slow"]

    assert 1 == len({record.case.configuration for record in run.records})
    assert (Outcome.TIMEOUT, Mode.INFERENCE, Precision.BF16) == (slow.outcome, slow.case.mode, slow.case.precision)
    (alone,) = run_of(put("x.json", json.dumps(bare))).records
    assert (Mode.UNKNOWN, Precision.UNKNOWN, "unknown") == (alone.case.mode, alone.case.precision, alone.case.backend)


def test_09_load_failure_is_missing_from_json(put: Put) -> None:
    """CSV and JSON of one upload are one run: what only the CSV has is in it, and nothing stands there twice."""
    run = run_of(
        put(
            NAME.format("accuracy.csv"),
            ACCURACY,
            "cuda,net,4,pass" + ",0" * 9,
            "cuda,gone,0,model_fail_to_load" + ",0" * 9,
        ),
        put(NAME.format("accuracy.json"), record_json(metric=accuracy_json("pass"))),
    )

    assert {"net": Outcome.PASS, "gone": Outcome.MODEL_FAIL_TO_LOAD} == {
        model: record.outcome for model, record in by_model(run.records).items()
    }
    assert (2, 0) == (len(run.records), run.replaced)


def test_10_attempts_and_jobs(put: Put) -> None:
    """A later attempt is current, the earlier one is kept; two metrics of two jobs are one case."""
    run_facts = {"workflow_id": 42, "head_sha": "a" * 40, "timestamp": 1790000000}
    latency = {"name": "abs_latency", "benchmark_values": [6.25]}
    run = run_of(
        put(
            "x.json",
            record_json(**run_facts, run_attempt=2, job_id=9, metric={"name": "speedup", "benchmark_values": [1.6]}),
            record_json(**run_facts, run_attempt=1, job_id=7, metric={"name": "speedup", "benchmark_values": [1.4]}),
            record_json(**run_facts, run_attempt=1, job_id=8, metric=latency),
        )
    )

    found = [(r.attempt, r.stated and r.stated.speedup, r.stated and r.stated.compiled_s) for r in run.records]
    assert [(1, 1.4, 0.00625), (2, 1.6, None)] == found
    assert 2 == len({record.id for record in run.records})


def test_10_two_workflows_are_two_runs(put: Put) -> None:
    """Records of two uploads in one file are two runs."""
    lines = [record_json(workflow_id=number, head_sha="a" * 40) for number in (1, 2)]

    assert 2 == len(imported(put("x.json", *lines)))


def test_11_variant_of_the_output(put: Put) -> None:
    """The variant stands in the name, or in the record's output; one that no list knows stays as it is written."""
    (record,) = run_of(put("x.json", record_json())).records
    (odd,) = run_of(
        put("inductor_turbo_boost_timm_models_amp_training_cuda_accuracy.csv", ACCURACY, "cuda,net,4,pass" + ",0" * 9)
    ).records

    assert ("no_cudagraphs", "cuda-h100") == (record.case.variant, record.case.device)
    assert "turbo_boost" == odd.case.variant


def test_12_one_name_in_two_suites(put: Put) -> None:
    """The suite is part of a case: a model of the same name elsewhere is another."""
    lines = [record_json(model={"name": "net", "origins": [suite]}) for suite in ("timm_models", "torchbench")]

    assert {"timm", "torchbench"} == {record.case.suite for record in run_of(put("x.json", *lines)).records}


@pytest.mark.parametrize(("device", "comparable"), [("cuda", True), ("cpu", False), ("xpu", False)])
def test_13_memory_that_is_wrong(put: Put, device: str, comparable: bool) -> None:
    """Peaks of a CPU or an XPU are kept and not compared; a zero is no peak."""
    zero = "xpu" == device
    row = TIMED.replace("cuda", device).replace(
        "1.080000,1.620000,1.500000", "0.000000,0.000000,0.000000" if zero else "1.08,162.0,150.0"
    )
    (record,) = run_of(put("performance.csv", PERFORMANCE, row)).records

    assert record.stated is not None
    assert (comparable, None if zero else 162_000_000_000) == (
        record.stated.memory_comparable,
        record.stated.eager_peak_bytes,
    )
    assert (162_000_000_000 if comparable else None) == record.numbers.eager_peak_bytes
    assert (None if zero else 1.08) == record.numbers.memory_ratio


def test_14_cut_values(put: Put) -> None:
    """A value that a database cut is the CSV's value: it is told only where the two differ by more."""
    csv = put(NAME.format("performance.csv"), PERFORMANCE, TIMED)

    for value, told in ((1.4374, 0), (1.5, 1)):
        metric = {"name": "speedup", "benchmark_values": [value]}
        (record,) = run_of(csv, put(NAME.format("performance.json"), record_json(metric=metric))).records
        assert record.stated is not None
        assert (1.4375, told) == (record.stated.speedup, len(record.stated.notes))


def test_15_empty_is_unknown(put: Put) -> None:
    """An empty number format is not float32, an empty backend not eager."""
    benchmark = {"name": "TorchInductor", "mode": "training", "dtype": "", "extra_info": {"device": "cuda"}}
    (record,) = run_of(put("x.json", record_json(benchmark=benchmark, model={"name": "net", "backend": ""}))).records

    assert (Precision.UNKNOWN, "unknown") == (record.case.precision, record.case.backend)


def test_16_empty_lines(put: Put) -> None:
    """Three empty lines stand behind each row of an expectation."""
    run = run_of(put("e.csv", "name,accuracy,graph_breaks", "", "", "", "a,pass,0", "", "", "", "b,fail_accuracy,2"))

    assert ["a", "b"] == [record.case.model for record in run.records]


@pytest.mark.parametrize("written", [["fail_accuracy"], '["fail_accuracy"]', "fail_accuracy"])
@pytest.mark.parametrize("batch", [32, "32"])
def test_17_text_after_the_upload(put: Put, written: Any, batch: Any) -> None:
    """A list, or the text of a list as a database keeps it, are the same status; so are a number and its text."""
    metric = {"name": "accuracy", "extra_info": {"benchmark_values": written}}
    benchmark = {"name": "TorchInductor", "mode": "training", "dtype": "amp", "extra_info": {"batch_size": batch}}
    (record,) = run_of(put("x.json", record_json(metric=metric, benchmark=benchmark))).records

    assert (Outcome.FAIL_ACCURACY, 32) == (record.outcome, record.observed.batch_size)


def test_18_negative_compile_seconds(put: Put) -> None:
    """Seconds of compiling may come out negative: they are kept, and marked as below what can be told."""
    (record,) = run_of(put("performance.csv", PERFORMANCE, TIMED.replace("11.900000", "-0.200000"))).records

    assert record.stated is not None
    assert -0.2 == record.stated.compile_wall_s
    assert "compilation_latency is below what can be told" in record.stated.notes
    assert record.numbers.break_even_steps is None


@pytest.mark.parametrize("text", ["nan", "inf", "-inf"])
def test_19_not_a_number(put: Put, text: str) -> None:
    """What is not finite is absent, with the reason."""
    (record,) = run_of(put("performance.csv", PERFORMANCE, TIMED.replace("1.437500", text))).records

    assert record.numbers.speedup is None
    assert record.stated is not None
    assert f"speedup: {text} is not finite" in record.stated.notes


def test_20_line_breaks_inside_quotes(put: Put) -> None:
    """Reasons of graph breaks hold line breaks and quotes: a cell ends where its quotes do."""
    reason = '"""call to\nprint, twice"""'
    run = run_of(
        put("x_graph_breaks.csv", "model,reason,user_stack", f"net,{reason},here", f"net,{reason},there", "b,z,")
    )
    stated = by_model(run.records)["net"].stated

    assert stated is not None
    assert ("call to\nprint, twice",) == stated.break_reasons


def test_two_batches_are_two_cases(put: Put) -> None:
    """A model that one file times in two batch sizes is two cases; else the batch is no part of a case, as a row that
    failed has none."""
    (first, second) = run_of(put("performance.csv", PERFORMANCE, TIMED, TIMED.replace(",32,", ",64,"))).records
    failed = "cuda,net,0,0.000000,0.000000" + ",0" * 12

    assert {32, 64} == {first.case.batch_size, second.case.batch_size}
    assert run_of(put("p/performance.csv", PERFORMANCE, TIMED)).records[0].case == (
        run_of(put("q/performance.csv", PERFORMANCE, failed)).records[0].case
    )


def test_ids_are_of_what_is_said(put: Put) -> None:
    """The same rows under another name are the same run; another figure, time or commit is another."""
    first = run_of(put("a.csv", PERFORMANCE, TIMED)).run.id
    others = [
        run_of(put("a.csv", PERFORMANCE, TIMED.replace("1.437500", "1.437600"))).run.id,
        run_of(put("a.csv", PERFORMANCE, TIMED), given=Where(commit="abc1234")).run.id,
        run_of(put("a.csv", PERFORMANCE, TIMED), given=Where(precision=Precision.AMP)).run.id,
    ]

    assert first == run_of(put("b.csv", PERFORMANCE, TIMED)).run.id
    assert 4 == len({first, *others})


def test_options_fill_and_win(put: Put) -> None:
    """What options say fills what a file does not, and wins over what it does."""
    given = Where(suite="torchbench", mode=Mode.TRAINING, precision=Precision.AMP, amp_dtype="float16", branch="b")
    run = run_of(put(NAME.format("performance.csv"), PERFORMANCE, TIMED), given=given)
    case = run.records[0].case

    assert ("torchbench", Mode.TRAINING, Precision.AMP, "float16") == (
        case.suite,
        case.mode,
        case.precision,
        case.amp_dtype,
    )
    assert ("no_cudagraphs", "cuda-h100", "b") == (case.variant, case.device, run.run.branch)


def test_side_of_an_out_of_memory(put: Put) -> None:
    """A word that names the side keeps it."""
    rows = ["cuda,a,4,OOM" + ",0" * 9, "cuda,b,4,eager_1st_run_OOM" + ",0" * 9]
    records = by_model(run_of(put("accuracy.csv", ACCURACY, *rows)).records)

    assert (Side.COMPILED, Side.EAGER) == (records["a"].side, records["b"].side)


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (("dev,name,batch_size,speedup", "cpu,,1,2.0"), "line 2: the name of the model is missing"),
        (("dev,name,batch_size,speedup", "cpu,net,1"), "line 2: 3 cells, and the header has 4"),
        (("dev,name,batch_size,speedup", "cpu,net,1,-2.0"), "line 2: speedup is -2.0, and cannot be negative"),
        (("name,accuracy,graph_breaks", "net,,0"), "line 2: the status is missing"),
        (("add_loop,count,12", "add_loop,count,many"), 'line 2: the value is "many", no number'),
        (("{broken", record_json()), "line 1: not JSON"),
        ((record_json(benchmark={"extra_info": [1]}),), "line 1: a record with a part of the wrong kind"),
    ],
)
def test_malformed(put: Put, lines: tuple[str, ...], said: str) -> None:
    """A malformed file is refused with its lines and the remedy."""
    with pytest.raises(BenchError) as caught:
        imported(put("x.json" if "{" in lines[0] else "x.csv", *lines))

    assert said in str(caught.value)
    assert "--lenient" in str(caught.value)
