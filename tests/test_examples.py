"""The committed journals: they are read, they load, and what was derived from them can be derived again."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench import main
from benchmarks import models, results
from harness.derive import derive
from harness.journal import replay
from harness.record import Outcome
from server.db import connect
from server.queries import Queries

ROOT = Path(__file__).parents[1]
EXAMPLES = sorted((ROOT / "examples").glob("*.jsonl.gz"))
EXPECTATIONS = ROOT / "tests/data/ci_expected_accuracy"
EXPECTED = (
    ROOT / "examples/timm61-fp32-cpu-x86.jsonl.gz",
    ROOT / "tests/data/ci_expected_accuracy/cpu_inductor_timm_inference.csv",
)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_complete(path: Path) -> None:
    """Every planned case of an example has a record, and one that did not pass says why."""
    history = replay(path)

    assert {planned.case.id for planned in history.run.plan} == set(history.records)
    assert all(r.text for r in history.records.values() if r.outcome != Outcome.PASS)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_derived_again(path: Path) -> None:
    """The statistics of each record follow from its stored samples."""
    for record in replay(path).records.values():
        again = derive(
            record.outcome,
            record.observed,
            record.accuracy,
            record.compile,
            record.timing,
            record.memory,
            record.conditions,
        )
        assert again == record.derived


def test_import(tmp_path: Path) -> None:
    """`bench import` loads all examples, and a second time changes nothing."""
    database = f"sqlite:///{tmp_path}/bench.db"
    for _ in range(2):
        assert main.run(["import", *map(str, EXAMPLES), "--database", database]) == 0
    runs = Queries(connect(database)).runs()

    assert len(runs) == len(EXAMPLES) > 0
    assert all(run.passed > 0 for run in runs)


def test_results_are_up_to_date() -> None:
    """The pages of results are what `make results` and `make models` make of the examples."""
    timed = [path for path in EXAMPLES if path.name.startswith("timm")]
    judged = [path for path in EXAMPLES if path.name.startswith("models")]

    assert len(EXAMPLES) == len(timed) + len(judged)
    assert (ROOT / "docs/results/timm.md").read_text(encoding="utf-8") == results.text(timed, [EXPECTED])
    assert (ROOT / "docs/results/models.md").read_text(encoding="utf-8") == models.text(judged, EXPECTATIONS)
