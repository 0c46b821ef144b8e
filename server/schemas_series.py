"""What the API answers of time: series, trends of summaries, and which filters have data. Columns, not rows."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Self

from harness.record import Outcome
from server.schemas import Answer


class Figure(StrEnum):
    """What a series is of; the unit stands in the name, and ratios have none."""

    SPEEDUP = "speedup"
    EAGER_TIME = "eager_s"
    COMPILED_TIME = "compiled_s"
    COMPILE_TIME = "compile_wall_s"
    COMPILE_CPU = "compile_cpu_s"
    MEMORY_RATIO = "memory_ratio"
    EAGER_PEAK = "eager_peak_bytes"
    COMPILED_PEAK = "compiled_peak_bytes"
    GRAPHS = "graphs"
    GRAPH_BREAKS = "graph_breaks"
    RECOMPILES = "recompiles"
    BREAK_EVEN = "break_even_steps"


WITH_INTERVAL = (Figure.SPEEDUP, Figure.EAGER_TIME, Figure.COMPILED_TIME)
"""Come from samples: with an interval, and with a value only where the times are valid."""


class Points(Answer):
    """One metric over time, oldest first. A column has one element per point; null is absent."""

    metric: Figure
    total: int
    """Points there are between `since` and `until`."""
    thinned: bool
    """Fewer are here: the first and the last, of every stretch its lowest, its highest and its first failure."""
    at: tuple[datetime, ...]
    """When the case was started."""
    value: tuple[float | None, ...]
    low: tuple[float | None, ...]
    high: tuple[float | None, ...]
    outcome: tuple[Outcome, ...]
    run: tuple[str, ...]

    @classmethod
    def none(cls, metric: Figure) -> Self:
        """Nothing, of a time without a result."""
        return cls(metric=metric, total=0, thinned=False, at=(), value=(), low=(), high=(), outcome=(), run=())


class Series(Answer):
    """One case on one class of machine, from one source and branch, over time."""

    id: int
    case_id: str
    suite: str
    model: str
    batch_size: int | None
    configuration_id: str
    label: str
    device: str
    mode: str
    precision: str
    backend: str
    hard: str
    """Fingerprint of the machine and the method: another one starts another series."""
    cpu: str | None
    """Of the machines with this fingerprint."""
    source: str | None
    """Foreign format; null: measured by us."""
    branch: str | None
    results: int
    """Of all time."""
    first_at: datetime
    last_at: datetime
    outcome: Outcome
    """Of the newest result."""
    passed_at: datetime | None
    """When it last passed; null: never."""
    points: tuple[Points, ...]
    """One for each metric that was asked for."""


class Trend(Answer):
    """The summaries of one suite in one configuration on one class of machine, a run a point, oldest first."""

    suite: str
    configuration_id: str
    label: str
    device: str
    hard: str
    cpu: str | None
    source: str | None
    branch: str | None
    total: int
    """Runs between `since` and `until`."""
    thinned: bool
    at: tuple[datetime, ...]
    """When the run began."""
    run: tuple[str, ...]
    planned: tuple[int, ...]
    skipped: tuple[int, ...]
    passed: tuple[int, ...]
    missing: tuple[int, ...]
    """Without a result: missing, or still waiting where the run goes on."""
    speedup: tuple[float | None, ...]
    """Geometric mean of what is valid in that run: of other models, where other models failed."""
    low: tuple[float | None, ...]
    high: tuple[float | None, ...]
    n: tuple[int | None, ...]
    """Results in the mean."""
    compile_wall_s: tuple[float | None, ...]
    memory_ratio: tuple[float | None, ...]


class Facet(Answer):
    """A value that a filter may have, and how many series it would leave under the other filters."""

    value: str | None
    """Null: none was named; the filter asks for it with an empty word."""
    series: int


class Facets(Answer):
    """For each filter the values that have data, the most frequent first."""

    suite: tuple[Facet, ...]
    model: tuple[Facet, ...]
    device: tuple[Facet, ...]
    mode: tuple[Facet, ...]
    precision: tuple[Facet, ...]
    backend: tuple[Facet, ...]
    preset: tuple[Facet, ...]
    branch: tuple[Facet, ...]
    source: tuple[Facet, ...]
    hard: tuple[Facet, ...]
    status: tuple[Facet, ...]
    """How the newest result of the series ended."""
