"""Signs and letters: colour is never the only carrier."""

from __future__ import annotations

import pytest

from dashboards import marks
from harness.record import Flag, Level, Outcome
from server.schemas import Estimate, Result, RunState, Status


def result(value: float | None, *, half: float = 0.01, valid: bool = True) -> Result:
    speedup = Estimate(value=value, low=value * (1 - half), high=value * (1 + half)) if value else None
    return Result(
        case_id="c", position=0, suite="toy", model="m", configuration_id="k", label="", device="cpu", mode="inference",
        precision="fp32", backend="inductor", batch_size=None, tolerance=0.01, status=Status.PASS, valid=valid,
        speedup=speedup,
    )  # fmt: skip


def test_everything_has_a_mark():
    """Each outcome, state, flag and level has its words, each status a letter and each level a sign of its own."""
    assert set(Status) == set(marks.STATUS)
    assert {outcome.value for outcome in Outcome} <= {status.value for status in Status}
    assert set(RunState) == set(marks.STATE)
    assert set(Flag) == set(marks.FLAGS)
    assert set(Level) == set(marks.LEVEL)
    assert len(Level) == len({mark.sign for mark in marks.LEVEL.values()})
    assert len(Status) == len({mark.letter for mark in marks.STATUS.values()})


@pytest.mark.parametrize(
    ("speedup", "step"),
    [(0.6, 1), (0.7, 2), (0.85, 3), (0.95, 4), (1.0, 5), (1.05, 6), (1.2, 7), (1.3, 8), (1.6, 9)],
)
def test_nine_steps(speedup, step):
    """Speedups fall into nine steps on a log scale, blue above 1 and orange below."""
    assert step == marks.step(result(speedup))


@pytest.mark.parametrize("ratio", [1.02, 1.11, 1.26, 1.51, 4])
def test_steps_mirror(ratio):
    """A ratio and its inverse are equally strong."""
    assert 10 == marks.step(result(ratio)) + marks.step(result(1 / ratio))


def test_grey_means_cannot_tell():
    """A speedup whose interval contains 1 is grey, however far its value."""
    assert 5 == marks.step(result(1.6, half=0.5))


def test_stated_has_the_step_of_its_value():
    """A figure that others state without an interval is coloured by its value."""
    stated = result(1.3).model_copy(update={"speedup": Estimate(value=1.3, low=None, high=None)})

    assert 8 == marks.step(stated)


def test_invalid_has_no_colour():
    """Times that are not valid, and absent ones, have no colour."""
    assert marks.step(result(1.6, valid=False)) is None
    assert marks.step(result(None)) is None
