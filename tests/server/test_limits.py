"""How often one asker may ask."""

from __future__ import annotations

import pytest

from server import limits
from server.limits import Buckets


class Clock:
    now_s = 0.0

    def __call__(self):
        return self.now_s


@pytest.fixture
def clock():
    return Clock()


def test_burst_then_a_steady_rate(clock):
    """A full bucket is a burst; then one request comes back every so many seconds, and each key has its own."""
    buckets = Buckets(per_minute=30, burst=3, clock=clock)

    assert [0, 0, 0, 2.0] == [buckets.take("a") for _ in range(4)]
    assert 0 == buckets.take("b")
    clock.now_s = 2.0
    assert [0, 2.0] == [buckets.take("a") for _ in range(2)]


def test_waiting_does_not_overfill(clock):
    """A bucket never holds more than a burst, however long nobody asked."""
    buckets = Buckets(per_minute=60, burst=2, clock=clock)
    buckets.take("a")
    clock.now_s = 3600.0

    assert [0, 0, 1.0] == [buckets.take("a") for _ in range(3)]


def test_looking_takes_nothing(clock):
    """Asking how long to wait does not make it longer."""
    buckets = Buckets(per_minute=60, burst=1, clock=clock)

    assert [0, 0, 0] == [buckets.wait_s("a"), buckets.wait_s("a"), buckets.take("a")]
    assert 1.0 == buckets.wait_s("a")


def test_memory_is_bounded(clock, monkeypatch):
    """Of more askers than are kept, the one unheard of for longest is forgotten."""
    monkeypatch.setattr(limits, "MOST_KEYS", 2)
    buckets = Buckets(per_minute=60, burst=1, clock=clock)
    for key in "abc":
        buckets.take(key)

    assert [0, 1.0, 1.0] == [buckets.wait_s(key) for key in "abc"]
