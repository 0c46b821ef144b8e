"""What is derived from a record: its statistics, and the figures that columns and summaries show."""

from __future__ import annotations

from enum import StrEnum

from harness.record.versions import METHOD
from harness.stats import Estimate
from suites.spec import Frozen


class Flag(StrEnum):
    """A mark on a result that a reader should see before trusting it."""

    CORRELATED = "correlated"
    DRIFTING = "drifting"
    OUTLIERS = "outliers"
    IMPRECISE = "imprecise"
    RECOMPILED = "recompiled"
    EMULATED = "emulated"
    INSENSITIVE = "insensitive"
    NOT_COLD = "not_cold"
    NOT_COMPILED = "not_compiled"
    NOT_FINITE = "not_finite"
    NO_REFERENCE = "no_reference"
    THROTTLED = "throttled"
    UNLOCKED = "unlocked"
    SHARED = "shared"


class Derived(Frozen):
    """Statistics of one record by method `METHOD`; can be derived again from its samples."""

    method: int = METHOD
    valid: bool
    """The times may enter aggregates: the case passed, nothing recompiled, nothing was emulated."""
    invalid_why: str | None = None
    speedup: Estimate | None = None
    """Within one launch: says nothing about the spread between interpreters."""
    eager_s: Estimate | None = None
    compiled_s: Estimate | None = None
    no_estimate: str | None = None
    """Why there is no speedup."""
    break_even_steps: float | None = None
    """Steps after which compiling has paid for itself; None: never, or unknown."""
    memory_ratio: float | None = None
    """Eager peak / compiled peak: above 1, compiled needs less."""
    flags: tuple[Flag, ...] = ()


class Numbers(Frozen):
    """The figures that columns and summaries show of a record: one place for measured and for stated ones."""

    speedup: Estimate | None = None
    eager_s: Estimate | None = None
    compiled_s: Estimate | None = None
    """These three have no interval where others state them."""
    compile_wall_s: float | None = None
    compile_cpu_s: float | None = None
    graphs: int | None = None
    graph_breaks: int | None = None
    operators: int | None = None
    recompiles: int | None = None
    break_even_steps: float | None = None
    eager_peak_bytes: int | None = None
    compiled_peak_bytes: int | None = None
    memory_ratio: float | None = None
