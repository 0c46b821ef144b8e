"""Result files as people have met them: each is read as its `expect.json` asks."""

from __future__ import annotations

import json
import math
import os
import time
from pathlib import Path
from typing import Any

import pytest

from harness import rules
from harness.commits import grouped, normalised, resolve
from harness.errors import BenchError
from harness.formats import flat, oss_write
from harness.formats.facts import Where
from harness.formats.text import when
from harness.record import Outcome, Record
from harness.stats import Estimate, geometric_mean
from harness.summary import Summary, summarise
from tests.harness.formats.conftest import Put
from tests.harness.formats.reading import by_model, case, imported, parsed, run_of


def expect(number: int) -> Any:
    return json.loads((case(number) / "expect.json").read_text())


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def summary_of(*paths: Path) -> Summary:
    run = run_of(*paths)
    (found,) = summarise(run.run.plan, {record.case.id: record for record in run.records})
    return found


def mean_of(records: list[Record]) -> float:
    mean = geometric_mean([each.numbers.speedup for each in records if each.derived.valid and each.numbers.speedup])
    assert isinstance(mean, Estimate)
    return mean.value


def test_words_in_number_columns() -> None:
    """s28: a word or an empty cell is no value and no zero, zeros are a failed run; all rows are in the denominator."""
    wanted, records = expect(28), by_model(run_of(case(28) / "performance.csv").records)
    summary = summary_of(case(28) / "performance.csv")

    assert (wanted["rows"], wanted["usable_speedups"]) == (summary.planned, summary.speedup and summary.speedup.n)
    assert summary.speedup is not None
    assert wanted["geomean_of_usable"] == pytest.approx(summary.speedup.value, abs=1e-6)
    assert (Outcome.UNKNOWN, 'speedup: "infra_error" is no number') == (records["net_b"].outcome, records["net_b"].text)
    assert (Outcome.UNKNOWN, "speedup: the cell is empty") == (records["net_c"].outcome, records["net_c"].text)
    assert (Outcome.FAIL_TO_RUN, None) == (records["net_d"].outcome, records["net_d"].numbers.speedup)


def test_same_model_twice() -> None:
    """s29: the last row counts, and how many were replaced is told."""
    wanted, run = expect(29), run_of(case(29) / "accuracy.csv")

    assert wanted["final"] == {model: record.outcome for model, record in by_model(run.records).items()}
    assert wanted["replaced"] == run.replaced


def test_line_ends_marks_blanks_comments() -> None:
    """s30: a mark at the start, other line ends, blank lines, comments and blanks around cells are no content."""
    records = by_model(run_of(case(30) / "edited.csv").records)

    assert expect(30)["rows"] == {
        model: [record.outcome.value, record.numbers.graph_breaks] for model, record in records.items()
    }


def test_dressed_numbers() -> None:
    """s31: dress is taken off, what is not finite is absent, a negative time is an error with its line."""
    path = case(31) / "dressed.csv"
    records = by_model(run_of(path, lenient=True).records)

    with pytest.raises(BenchError, match=r"line 6: abs_latency is -3\.0, and cannot be negative"):
        run_of(path)
    assert expect(31)["speedups"] == {
        model: record.stated and record.stated.speedup for model, record in records.items()
    }
    stated = records["net_d"].stated
    assert stated is not None
    assert 1.2345 == stated.compiled_s


@pytest.mark.parametrize("name", ["mixed.jsonl", "array.json", "single.json", "empty.json"])
def test_layouts(name: str) -> None:
    """s32: an array, an object, lines, or arrays among lines are the same records; other lines are named."""
    wanted, found = expect(32)[name], parsed(case(32) / name)
    if isinstance(wanted, dict):
        assert (wanted["bad_lines"], wanted["skipped_lines"]) == (
            [each.line for each in found.bad],
            [each.line for each in found.skipped],
        )
        wanted = wanted["records"]

    assert wanted == len(found.facts)
    assert wanted == sum(len(run.records) for run in imported(case(32) / name, lenient=True))


def test_not_a_number_on_the_way_out() -> None:
    """s33: what is not finite is absent on the way out, with the reason in the record; the JSON is strict."""
    wanted, run = expect(33), run_of(case(33) / "results.csv")
    refuse = {"parse_constant": lambda word: pytest.fail(f"{word} is no JSON")}
    table = json.loads("".join(flat.json_text(flat.rows(run.run, run.records))), **refuse)
    records = [json.loads(line, **refuse) for line in oss_write.lines(run.run, run.records)]

    assert wanted["models"] == len(table)
    notes = [note for record in run.records if record.stated for note in record.stated.notes]
    assert wanted["non_finite_cells"] == sum("is not finite" in note for note in notes)
    assert 3 == sum(row["speedup"] is not None for row in table)
    assert {"net_a", "net_d", "net_e"} == {
        each["model"]["name"] for each in records if each["metric"]["name"] == "speedup"
    }


