"""Measured durations become `case_s`, and nothing else of a suite's file is touched."""

from __future__ import annotations

from datetime import timedelta

import pytest

from benchmarks import durations
from harness.journal import History
from harness.record import Measure, Outcome, Protocol
from suites.spec import Preset
from tests.server.factory import BEGIN, make_case, make_record, make_run

TEXT = """\
# A suite.
[tolerance]   # relative
inference = 1e-3

[[model]]
name = "one"  # the first
parameters = 5
skip = [
    { mode = "training", why = "no" },
]

[[model]]
name = "two"
case_s = 3.5  # guessed

[[model]]  # unknown
name = "three"
batch = { training = 2 }
"""


def history(*took, measure=Measure.ALL):
    """Return a run's history of cases with their seconds and outcomes."""
    run = make_run([case for case, *_ in took], protocol=Protocol(measure=measure))
    records = {}
    for case, seconds, *outcome in took:
        at = BEGIN + timedelta(seconds=seconds)
        records[case.id] = make_record(case, *outcome, started_at=BEGIN, finished_at=at)
    return History(run, records)


def test_comments_are_kept():
    """A value is put in the place of the old one, or below the parameters or the name; all other lines stay."""
    new = durations.rewritten(TEXT, {"one": 19, "two": 40, "three": 7})

    expected = TEXT.replace("parameters = 5\n", "parameters = 5\ncase_s = 19\n").replace("= 3.5 ", "= 40 ")
    assert expected.replace('"three"\n', '"three"\ncase_s = 7\n') == new
    assert new == durations.rewritten(new, {"one": 19, "two": 40, "three": 7})
    assert TEXT == durations.rewritten(TEXT, {"four": 1})


def test_what_is_not_understood():
    """A file whose entries stand on one line is refused before it is spoilt."""
    with pytest.raises(ValueError, match="Write one field a line"):
        durations.rewritten('model = [{ name = "one", case_s = 1 }, { name = "two", case_s = 2 }]', {"two": 5})


def test_declared():
    """The mean of a model's FP32 cases in inference; one that was only trained is scaled to inference."""
    histories = [
        history((make_case("one"), 20.2), (make_case("one", mode="training"), 99.0), (make_case("two"), 0.2)),
        history((make_case("one"), 41.0), (make_case("three", mode="training"), 165.0)),
    ]

    assert {("toy", "one"): 31, ("toy", "two"): 1, ("toy", "three"): 67} == durations.declared(histories)


@pytest.mark.parametrize(
    "took",
    [
        history((make_case("one", preset=Preset.SMALL), 20.0)),
        history((make_case("one", precision="amp"), 20.0)),
        history((make_case("one", backend="eager"), 20.0)),
        history((make_case("one", compile_mode="max-autotune"), 20.0)),
        history((make_case("one"), 20.0, Outcome.CRASH)),
        history((make_case("one"), 20.0), measure=Measure.ACCURACY),
    ],
)
def test_what_does_not_count(took):
    """Only full cases in FP32 with inductor count, checked and timed to the end."""
    assert {} == durations.declared([took])


def test_means():
    """For the planner's defaults there are means by preset, backend and mode, with their count."""
    small = make_case("one", preset=Preset.SMALL)
    took = history((make_case("one"), 20.0), (make_case("two"), 40.0), (small, 4.0), (make_case("x"), 9.0, "oom"))

    assert {("full", "inductor", "inference"): (30.0, 2), ("small", "inductor", "inference"): (4.0, 1)} == (
        durations.means([took])
    )


def test_written(tmp_path, monkeypatch, capsys):
    """A suite's file is rewritten in place from journals."""
    file, journal = tmp_path / "toy.toml", tmp_path / "x.jsonl"
    file.write_text(TEXT)
    took = history((make_case("one"), 20.0))
    journal.write_text("".join(f"{line.model_dump_json()}\n" for line in (took.run, *took.records.values())))

    monkeypatch.setattr("sys.argv", ["durations", str(journal), "--write", str(file)])
    durations.main()

    assert "parameters = 5\ncase_s = 20\n" in file.read_text()
    assert f"{file}: 1 models" in capsys.readouterr().out
