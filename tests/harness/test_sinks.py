"""The forwarder: a sink may fail and come back, nothing is lost, and the run never hears of it."""

from __future__ import annotations

from harness.record import Stage
from harness.sinks import Forwarder
from tests.harness.runs import Heard, make_run
from tests.harness.test_journal import make_record, make_start


class Failing(Heard):
    """Fails while `down`."""

    down = False

    def _check(self) -> None:
        if self.down:
            raise OSError("disk full")

    def record(self, record: object) -> None:
        self._check()
        super().record(record)  # type: ignore[arg-type]

    def stage(self, start: object, stage: Stage) -> None:
        self._check()
        super().stage(start, stage)  # type: ignore[arg-type]


def test_catches_up() -> None:
    """What a sink refused is delivered first when it works again, in order, once."""
    run, sink = make_run(), Failing()
    forwarder = Forwarder(sink)
    forwarder.open(run)
    sink.down = True
    forwarder.record(make_record(run, run.plan[0], 1))
    assert "disk full" in str(forwarder.trouble)
    sink.down = False
    forwarder.record(make_record(run, run.plan[0], 2))

    assert [getattr(call, "attempt", None) for _, call in sink.calls] == [None, 1, 2]
    assert forwarder.trouble is None


def test_stages_are_not_kept() -> None:
    """A stage that could not be told, or would overtake a record, is dropped."""
    run, sink = make_run(), Failing()
    forwarder, start = Forwarder(sink), make_start(run, run.plan[0])
    sink.down = True
    forwarder.stage(start, Stage.LOAD)
    forwarder.record(make_record(run, run.plan[0]))
    sink.down = False
    forwarder.stage(start, Stage.EAGER)

    assert sink.calls == []
