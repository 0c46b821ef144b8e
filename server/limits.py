"""How often one asker may ask: a bucket of tokens each, filled at a steady rate."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable

MOST_KEYS = 10_000
"""Buckets that are kept; the one unused for longest is forgotten first, which only gives its asker a full one."""


class Buckets:
    """A bucket for each key. For one thread: the event loop's.

    Args:
        per_minute: requests that flow back in a minute.
        burst: requests that a full bucket holds.
        clock: in seconds.
    """

    def __init__(self, per_minute: float, burst: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_s = per_minute / 60
        self._burst = burst
        self._clock = clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()
        """By key: what it holds, and when that was so; used last, stands last."""

    def wait_s(self, key: str) -> float:
        """Return the seconds until the bucket holds one request; 0: it does now."""
        return max(0.0, (1 - self._held(key)) / self._per_s)

    def take(self, key: str) -> float:
        """Take one request out of the bucket and return 0, or the seconds to wait where it holds none."""
        held = self._held(key)
        if held < 1:
            return (1 - held) / self._per_s
        self._buckets[key] = (held - 1, self._clock())
        self._buckets.move_to_end(key)
        if len(self._buckets) > MOST_KEYS:
            self._buckets.popitem(last=False)
        return 0.0

    def _held(self, key: str) -> float:
        held, at = self._buckets.get(key, (self._burst, self._clock()))
        return min(self._burst, held + (self._clock() - at) * self._per_s)
