"""Outcomes against another project's expectations: every difference is named, with cause and command."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import expected
from benchmarks.expected import Expectation, cases_in, differences, read
from harness.errors import BenchError
from harness.journal import History
from harness.record import GraphBreak, Outcome
from suites.spec import Mode
from tests.server.factory import make_case, make_record, make_run

FILE = Path(__file__).parents[1] / "data/ci_expected_accuracy/cpu_inductor_timm_inference.csv"


def history(outcomes: dict[str, Outcome], **compile_fields) -> History:
    """A run of these models, all recorded but those with None."""
    cases = [make_case(model, suite="timm", batch_size=1) for model in outcomes]
    run = make_run(cases)
    records = {}
    for case in cases:
        if outcomes[case.model] is not None:
            record = make_record(case, outcomes[case.model])
            if compile_fields and record.compile:
                record = record.model_copy(update={"compile": record.compile.model_copy(update=compile_fields)})
            records[case.id] = record
    return History(run, records=records)


def found(outcomes, wanted, **compile_fields):
    made = history(outcomes, **compile_fields)
    return list(differences(made.records, wanted, cases_in(made, Mode.INFERENCE)))


def test_file_of_the_upstream_ci():
    """The stored file names 61 models, all expected to pass without a graph break; blank lines are no rows."""
    rows = read(FILE)

    assert 61 == len(rows)
    assert {Expectation("pass", 0)} == set(rows.values())


def test_agreement_is_no_row():
    """A model that ended as expected, with as many breaks, is no difference."""
    assert [] == found({"lcnet_050": Outcome.PASS}, {"lcnet_050": Expectation("pass", 0)}, graph_breaks=0, breaks=())


def test_another_outcome():
    """Another outcome is a row with the cause and a command that shows it."""
    ((model, said, seen, cause, command),) = found(
        {"lcnet_050": Outcome.FAIL_ACCURACY}, {"lcnet_050": Expectation("pass", None)}
    )

    assert ("lcnet_050", "pass", "fail_accuracy") == (model, said, seen)
    assert cause
    assert "bench run --suite timm --model lcnet_050 --fp32 --mode inference" in command
    assert command.endswith("--batch-size 1 --only-accuracy")


def test_more_graph_breaks():
    """Another number of breaks is a row with their reasons."""
    breaks = (GraphBreak(reason="call to print", count=2, where="net.py:3"),)
    ((_, said, seen, cause, _),) = found(
        {"lcnet_050": Outcome.PASS}, {"lcnet_050": Expectation("pass", 0)}, graph_breaks=2, breaks=breaks
    )

    assert ("0 graph breaks", "2 graph breaks", "2x call to print at net.py:3") == (said, seen, cause)


def test_models_of_one_side():
    """A model that only one side knows, or that never ran, is a row: nothing is lost."""
    rows = found(
        {"ours": Outcome.PASS, "waiting": None},
        {"theirs": Expectation("pass", 0), "waiting": Expectation("pass", 0)},
    )

    assert [("ours", "planned here"), ("theirs", "not planned"), ("waiting", "missing")] == [
        (model, seen) for model, _, seen, *_ in rows
    ]


@pytest.mark.parametrize("text", ["name,accuracy\nlcnet_050\n", "name,accuracy\na,pass\na,pass\n", "x,y\n1,2\n"])
def test_bad_file(tmp_path, text):
    """A file without the columns, or with a model twice, is refused with its line."""
    path = tmp_path / "expected.csv"
    path.write_text(text)

    with pytest.raises(BenchError, match=r"expected\.csv:\d"):
        read(path)


def test_words_cover_all_outcomes():
    """Every outcome has its upstream words, if any."""
    assert set(Outcome) == set(expected.WORDS)
