"""What is read of a run in one piece is kept until the run's results change."""

from __future__ import annotations

from server.reading.kept import Kept, Version


def version(newest: int, run_key: int = 1) -> Version:
    return Version(run_key, newest, 1, 1)


def test_made_once():
    """A value is made when its version is asked for first, and not again."""
    made = []
    values: Kept[int] = Kept(2)
    for _ in range(3):
        assert values.get(version(7), lambda: made.append(None) or len(made)) == 1


def test_made_anew_for_another_version():
    """A run with a newer result has another value."""
    values: Kept[str] = Kept(2)
    assert values.get(version(7), lambda: "old") == "old"
    assert values.get(version(8), lambda: "new") == "new"


def test_the_one_asked_longest_ago_goes():
    """No more are kept than was said, and what was asked for last stays."""
    values: Kept[int] = Kept(2)
    first, second, third = (version(7, run_key) for run_key in (1, 2, 3))
    for each in (first, second, first, third):
        values.get(each, lambda: 0)
    assert values.get(first, lambda: 1) == 0
    assert values.get(second, lambda: 1) == 1
