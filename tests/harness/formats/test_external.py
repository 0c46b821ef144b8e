"""Every file that was met elsewhere is imported, or refused for a reason that is said; the counts are its own."""

from __future__ import annotations

import csv
import json
from collections import Counter
from pathlib import Path
from statistics import median

import pytest

from harness import rules
from harness.errors import BenchError
from harness.formats.join import Imported
from harness.record import NO_BACKEND, Outcome, Record
from harness.stats import Estimate, geometric_mean
from suites.spec import Mode, Precision
from tests.harness.formats.reading import DATA, EXTERNAL, by_model, imported, parsed, run_of

PUBLISHED = DATA / "published_dashboard_cpu"
SUITES = {"torchbench": "torchbench", "huggingface": "huggingface", "timm_models": "timm"}

REFUSED = {
    "ci_expected_accuracy/counts_derived.csv": "its columns are file, models",
    "ci_expected_accuracy/malformed_in_the_wild/ROCm_ee04104d2d_cpu_inductor_torchbench_inference.csv": (
        "lines 77 and 145: a mark of a merge conflict"
    ),
    "sources.csv": "its columns are file, repository",
    "timm_results/pairs_derived.json": "an array",
    "torchbench_userbenchmark/console_summary_2023-12-05.json": "source, note, sections",
    "xpu_accuracy_by_dtype/counts_derived.csv": "its columns are file, well_formed_rows",
}
EMPTY = {"oss_v3_json/mock.json"}


def whole(path: Path) -> list[Imported]:
    """Import a file by itself, once for all tests."""
    if path not in _WHOLE:
        _WHOLE[path] = imported(path)
    return _WHOLE[path]


_WHOLE: dict[Path, list[Imported]] = {}
FILES = [path for path in sorted(EXTERNAL.rglob("*")) if path.suffix in (".csv", ".json")]
HISTORIES = sorted((EXTERNAL / "ci_expected_accuracy/dated_2023").iterdir())
PAIRS = json.loads((EXTERNAL / "timm_results/pairs_derived.json").read_text())


def counts(name: str) -> dict[str, dict[str, str]]:
    with (EXTERNAL / name / "counts_derived.csv").open() as file:
        return {row["file"]: row for row in csv.DictReader(file)}


def speedups(run: Imported) -> list[Estimate]:
    found = [record.numbers.speedup for record in run.records if record.derived.valid]
    return [each for each in found if each is not None]


def test_every_file() -> None:
    """Each of the files is one run or more, holds nothing, or is refused; which of these is known beforehand."""
    refused: dict[str, str] = {}
    empty: set[str] = set()
    for path in FILES:
        name = str(path.relative_to(EXTERNAL))
        try:
            runs = whole(path)
        except BenchError as error:
            refused[name] = str(error)
            continue
        empty |= set() if runs else {name}
        assert all(run.records and run.run.source and run.run.plan for run in runs), name

    assert EMPTY == empty
    assert REFUSED.keys() == refused.keys()
    assert all(reason in refused[name] for name, reason in REFUSED.items())


def test_expected_outcomes_are_counted_right() -> None:
    """Models, passes, skips, failures by word and graph breaks of every list are those counted by hand."""
    listed = counts("ci_expected_accuracy")
    checked = 0
    for name, row in listed.items():
        if "malformed" in name:
            continue
        records = whole(EXTERNAL / name)[0].records
        words = Counter(record.stated.word for record in records if record.stated)
        failing = dict(pair.split("=") for pair in row["failing_by_status"].split(";") if pair)
        breaks = sum(record.numbers.graph_breaks or 0 for record in records)
        outcomes = Counter(record.outcome for record in records)

        assert (int(row["models"]), int(row["pass"])) == (len(records), outcomes[Outcome.PASS]), name
        assert int(row["pass_due_to_skip"]) == outcomes[Outcome.SKIPPED], name
        assert int(row["graph_breaks_total"]) == breaks, name
        assert {word: int(count) for word, count in failing.items()} == {
            word: count for word, count in words.items() if word not in ("pass", "pass_due_to_skip")
        }, name
        checked += 1

    assert checked > 130


def test_outcomes_by_number_format_are_counted_right() -> None:
    """A column is a configuration: each has the passes that were counted by hand, in one run."""
    formats = {
        "float32": (Precision.FP32, None),
        "bfloat16": (Precision.BF16, None),
        "float16": (Precision.FP16, None),
        "amp_bf16": (Precision.AMP, "bfloat16"),
        "amp_fp16": (Precision.AMP, "float16"),
    }
    for name, row in counts("xpu_accuracy_by_dtype").items():
        (run,) = whole(EXTERNAL / name)
        passing = Counter(
            (record.case.precision, record.case.amp_dtype)
            for record in run.records
            if record.stated is not None and (record.stated.word or "").startswith("pass")
        )

        assert 5 * int(row["well_formed_rows"]) == len(run.records), name
        for pair in row["passing_by_dtype"].split(";"):
            dtype, count = pair.split("=")
            assert int(count) == passing[formats[dtype]], (name, dtype)


