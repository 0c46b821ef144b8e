"""The display: plain lines where nobody watches, JSON where a program reads."""

from __future__ import annotations

import json

import pytest

from bench.progress import Progress
from harness.record import Outcome, Stage
from tests.server.factory import make_end, make_record, make_run, make_start


def go(progress: Progress) -> None:
    run = make_run(2)
    progress.open(run)
    for planned in run.plan:
        start = make_start(planned.case)
        progress.start(start)
        progress.stage(start, Stage.COMPILE)
        progress.tick()
        progress.record(make_record(planned.case))
    progress.close(make_end())


def test_plain_lines(capsys: pytest.CaptureFixture[str]) -> None:
    """Without a terminal there is a headline and a line per result, and not one escape."""
    go(Progress(as_json=False))
    out, err = capsys.readouterr()

    assert len(out.splitlines()) == 3
    assert "\x1b" not in out + err


@pytest.mark.parametrize(("as_json", "lines"), [(False, 3), (True, 4)])
def test_skipped_alike(as_json: bool, lines: int, capsys: pytest.CaptureFixture[str]) -> None:
    """Of cases skipped for one reason a person reads the first, a program all."""
    progress = Progress(as_json=as_json)
    run = make_run(3)
    progress.open(run)
    for planned, why in zip(run.plan, ("too large", "too large", "too old"), strict=True):
        progress.record(make_record(planned.case, Outcome.SKIPPED).model_copy(update={"text": why}))
    out = capsys.readouterr().out.splitlines()

    assert len(out) == lines
    assert "too old" in out[-1]


def test_json_lines(capsys: pytest.CaptureFixture[str]) -> None:
    """As JSON there is the run, each record and the end."""
    go(Progress(as_json=True))

    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["type"] for line in lines] == ["run", "record", "record", "end"]


def test_live_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a terminal the table names the case in hand, its stage, how far the run is, and when it may end."""
    progress = Progress(as_json=True)
    run = make_run(2)
    progress.open(run)
    first, second = (planned.case for planned in run.plan)
    assert "after the first case" in cells(progress)
    progress.start(make_start(first))
    progress.record(make_record(first))
    progress.start(make_start(second))
    progress.stage(make_start(second), Stage.TIME)

    case, stage, elapsed, done, finish = cells(progress)
    assert (case, stage, done) == (str(second), "time", "1 of 2")
    assert elapsed.endswith(" s")
    assert finish.count(":") == 2


def cells(progress: Progress) -> list[str]:
    return [str(next(iter(column.cells))) for column in progress._table().columns]
