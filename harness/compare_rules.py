"""What is compared: which way is better, how small a change counts, and which metrics decide on a case."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType

from harness.compare_points import Point


class Metric(StrEnum):
    """What is compared; each is a field of `Point`."""

    SPEEDUP = "speedup"
    EAGER_TIME = "eager_s"
    COMPILED_TIME = "compiled_s"
    COMPILE_TIME = "compile_wall_s"
    PEAK_MEMORY = "compiled_peak_bytes"
    MEMORY_RATIO = "memory_ratio"
    GRAPH_BREAKS = "graph_breaks"


class Family(StrEnum):
    """Metrics that move together, and are counted together."""

    TIME = "time"
    COMPILE = "compile"
    MEMORY = "memory"
    GRAPHS = "graphs"


@dataclass(frozen=True)
class Trait:
    """What is known of a metric beforehand.

    Args:
        floor: smallest relative change that counts as one; of a counted metric, the smallest difference.
        timed: comes from samples, so that both sides must be valid.
        counted: a whole number that does not vary by chance and may well be zero.
        ends: the fields of `Point` with its interval.
    """

    more_is_better: bool
    family: Family
    floor: float
    timed: bool = False
    counted: bool = False
    ends: tuple[str, str] | None = None


TRAITS: Mapping[Metric, Trait] = MappingProxyType(
    {
        Metric.SPEEDUP: Trait(True, Family.TIME, 0.02, timed=True, ends=("speedup_low", "speedup_high")),
        Metric.EAGER_TIME: Trait(False, Family.TIME, 0.02, timed=True, ends=("eager_s_low", "eager_s_high")),
        Metric.COMPILED_TIME: Trait(False, Family.TIME, 0.02, timed=True, ends=("compiled_s_low", "compiled_s_high")),
        # One cold compilation a side, on a host that does other things too; see docs/comparing.md for what was seen.
        Metric.COMPILE_TIME: Trait(False, Family.COMPILE, 0.2),
        # One peak a side, which a CPU's kernel counts with pages that the allocator happens to keep.
        Metric.PEAK_MEMORY: Trait(False, Family.MEMORY, 0.1),
        Metric.MEMORY_RATIO: Trait(True, Family.MEMORY, 0.1),
        Metric.GRAPH_BREAKS: Trait(False, Family.GRAPHS, 1.0, counted=True),
    }
)


@dataclass(frozen=True)
class Rules:
    """What counts as a change, and which metrics decide on a case.

    Args:
        floors: in place of the floors of `TRAITS`, for any of the metrics.
        deciding: the first of these that changed decides; if none did, the first that there is says what is known.
            Compile time and memory are judged and shown, but do not decide: one figure a side tells nothing of
            its spread.
    """

    floors: Mapping[Metric, float] = field(default_factory=dict)
    deciding: tuple[Metric, ...] = (Metric.SPEEDUP, Metric.GRAPH_BREAKS)

    def __post_init__(self) -> None:
        for metric, floor in self.floors.items():
            if not (math.isfinite(floor) and floor >= 0):
                raise ValueError(f"{floor} cannot be the floor of {metric}: it is a share, zero or more")
        if not self.deciding:
            raise ValueError("at least one metric must decide")

    def floor(self, metric: Metric) -> float:
        return self.floors.get(metric, TRAITS[metric].floor)


RULES = Rules()


def number(point: Point, metric: Metric) -> float | None:
    """Return a point's number, or None where it has none or none that is finite."""
    value: float | None = getattr(point, metric)  # a member is its own text, and `.value` is three times as slow
    return value if value is not None and math.isfinite(value) else None
