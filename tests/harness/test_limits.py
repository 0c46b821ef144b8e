"""Fixed limits: at one is no alarm, beyond one is, and only news counts."""

from __future__ import annotations

import pytest

from harness.limits import Alarm, Limit, Limits, alarms
from harness.record import Outcome
from tests.harness.points import make_failure, make_point


@pytest.mark.parametrize(("old", "at", "below"), [(2.47, 2.3465, 2.3464), (2.0, 1.9, 1.8999), (1.0, 0.95, 0.9499)])
def test_speedup(old, at, below):
    """A speedup of 0.95 times the old one is no alarm, whatever the last bit says; a little less is, with the limit."""
    assert () == alarms(make_point(speedup=old), make_point(speedup=at))
    assert (Alarm(Limit.SPEEDUP, below, pytest.approx(at)),) == alarms(
        make_point(speedup=old), make_point(speedup=below)
    )


@pytest.mark.parametrize(("compile_s", "crossed"), [(120.0, []), (120.01, [Limit.COMPILE_TIME])])
def test_compile_time(compile_s, crossed):
    """More than 120 s is an alarm, also for a new case; one that took as long before is no news."""
    base, head = make_point(), make_point(compile_wall_s=compile_s)

    assert crossed == [alarm.crossed for alarm in alarms(base, head)]
    assert crossed == [alarm.crossed for alarm in alarms(None, head)]
    assert () == alarms(make_point(compile_wall_s=130.0), head)


def test_memory_ratio():
    """Below 0.9 of the old ratio is an alarm; a limit of one's own is taken instead."""
    base, head = make_point(memory_ratio=1.0), make_point(memory_ratio=0.85)

    assert [Limit.MEMORY_RATIO] == [alarm.crossed for alarm in alarms(base, head)]
    assert () == alarms(base, head, Limits(memory_ratio=0.8))


@pytest.mark.parametrize(
    ("base", "head", "crossed"),
    [
        (make_point(), make_failure(), [Limit.OUTCOME]),
        (make_failure(), make_failure(outcome=Outcome.CRASH), []),
        (make_failure(), make_point(), []),
        (make_point(), make_failure(outcome=Outcome.SKIPPED), []),
        (make_point(), make_failure(outcome=Outcome.MISSING), []),
        (None, make_failure(), []),
        (make_point(speedup=0.0), make_point(), []),
        (make_point(), make_point(speedup=0.1, valid=False), []),
    ],
)
def test_what_has_no_figure(base, head, crossed):
    """A new failure is an alarm; what failed before, was not run, or is not valid is held against nothing."""
    assert crossed == [alarm.crossed for alarm in alarms(base, head)]
