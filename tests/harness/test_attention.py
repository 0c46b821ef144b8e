"""Which attention was asked for stands in the case, which ran in the record: through plan and worker."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from harness import config
from harness.journal import History, Journal
from harness.plan import Matrix, plan
from harness.record import Measure, Outcome, Protocol, Record
from harness.runner import execute
from harness.workers import Stop, Workers
from suites.spec import MODES, Attention, Mode
from tests.harness.runs import Heard, make_run


@pytest.fixture(scope="module")
def workers() -> Workers:
    workers = Workers(["suites.toy"])
    workers.host(None)
    return workers


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("attention", "kernel"), [(Attention.FUSED, "flash_attention_for_cpu"), (Attention.EAGER, "spelled out")]
)
def test_what_ran_is_what_was_asked_for(
    workers: Workers, tmp_path: Path, attention: Attention, kernel: str, mode: Mode
) -> None:
    """The builder makes the attention of the case, and the record names the kernel that ran."""
    matrix = Matrix(suites=("toy",), models=("attention",), modes=(mode,), backend="eager", attention=attention)
    asked = plan(matrix, [config.suite("toy")], config.device("cpu"), date(2026, 12, 1))
    run = make_run(*asked).model_copy(update={"protocol": Protocol(measure=Measure.ACCURACY)})
    heard = Heard()
    with Journal(tmp_path / "run.jsonl") as journal:
        journal.write(run)
        execute(History(run), workers, journal, [heard], Stop())

    (record,) = [call for name, call in heard.calls if name == "record"]
    assert isinstance(record, Record)
    assert (Outcome.PASS, attention) == (record.outcome, record.case.attention)
    assert kernel == record.observed.attention_kernel
