"""The order of a measurement, through the real worker: what is timed was checked, and what spoils times is seen."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from textwrap import dedent

import pytest

from harness.journal import History, Journal
from harness.record import Case, Flag, Measure, Outcome, Planned, Protocol, Record, Reference, Stage
from harness.runner import execute
from harness.workers import Stop, Workers
from suites import user
from suites.spec import Mode, Precision
from tests.harness.runs import Heard, make_run

HEAD = """
import torch
from torch import nn
"""

INPUTS = """
def inputs():
    torch.manual_seed(1)
    return (torch.randn(8, 16),), {}
"""

BATCHED_INPUTS = """
def inputs(batch_size):
    torch.manual_seed(1)
    return (torch.randn(batch_size, 16),), {}
"""

BATCHED = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.f = nn.Linear(16, 4)

    def forward(self, x):
        return self.f(x)

def build():
    torch.manual_seed(0)
    return Net()
"""

Measured = Callable[..., Record]


@pytest.fixture(scope="module")
def workers() -> Workers:
    workers = Workers(["suites.toy"])
    workers.host(None)
    return workers


@pytest.fixture
def measured(workers: Workers, tmp_path: Path) -> Measured:
    def run(
        code: str,
        *,
        mode: Mode = Mode.INFERENCE,
        backend: str = "eager",
        measure: Measure = Measure.ALL,
        max_seconds: float = 2.0,
        precision_target: float = 0.9,
        batch_size: int | None = None,
        accuracy_batch: int | None = None,
    ) -> Record:
        file = tmp_path / "model.py"
        file.write_text(HEAD + dedent(code) + (INPUTS if batch_size is None else BATCHED_INPUTS))
        suite = user.suite([file])
        case = Case(
            suite="user",
            model="model",
            device="cpu",
            mode=mode,
            precision=Precision.FP32,
            backend=backend,
            batch_size=batch_size,
        )
        planned = Planned(
            case=case,
            spec=suite.models[0],
            module=suite.module,
            tolerance=1e-3,
            timeout_s=120,
            accuracy_batch=accuracy_batch,
        )
        protocol = Protocol(measure=measure, max_seconds=max_seconds, precision_target=precision_target)
        asked = make_run(planned).model_copy(update={"protocol": protocol})
        heard = Heard()
        with Journal(tmp_path / f"{asked.id}.jsonl") as journal:
            journal.write(asked)
            execute(History(asked), workers, journal, [heard], Stop())
        (record,) = [call for name, call in heard.calls if name == "record"]
        assert isinstance(record, Record)
        return record

    return run


PLAIN = """
def build():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 4))
"""


def test_conditions_of_a_cpu(measured: Measured) -> None:
    """A CPU has no events and holds no clock; how much of its time others took is a share, where the kernel tells."""
    record = measured(PLAIN)

    assert record.timing is not None
    assert ((), ()) == (record.timing.eager_events_s, record.timing.compiled_events_s)
    assert record.conditions is not None
    assert record.conditions.readings >= 2
    assert record.conditions.lock is None
    assert record.conditions.steal_share is None or 0 <= record.conditions.steal_share < 1


def test_stages_in_order(measured: Measured) -> None:
    """A case goes through all stages in order, each with its own time, and the plain one is valid."""
    record = measured(PLAIN)

    assert [each.stage for each in record.stages] == list(Stage)
    assert record.outcome == Outcome.PASS
    assert record.derived.valid, record.derived.invalid_why
    assert record.accuracy is not None
    assert record.accuracy.reference == Reference.FLOAT64


def test_no_graph_break_of_ours_in_training(measured: Measured) -> None:
    """Training a plain network compiles forward and backward in one graph, without a break, ours or not."""
    record = measured(PLAIN, mode=Mode.TRAINING)

    assert record.compile is not None
    assert (record.compile.graphs, record.compile.graph_breaks, record.compile.breaks) == (1, 0, ())
    assert record.compile.recompiles == 0


def test_graph_break_names_its_line(measured: Measured) -> None:
    """A break in the model's own code has its reason and line, and is not held for the harness's."""
    record = measured(
        """
        class Net(nn.Module):
            def forward(self, x):
                y = x.sin()
                print("hello")
                return y.cos()

        def build():
            return Net()
        """
    )

    assert record.compile is not None
    (found,) = record.compile.breaks
    assert not found.ours
    assert (found.where or "").endswith("model.py:8")
    assert "print" in found.reason


