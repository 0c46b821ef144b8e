"""Which points of a series a chart needs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from server.reading.thin import FEWEST, thinned

VALUES = st.lists(st.none() | st.floats(0.5, 4.0), max_size=400)


@given(VALUES, st.integers(FEWEST, 120))
def test_ends_and_extremes_stay(values, limit):
    """At most as many points as asked for, in order; with the first, the last, the lowest and the highest value."""
    kept = list(thinned(values, [value is None for value in values], limit))

    shown = [values[place] for place in kept]
    known = [value for value in values if value is not None]
    assert len(kept) <= max(limit, 0)
    assert sorted(set(kept)) == kept
    if values:
        assert (0, len(values) - 1) == (kept[0], kept[-1])
    if known:
        assert min(known) in shown
        assert max(known) in shown


def test_few_points_are_all_there():
    """Nothing is left out while there is room."""
    assert [0, 1, 2, 3, 4] == list(thinned([1.0] * 5, [False] * 5, 5))


def test_by_hand():
    """Two stretches of four points between the ends: of each its lowest and its highest."""
    values = [1.0, 2.0, 5.0, 3.0, 4.0, 9.0, 8.0, 6.0, 7.0, 1.0]

    assert [0, 1, 2, 5, 7, 9] == thinned(values, [False] * 10, 8)


def test_failure_stays():
    """A single failure among many passes is kept, though it has no value."""
    values = [1.0 + number % 7 for number in range(1000)]
    values[500] = None

    assert 500 in thinned(values, [value is None for value in values], 20)


def test_too_few_points_are_an_error():
    """There is no series of four points that shows anything."""
    with pytest.raises(ValueError, match="4 points are too few"):
        thinned([1.0] * 9, [False] * 9, 4)
