"""Fixed limits, for those who hold some: which of them did a case cross?

A limit knows nothing of noise; `harness.compare` does. A figure exactly at its limit is no alarm, and neither is what
was beyond the limit, or failed, before: an alarm is news.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from harness.compare_changes import BY_NUMBERS
from harness.compare_points import Point
from harness.compare_rules import Metric, number
from harness.record import Outcome

ROUNDING = 1e-12
"""0.95 of 2.47 is 2.3465, whatever the last bit of the product says."""


@dataclass(frozen=True)
class Limits:
    """The limits of the upstream project's dashboard.

    Args:
        speedup, memory_ratio: smallest share of the base's that is no alarm.
        compile_s: most seconds that are none.
    """

    speedup: float = 0.95
    memory_ratio: float = 0.9
    compile_s: float = 120.0


LIMITS = Limits()


class Limit(StrEnum):
    """What was crossed."""

    OUTCOME = "outcome"
    SPEEDUP = "speedup"
    MEMORY_RATIO = "memory_ratio"
    COMPILE_TIME = "compile_wall_s"


@dataclass(frozen=True)
class Alarm:
    """A limit that a case crossed.

    Args:
        value, limit: the head's figure, and the one that it may just have; None for the outcome.
    """

    crossed: Limit
    value: float | None = None
    limit: float | None = None


def alarms(base: Point | None, head: Point, limits: Limits = LIMITS) -> tuple[Alarm, ...]:
    """Return the limits that a case crossed, in the order of `Limit`.

    A case that fails has no figures to be held against anything: its alarm is the outcome, if it passed before.

    Args:
        base: None: a new case. Only its compile time is held against a limit.
    """
    if head.outcome in (Outcome.SKIPPED, Outcome.MISSING):
        return ()
    if head.outcome not in BY_NUMBERS:
        return (Alarm(Limit.OUTCOME),) if base and base.outcome == Outcome.PASS else ()
    shares = {Limit.SPEEDUP: limits.speedup, Limit.MEMORY_RATIO: limits.memory_ratio}
    found = [_below(base, head, limit, share) for limit, share in shares.items()]
    return tuple(alarm for alarm in (*found, _too_long(base, head, limits.compile_s)) if alarm)


def _below(base: Point | None, head: Point, limit: Limit, share: float) -> Alarm | None:
    if base is None or (limit == Limit.SPEEDUP and not (base.valid and head.valid)):
        return None
    old, new = number(base, Metric(limit.value)), number(head, Metric(limit.value))
    if old is None or old <= 0 or new is None:
        return None
    least = share * old
    return Alarm(limit, new, least) if new < least * (1 - ROUNDING) else None


def _too_long(base: Point | None, head: Point, most_s: float) -> Alarm | None:
    old, new = (number(point, Metric.COMPILE_TIME) if point else None for point in (base, head))
    if new is None or new <= most_s or (old is not None and old > most_s):
        return None
    return Alarm(Limit.COMPILE_TIME, new, most_s)