def test_recompile_while_timed(measured: Measured) -> None:
    """A model that makes the compiler start again while it is timed has times that are marked as not valid."""
    record = measured(
        """
        import time

        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.f = nn.Linear(16, 16)
                self.calls = 0
                self.phase = "0"
                self.register_forward_pre_hook(Net.count)

            @torch.compiler.disable
            def count(self, args):
                time.sleep(0.001)  # so that a sample is one step, and 160 pairs are 320 calls
                self.calls += 1
                self.phase = str(self.calls // 120)

            def forward(self, x):
                return self.f(x) if self.phase != "none" else x

        def build():
            torch.manual_seed(0)
            return Net()
        """,
        precision_target=0.000001,
        max_seconds=20,
    )

    assert record.timing is not None
    assert record.timing.recompiles > 0
    assert Flag.RECOMPILED in record.derived.flags
    assert not record.derived.valid


def test_nothing_compiled(measured: Measured) -> None:
    """A model of which nothing was compiled is no pass of the compiler, though its numbers agree."""
    record = measured(
        """
        class Net(nn.Module):
            @torch.compiler.disable
            def forward(self, x):
                return x * 2

        def build():
            return Net()
        """
    )

    assert (record.outcome, record.stage) == (Outcome.FAIL_TO_RUN, Stage.CHECK)
    assert "nothing was compiled" in (record.text or "")


def test_wrong_answer_keeps_its_times(measured: Measured) -> None:
    """A model that fails the check is timed all the same, and its times are marked as not valid."""
    record = measured(
        """
        class Net(nn.Module):
            def forward(self, x):
                return x * 3 if torch.compiler.is_compiling() else x * 2

        def build():
            return Net()
        """
    )

    assert (record.outcome, record.stage) == (Outcome.FAIL_ACCURACY, Stage.CHECK)
    assert record.derived.speedup is not None
    assert not record.derived.valid
    assert record.accuracy is not None
    assert record.accuracy.failed[0].name == "output"


def test_not_finite_after_timing(measured: Measured) -> None:
    """A loss that is no number after timing is seen, and the times are not valid."""
    record = measured(
        """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.f = nn.Linear(16, 16)
                self.register_buffer("seen", torch.zeros(()))

            def forward(self, x):
                self.seen += 1
                return self.f(x) / (self.seen < 30)

        def build():
            torch.manual_seed(0)
            return Net()
        """,
        mode=Mode.TRAINING,
    )

    assert record.timing is not None
    assert record.timing.finite_after is False
    assert Flag.NOT_FINITE in record.derived.flags
    assert not record.derived.valid


def test_exit_is_a_failure_of_the_stage(measured: Measured) -> None:
    """A model that calls sys.exit fails like one that raises."""
    record = measured("import sys\ndef build():\n    sys.exit(5)\n")

    assert (record.outcome, record.stage) == (Outcome.MODEL_FAIL_TO_LOAD, Stage.LOAD)


def test_insensitive(measured: Measured) -> None:
    """A model whose output hardly depends on its input is flagged: any answer would pass."""
    record = measured(
        """
        class Net(nn.Module):
            def forward(self, x):
                return 1 + 1e-7 * x.sum(-1)

        def build():
            return Net()
        """
    )

    assert record.outcome == Outcome.PASS
    assert Flag.INSENSITIVE in record.derived.flags


def test_failing_while_timed_keeps_its_samples(measured: Measured) -> None:
    """A model that fails in the middle of timing is a failure that keeps what was found before."""
    record = measured(
        """
        calls = [0]

        @torch.compiler.disable
        def count():
            calls[0] += 1
            if calls[0] > 60:
                raise RuntimeError("worn out")

        class Net(nn.Module):
            def forward(self, x):
                count()
                return x * 2

        def build():
            return Net()
        """
    )

    assert (record.outcome, record.stage) == (Outcome.FAIL_TO_RUN, Stage.TIME)
    assert record.failure is not None
    assert record.failure.text == "worn out"
    assert record.compile is not None