@pytest.mark.parametrize("folder", HISTORIES, ids=lambda path: path.name)
def test_versions_are_a_history(folder: Path) -> None:
    """Each version of a list is a run of its own, at its commit and that commit's day, of one and the same cases."""
    paths = sorted(folder.glob("*.csv"))
    runs = [run for path in paths for run in whole(path)]

    assert [(path.name[:10], path.stem[11:]) for path in paths] == [
        (run.run.started_at.date().isoformat(), run.run.commit) for run in runs
    ]
    assert len(paths) == len({run.run.id for run in runs})
    (configuration,) = {record.case.configuration for run in runs for record in run.records}
    assert (folder.name.endswith("training"), "dynamic" in folder.name) == (
        configuration.mode == Mode.TRAINING,
        configuration.dynamic,
    )
    common = set.intersection(*({record.case.id for record in run.records} for run in runs))
    assert len(common) > 30


def test_histories_are_twelve() -> None:
    """There are 105 versions of twelve lists, and no two of them are one run."""
    paths = sorted((EXTERNAL / "ci_expected_accuracy/dated_2023").rglob("*.csv"))
    runs = [run for path in paths for run in whole(path)]

    assert (105, 105) == (len(runs), len({run.run.id for run in runs}))
    assert 12 == len({(record.case.suite, record.case.configuration) for run in runs for record in run.records[:1]})


def test_versions_that_are_given_together_stay_apart() -> None:
    """Lists of one commit are runs of their own, as when each is given by itself."""
    paths = [path for folder in HISTORIES[:2] for path in folder.glob("2023-05-01_aafc6ce8cc.csv")]

    assert 2 == len(paths)
    assert [whole(path)[0].run.id for path in paths] == [run.run.id for run in imported(*paths)]


def test_published_averages_come_out_of_the_import() -> None:
    """The twelve averages that were published for these rows come out of the imported run, by the rule of 2022."""
    printed = json.loads((PUBLISHED / "published_summary.json").read_text())
    run = run_of(*sorted(PUBLISHED.glob("*.csv")))
    found = {each.suite: each.aggregates for each in rules.by_rule(run.run, newest(run.records), RULE)}

    for theirs, ours in SUITES.items():
        each = found[ours]
        assert printed["pass_rate"][theirs] == f"{each.pass_rate:.0%}, {each.passed}/{each.rows}"
        assert printed["geomean_speedup"][theirs] == f"{each.speedup:.2f}x"
        assert printed["mean_compilation_time_s"][theirs] == f"{each.compile_s:.2f}"
        assert printed["compression_ratio"][theirs] == f"{each.memory_ratio:.2f}x"


RULE = rules.rule("upstream-2022")


def newest(records: tuple[Record, ...]) -> dict[str, Record]:
    return {record.case.id: record for record in records}


def test_pair_of_timm_results() -> None:
    """Eager and compiled files of one machine are one run; speedups come from samples per second."""
    (pair,) = [each for each in PAIRS if "pt240-cu124-rtx4090" in each["eager"]]
    run = run_of(*(EXTERNAL / "timm_results" / pair[side] for side in ("eager", "compiled")))
    found = speedups(run)
    mean = geometric_mean(found)

    assert pair["models_both"] == len(found)
    assert isinstance(mean, Estimate)
    assert pair["geomean_speedup_by_samples_per_sec"] == pytest.approx(mean.value, abs=1e-6)
    assert pair["median_speedup"] == pytest.approx(median(each.value for each in found), abs=1e-6)
    noted = [(record, record.stated.notes) for record in run.records if record.stated]
    differing = [record for record, notes in noted if any("batch sizes" in note for note in notes)]
    assert pair["different_batch_size"] == len(differing)
    assert {(None, None)} == {(record.numbers.eager_s, record.numbers.compiled_s) for record in differing}
    assert {"inductor"} == {record.case.backend for record in run.records}


def test_timm_results_alone() -> None:
    """An eager file alone is eager alone: samples per second, no speedup, versions and machine of its name."""
    run = run_of(EXTERNAL / "timm_results/benchmark-train-amp-nchw-pt112-cu113-rtx3090.csv")
    record = by_model(run.records)["tinynet_e"]

    assert (Mode.TRAINING, Precision.AMP, NO_BACKEND) == (record.case.mode, record.case.precision, record.case.backend)
    assert record.stated is not None
    assert (10001.12, 512) == (record.stated.eager_samples_per_s, record.observed.batch_size)
    assert record.numbers.speedup is None
    assert ("1.1.2", "rtx3090") == (run.run.environment.versions["torch"], run.run.environment.product)


