"""The page of all models: every planned case is counted once, every one that is no pass has its cause."""

from __future__ import annotations

import pytest

from benchmarks import models
from harness.journal import Journal
from harness.record import GraphBreak, Outcome, RunEnd, now
from suites.spec import Preset
from tests.server.factory import make_case, make_record, make_run


def case(model, mode="inference", preset="full", **fields):
    return make_case(model, suite="timm", mode=mode, preset=preset, **fields)


@pytest.fixture
def journal(tmp_path):
    """A function that writes a journal of these cases and outcomes; None: the case never ran."""

    def write(name, outcomes, skip=(), change=lambda record: record):
        path = tmp_path / f"{name}.jsonl"
        run = make_run(list(outcomes))
        plan = tuple(p.model_copy(update={"skip": "too large"}) if p.case in skip else p for p in run.plan)
        run = run.model_copy(update={"plan": plan})
        with Journal(path) as kept:
            kept.write(run)
            for each, outcome in outcomes.items():
                if outcome is not None:
                    kept.write(change(make_record(each, outcome).model_copy(update={"run_id": run.id})))
            kept.write(RunEnd(run_id=run.id, at=now(), reason="finished"))
        return path

    return write


@pytest.fixture
def expectations(tmp_path):
    (tmp_path / "cpu_inductor_timm_inference.csv").write_text(
        "name,accuracy,graph_breaks\nalike,pass,0\nother,pass,0\nbroken,pass,0\nunknown,pass,0\n"
    )
    (tmp_path / "inductor_timm_training.csv").write_text("name,accuracy,graph_breaks\nalike,pass,7\n")
    return tmp_path


def test_every_case_is_counted_once(journal, expectations):
    """Passed, other outcomes, skipped and missing stand beside the number planned."""
    outcomes = {
        case("a"): Outcome.PASS,
        case("b"): Outcome.CRASH,
        case("c"): Outcome.CRASH,
        case("d"): None,
        case("e"): None,
    }
    page = models.text([journal("one", outcomes, skip=[case("d")])], expectations)

    assert "| timm | inference fp32 | 5 | 1 | 2 crash | 1 | 1 | 0 |" in page


def test_every_other_outcome_has_its_cause(journal, expectations):
    """A failure names side, stage and cause; a skip its reason; what never ran is missing."""
    outcomes = {case("a"): Outcome.FAIL_ACCURACY, case("b"): None, case("c"): None, case("d"): Outcome.PASS}
    page = models.text([journal("one", outcomes, skip=[case("b")])], expectations)
    section = page.partition("## Every case")[2].partition("\n## ")[0]

    assert "- timm, inference fp32: a: fail_accuracy" in section
    assert "- timm, inference fp32: b: too large" in section
    assert "- timm, inference fp32: c: missing" in section
    assert ": d:" not in section


def test_small_is_apart(journal, expectations):
    """A model in its small preset is a row of its own, below the full ones."""
    outcomes = {case("a", preset=Preset.SMALL): Outcome.PASS, case("a"): Outcome.PASS}
    page = models.text([journal("one", outcomes)], expectations)

    assert page.index("| timm | inference fp32 | 1 | 1 |") < page.index("| timm | small inference fp32 | 1 | 1 |")


def test_eager_table(journal, expectations):
    """What ran eager alone shows time and peak in both modes; what did not, its outcome, or a later pass."""

    def alone(record):
        seen = {"eager_step_s": 0.25, "peak_bytes": 5 << 29} if record.outcome == Outcome.PASS else {}
        observed = record.observed.model_copy(update=seen)
        return record.model_copy(update={"compile": None, "timing": None, "accuracy": None, "observed": observed})

    outcomes = {
        case("a", backend="none", batch_size=1): Outcome.PASS,
        case("a", "training", backend="none", batch_size=1): Outcome.OOM,
    }
    again = {case("a", "training", backend="none", batch_size=2): Outcome.PASS}
    first = models.text([journal("one", outcomes, change=alone)], expectations)
    both = models.text([journal("one", outcomes, change=alone), journal("two", again, change=alone)], expectations)

    assert "| timm/a | 1 | 250 ms | 2.5 | 1 | oom |  |" in first
    assert "| timm/a | 1 | 250 ms | 2.5 | 2 | 250 ms | 2.5 |" in both


def test_beside_the_other_project(journal, expectations):
    """Other outcomes are rows; other numbers of breaks are, in inference; models of one side are counted, not rows."""
    breaks = (GraphBreak(reason="call to print", count=2, where="net.py:3"),)

    def broken(record):
        compiled = record.compile and record.compile.model_copy(update={"graph_breaks": 2, "breaks": breaks})
        return record.model_copy(update={"compile": compiled}) if record.case.model == "broken" else record

    outcomes = {
        case("alike"): Outcome.PASS,
        case("other"): Outcome.TIMEOUT,
        case("broken"): Outcome.PASS,
        case("ours"): Outcome.PASS,
        case("alike", "training"): Outcome.PASS,
    }
    page = models.text([journal("one", outcomes, change=broken)], expectations)

    assert "3 of 4 models stand in the file; 1 of them ended as it expects, with as many graph breaks." in page
    assert "| other | pass | timeout |" in page
    assert "| broken | 0 graph breaks | 2 graph breaks | 2x call to print at net.py:3 |" in page
    assert "1 of 1 models stand in the file; 1 of them ended as it expects." in page