@pytest.mark.inductor
def test_cold_every_time(measured: Measured) -> None:
    """Inductor finds no cache in a second case of the same model: its own counters say so."""
    for _ in range(2):
        record = measured(PLAIN, backend="inductor", measure=Measure.ACCURACY)
        assert record.compile is not None
        assert record.compile.cold
        assert (record.compile.cache_hits, record.compile.compiled_by) == (0, "inductor")
        assert record.compile.cache_misses > 0
        assert record.compile.phases_s["inductor"] <= record.compile.phases_s["dynamo"] <= record.compile.first_call_s
        assert 0 < record.compile.cpu_s


def test_smaller_batch_for_the_check(measured: Measured) -> None:
    """A model checked with a smaller batch is compiled twice; the record says which batch float64 saw."""
    record = measured(BATCHED, batch_size=8, accuracy_batch=2)

    assert record.outcome == Outcome.PASS, record.text
    assert record.accuracy is not None
    assert (record.accuracy.reference, record.accuracy.batch_size) == (Reference.FLOAT64, 2)
    assert record.observed.batch_size == 8
    assert [each.stage for each in record.stages].count(Stage.COMPILE) == 2


def test_wrong_at_the_batch_that_is_timed(measured: Measured) -> None:
    """What is right with the smaller batch and wrong with the timed one fails."""
    wrong = BATCHED.replace("self.f(x)", "self.f(x) * (2 if torch.compiler.is_compiling() and len(x) > 2 else 1)")
    record = measured(wrong, batch_size=8, accuracy_batch=2)

    assert record.outcome == Outcome.FAIL_ACCURACY
    assert record.accuracy is not None
    assert (record.accuracy.reference, record.accuracy.batch_size) == (Reference.EAGER, None)


SWITCHING = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.f = nn.Linear(16, 1024)
        self.g = nn.Linear(1024, 4)

    def forward(self, x):
        sums = self.f(x)
        if torch.compiler.is_compiling():
            sums = torch.where(sums.abs() < 1e-6, -sums, sums)
        return self.g(sums.relu())

def build():
    torch.manual_seed(1)
    x = torch.randn(8, 16)
    net = Net()
    with torch.no_grad():
        net.f.bias[3] -= net.f(x)[2, 3] - 2e-7
    return net
"""


def test_a_switch_within_rounding_is_no_failure(measured: Measured) -> None:
    """A ReLU that switches within rounding of zero passes; the record says how far rounding alone moves a leaf."""
    record = measured(SWITCHING, mode=Mode.TRAINING, backend="aot_eager", measure=Measure.ACCURACY)

    assert record.outcome == Outcome.PASS, record.text
    assert record.accuracy is not None
    assert record.accuracy.rounding is not None
    assert 1e-3 < record.accuracy.rounding < 1e-2
    assert record.accuracy.worst is not None
    assert "elements are not close to eager's" in (record.accuracy.worst.detail or "")


def test_a_fault_beside_a_switch_is_found(measured: Measured) -> None:
    """With 2 % added to what the last layer puts out it fails all the same."""
    wrong = SWITCHING.replace("sums.relu())", "sums.relu()) * (1.02 if torch.compiler.is_compiling() else 1)")
    record = measured(wrong, mode=Mode.TRAINING, backend="aot_eager", measure=Measure.ACCURACY)

    assert record.outcome == Outcome.FAIL_ACCURACY
    assert record.accuracy is not None
    assert record.accuracy.rounding is not None
    assert "output" == record.accuracy.failed[0].name


def test_rounding_is_not_looked_at_where_all_passes(measured: Measured) -> None:
    """Its steps are for cases that fail; the others take none."""
    record = measured(PLAIN, mode=Mode.TRAINING, measure=Measure.ACCURACY)

    assert record.outcome == Outcome.PASS
    assert record.accuracy is not None
    assert record.accuracy.rounding is None


def test_numpy_draws_are_eagers(measured: Measured) -> None:
    """A model that draws from numpy while it runs draws the same compiled, and is held against eager."""
    record = measured(
        """
        import numpy

        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.f = nn.Linear(16, 4)

            def forward(self, x):
                return self.f(x + torch.from_numpy(numpy.random.uniform(size=16)).float())

        def build():
            torch.manual_seed(0)
            return Net()
        """,
        backend="aot_eager",
        measure=Measure.ACCURACY,
    )

    assert record.outcome == Outcome.PASS, record.text
    assert record.observed.draws_random_numbers