@pytest.mark.parametrize("zone", ["UTC", "Asia/Kolkata", "America/Los_Angeles"])
def test_moments_in_any_zone(monkeypatch: pytest.MonkeyPatch, put: Put, zone: str) -> None:
    """s34: a moment without a zone is UTC, wherever it is read; so are the days in names."""
    monkeypatch.setitem(os.environ, "TZ", zone)
    time.tzset()
    try:
        found = {row["name"]: when(row["timestamp"]) for row in rows(case(34) / "times.jsonl")}
        dated = run_of(put("a/inductor_timm_training/2023-05-18_dafa009c3c.csv", "name,accuracy", "net,pass"))
    finally:
        monkeypatch.undo()
        time.tzset()

    assert {name: when(text) for name, text in expect(34)["utc"].items()} == found
    assert when("2023-05-18T00:00:00Z") == dated.run.started_at


def test_commits() -> None:
    """s35: short and capital ids are the commit they begin; none, ambiguous and marked ones stay by themselves."""
    wanted, found = expect(35), rows(case(35) / "runs.jsonl")
    groups = [tuple(found[place]["run"] for place in group) for group in grouped([row["commit"] for row in found])]
    known = [commit for row in found if (commit := normalised(row["commit"]))]

    assert tuple(wanted["same_commit"]) in groups
    assert all((run,) in groups for run in [*wanted["without_commit_kept_apart"], 6, 7])
    assert wanted["ambiguous"] == [
        row["run"] for row in found if row["commit"] and resolve(normalised(row["commit"]) or "", known).ambiguous
    ]


def test_runs_without_a_commit(put: Put) -> None:
    """s35: two runs without a commit are two runs."""
    row = ("dev,name,batch_size,speedup", "cpu,net,1,1.5")
    at = [Where(time=when(f"2024-05-0{day}")) for day in (4, 5)]
    first, second = (run_of(put("a.csv", *row), given=given) for given in at)

    assert (None, None) == (first.run.commit, second.run.commit)
    assert first.run.id != second.run.id


def test_zeros_failures_and_skips() -> None:
    """s36: the mean is of what passed, unclipped; clipped, and with skips as passes, only by the rule of 2022."""
    wanted, paths = expect(36), (case(36) / "accuracy.csv", case(36) / "performance.csv")
    run, summary = run_of(*paths), summary_of(*paths)
    records = by_model(run.records)
    (upstream,) = rules.by_rule(
        run.run, {record.case.id: record for record in run.records}, rules.rule("upstream-2022")
    )

    assert summary.speedup is not None
    assert (wanted["geomean"], 3) == (pytest.approx(summary.speedup.value, abs=1e-6), summary.speedup.n)
    assert (3, 1, 8) == (summary.passed, summary.outcomes[Outcome.SKIPPED], summary.planned)
    assert (wanted["passed"], wanted["total"]) == (upstream.aggregates.passed, upstream.aggregates.rows)
    assert wanted["geomean_clipped_at_1"] == pytest.approx(upstream.aggregates.speedup, abs=1e-5)
    assert Outcome.FAIL_TO_RUN == records["net_d"].outcome
    assert "passed the accuracy check; its performance run failed" in (records["net_d"].text or "")
    assert not records["net_c"].derived.valid


def test_different_model_sets() -> None:
    """s37: two files of one folder are two runs, and each mean is of its own models."""
    wanted = expect(37)
    old, new = ([*run.records] for run in imported(case(37) / "old.csv", case(37) / "new.csv"))
    common = {record.case.id for record in old} & {record.case.id for record in new}

    assert wanted["common"] == len(common)
    for name, records in (("old", old), ("new", new)):
        assert wanted[f"geomean_all_{name}"] == pytest.approx(mean_of(records), abs=1e-6)
        kept = [record for record in records if record.case.id in common]
        assert wanted[f"geomean_common_{name}"] == pytest.approx(mean_of(kept), abs=1e-6)


def test_same_commit_twice(put: Put) -> None:
    """s38: two runs of one commit are two runs, whatever order they come in; the same run twice is one."""
    runs = {}
    for name in ("run1", "run2"):
        found = rows(case(38) / f"{name}.jsonl")
        lines = [f"cpu,{row['model']},1,{row['speedup']}" for row in found]
        given = Where(commit=found[0]["commit"], time=when(found[0]["started"]))
        path = put(f"{name}.csv", "dev,name,batch_size,speedup", *lines)
        runs[name] = [run_of(path, given=given).run.id for _ in range(2)]

    assert expect(38)["runs_for_commit"] == len({*runs["run1"], *runs["run2"]})
    assert all(first == second for first, second in runs.values())


def test_nothing_is_not_finite() -> None:
    """No figure that is imported from any of these files is infinite or not a number."""
    paths = [path for number in range(28, 38) for path in case(number).glob("*.csv")]
    for path in paths:
        for record in run_of(path, lenient=True).records:
            figures = [value for _, value in record.numbers if isinstance(value, float)]
            figures += [value.value for _, value in record.numbers if isinstance(value, Estimate)]
            assert all(map(math.isfinite, figures)), path