def test_runner_output_of_2023() -> None:
    """Dated output of the runner: speedup, seconds of compiling, and eager time as their product."""
    run = run_of(EXTERNAL / "pytorch_perf/expected_ci_perf_inductor_torchbench_2023-01-30_2b267fa7f2.csv")
    record = by_model(run.records)["BERT_pytorch"]

    assert ("2023-01-30", "2b267fa7f2") == (run.run.started_at.date().isoformat(), run.run.commit)
    assert record.stated is not None
    stated = record.stated
    assert (2.6028, 41.0046, 1.1965) == (stated.speedup, stated.compile_wall_s, stated.memory_ratio)
    assert 0.0222879 == pytest.approx(stated.compiled_s)
    assert 0.0222879 * 2.6028 == pytest.approx(stated.eager_s)
    assert (Outcome.PASS, None) == (record.outcome, record.accuracy)


def test_expected_speedups() -> None:
    """Rows that are commented out are none; the machine stands in the column's name."""
    run = run_of(EXTERNAL / "pytorch_perf/expected_ci_speedup_inductor_torchbench_cpu_0ac1a35240.csv")

    assert 16 == len(run.records)
    assert "timm_vision_transformer" not in by_model(run.records)
    assert "cpu-c7i_metal_24xl" == run.run.profile.name
    assert {True, False} == {record.case.dynamic for record in run.records}


def test_instruction_counts() -> None:
    """Counts without a header, with their margin."""
    run = run_of(EXTERNAL / "pytorch_perf/pr_time_benchmarks_expected_results_65a34a1d1f.csv")
    stated = by_model(run.records)["add_loop_eager"].stated

    assert (23, "65a34a1d1f") == (len(run.records), run.run.commit)
    assert stated is not None
    assert (3378000000, 0.1) == (stated.instructions, stated.other["noise_margin"])


def test_userbenchmark() -> None:
    """Words in place of numbers are how a case ended; a time limit is one, the rest nobody knows."""
    run = run_of(EXTERNAL / "torchbench_userbenchmark/group_bench_metrics_2024-03-07.json")
    outcomes = Counter(record.outcome for record in run.records)

    assert (306, 19, 101, 186) == (
        len(run.records),
        outcomes[Outcome.TIMEOUT],
        outcomes[Outcome.UNKNOWN],
        outcomes[Outcome.PASS],
    )
    assert 3 == len({record.case.configuration for record in run.records})
    assert ("2.3.0a0+git2ed1b17", "NVIDIA PG509-210") == (
        run.run.environment.versions["torch"],
        run.run.environment.product,
    )
    assert run.run.commit == "2ed1b1747a0afa73310846c1172489e9467bec91"


def test_console_speedups() -> None:
    """An empty cell is no zero: those models are not in the mean, whatever the console printed."""
    run = run_of(EXTERNAL / "torchbench_userbenchmark/console_speedups_2023-12-05.csv")
    of = [record for record in run.records if record.case.variant == "dynamic"]
    found = [record.numbers.speedup for record in of if record.numbers.speedup]

    assert (46, 40) == (len(of), len(found))
    assert {Outcome.UNKNOWN} == {record.outcome for record in of if not record.numbers.speedup}


def test_coverage() -> None:
    """Graphs and operators of 2022; nothing was checked, so nothing counts as passed."""
    run = run_of(EXTERNAL / "torchdynamo_2022/expected_coverage_2022-07-11_7e1d440939.csv")
    record = by_model(run.records)["alexnet"]

    assert (1, 23, None) == (record.numbers.graphs, record.numbers.operators, record.accuracy)
    assert record.stated is not None
    assert {"graph_calls": 1.0, "total_ops": 23.0, "pct_ops": 1.0, "pct_time": 0.9934} == record.stated.other


@pytest.mark.parametrize("name", ["add_loop_inductor.json", "add_loop_inductor_gpu.json"])
def test_older_records(name: str) -> None:
    """Parts that are spelt as lists are read as the objects they became."""
    run = run_of(EXTERNAL / "oss_v3_json/older" / name)
    (record,) = run.records

    assert ("pr_time_benchmarks", "inductor", name.removesuffix(".json")) == (
        record.case.suite,
        record.case.backend,
        record.case.model,
    )
    assert record.stated is not None
    assert record.stated.instructions in (24640407850, 23355059519)


def test_a_record_brings_its_runner() -> None:
    """A record's own machine is the run's."""
    run = run_of(EXTERNAL / "oss_v3_json/do_not_overwrite_runners_info.json")

    assert ("Apple iPhone 15-iOS 18.0", "unknown") == (run.run.profile.name, run.run.profile.kind)
    assert "xnnpack_q8" == run.records[0].case.backend


def test_no_records() -> None:
    """Objects without the required parts are passed over, each with its place."""
    found = parsed(EXTERNAL / "oss_v3_json/mock.json")

    assert ([], [1, 2, 3, 4]) == ([*found.facts], [each.line for each in found.skipped])
