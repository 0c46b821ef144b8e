"""Numbers and moments as a reader sees them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from dashboards import words
from harness.beside import Compared, known
from server.schemas import Estimate, PassRate


@pytest.mark.parametrize(
    ("numbers", "text"),
    [((1.25, 1.23, 1.27), "1.25× (1.23–1.27)"), ((1.2512, 1.2468, 1.2549), "1.251× (1.247–1.255)")],
)
def test_interval(numbers, text):
    """An interval too narrow for two decimals gets a third."""
    value, low, high = numbers

    assert text == words.interval(Estimate(value=value, low=low, high=high))


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [(1.0001, 1.2, "faster"), (1.0, 1.2, "same"), (0.9, 1.1, "same"), (0.8, 0.9999, "slower"), (0.999, 1.0, "same")],
)
def test_verdict_before_rounding(low, high, verdict):
    """The verdict compares the interval itself with 1, not its two decimals."""
    assert verdict == words.verdict(Estimate(value=(low + high) / 2, low=low, high=high))


def test_stated_without_interval():
    """A figure that others state gets no interval of ours: the value speaks alone."""
    stated = Estimate(value=1.436, low=None, high=None)

    assert ("1.44×", "faster") == (words.interval(stated), words.verdict(stated))


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(None, "–"), (0.0123, "12.3"), (0.00123, "1.23"), (0.000012, "0.012"), (0.1234, "123"), (4.567, "4\u202f567")],
)
def test_milliseconds(seconds, text):
    """Times have three significant digits; absent is a dash, never 0."""
    assert text == words.milliseconds(seconds)


def test_pass_rate():
    """A pass rate has its interval in whole percent; without cases there is none."""
    rate = PassRate(passed=155, judged=163, share=155 / 163, low=0.906, high=0.975)

    assert "95.1 % (91–98)" == words.pass_rate(rate)
    assert "–" == words.pass_rate(PassRate(passed=0, judged=0))


@pytest.mark.parametrize(
    ("length", "text"),
    [((0, 0), "0 s"), ((0, 119), "119 s"), ((0, 120), "2 min"), ((0, 7200), "2 h"), ((2, 0), "2 d"), ((0, -5), "0 s")],
)
def test_span(length, text):
    """A length of time is given in the largest unit that counts two or more."""
    days, seconds = length

    assert text == words.span(timedelta(days=days, seconds=seconds))


def test_moment_is_utc():
    """Moments are given in UTC, and say so."""
    assert "12 Aug 2026, 01:00 UTC" == words.moment(datetime(2026, 8, 12, 1, tzinfo=UTC))


@pytest.mark.parametrize(
    ("number", "ours", "text"), [(0, 150 / 163, "92 %"), (1, 1.434, "1.43×"), (2, None, "none (no model passes)")]
)
def test_ours(number, ours, text):
    """Ours beside a published figure is a share or a ratio as that is, or the reason why there is none."""
    (pytorch,) = known()
    why = None if ours else "no model passes"

    assert text == words.ours(Compared(published=pytorch.published[number], ours=ours, why_not=why))
