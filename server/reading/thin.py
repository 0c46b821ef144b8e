"""How many points are enough: which of a series' points a chart needs to look as it does with all of them. Pure.

Cut into buckets of equally many points; of each the lowest and the highest are kept, with the first and the last of all
(min-max, as M4 of Jugel et al. 2014 keeps them), and the first failure, which has no value to stand out by.
"""

from __future__ import annotations

from collections.abc import Sequence

KEPT = 3
"""Points that a bucket keeps at most."""

FEWEST = 2 + KEPT
"""Points below which there is no room for one bucket."""


def thinned(values: Sequence[float | None], failed: Sequence[bool], limit: int) -> Sequence[int]:
    """Return the places of at most `limit` points, in order.

    Args:
        values, failed: `(points,)`; the value of a point, None without one, and whether it is a failure.

    Raises:
        ValueError: the limit is below `FEWEST`.
    """
    if limit < FEWEST:
        raise ValueError(f"{limit} points are too few to show a series: {FEWEST} at least")
    count = len(values)
    if count <= limit:
        return range(count)
    buckets = (limit - 2) // KEPT
    inner = count - 2
    kept = {0, count - 1}
    for number in range(buckets):
        places = range(1 + inner * number // buckets, 1 + inner * (number + 1) // buckets)
        known = [(value, place) for place in places if (value := values[place]) is not None]
        if known:
            kept.add(min(known)[1])
            kept.add(max(known)[1])
        kept.update([place for place in places if failed[place]][:1])
    return sorted(kept)
