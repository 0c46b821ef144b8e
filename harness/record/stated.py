"""What files from elsewhere state about a case, in our units, with the rows it was read from."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import Field

from suites.spec import Frozen


class Cells(Frozen):
    """A row of a file from elsewhere, verbatim; of JSON records, what each says of its metric."""

    file: str
    """Its name, without folders."""
    line: int
    """From 1; of an array without line ends, the place in it."""
    cells: Mapping[str, str]
    """By the name of the column."""


class Stated(Frozen):
    """What files from elsewhere state about a case, in our units. Absent is None: a zero that means failed, not
    measured or padded is not here, but still in `rows`."""

    word: str | None = None
    """The status, as it was written."""
    speedup: float | None = None
    eager_s: float | None = None
    """Seconds per step, as `compiled_s`; of a file with speedup and compiled time alone, their product."""
    compiled_s: float | None = None
    compile_wall_s: float | None = None
    """Of the first calls, less as many eager ones; negative: below what can be told."""
    compiler_s: float | None = None
    """By the compiler's own timers: another quantity, which the file of the accuracy run states under the same name."""
    phases_s: Mapping[str, float] = Field(default_factory=dict)
    memory_ratio: float | None = None
    """Eager peak / compiled peak."""
    eager_peak_bytes: int | None = None
    compiled_peak_bytes: int | None = None
    memory_comparable: bool = True
    """False: that runner's peaks on this kind of device are known to be wrong, though their ratio may be right."""
    graphs: int | None = None
    graph_breaks: int | None = None
    unique_graph_breaks: int | None = None
    operators: int | None = None
    recompiles: int | None = None
    break_reasons: tuple[str, ...] = ()
    """Why graphs broke, each reason once."""
    cudagraph_skips: int | None = None
    instructions: int | None = None
    """Processor instructions spent on compiling."""
    eager_samples_per_s: float | None = None
    compiled_samples_per_s: float | None = None
    other: Mapping[str, float] = Field(default_factory=dict)
    """Numbers that have no field here, by the name that the file gives them."""
    notes: tuple[str, ...] = ()
    """What was odd about the rows, in words."""
    rows: tuple[Cells, ...] = ()
    """All that was read, so that an export gives the same facts back."""
