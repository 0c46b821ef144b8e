"""What was observed of a case: how and where it ended, its check, its compilation, its samples, its surroundings."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Literal

from pydantic import Field

from suites.spec import Frozen


class Outcome(StrEnum):
    """How a case ended; `docs/glossary.md` maps these to the upstream runner's words."""

    PASS = "pass"
    FAIL_ACCURACY = "fail_accuracy"
    FAIL_TO_RUN = "fail_to_run"
    EAGER_FAIL_TO_RUN = "eager_fail_to_run"
    EAGER_TWO_RUNS_DIFFER = "eager_two_runs_differ"
    MODEL_FAIL_TO_LOAD = "model_fail_to_load"
    OOM = "oom"
    TIMEOUT = "timeout"
    CRASH = "crash"
    SKIPPED = "skipped"
    MISSING = "missing"
    UNKNOWN = "unknown"
    """A file from elsewhere does not say, or says it in a word that nobody knows."""


class Stage(StrEnum):
    """Where a case is, or where it ended."""

    LOAD = "load"
    EAGER = "eager"
    REFERENCE = "reference"
    EAGER_TWICE = "eager_twice"
    COMPILE = "compile"
    CHECK = "check"
    TIME = "time"
    MEMORY = "memory"


class Side(StrEnum):
    EAGER = "eager"
    COMPILED = "compiled"


class Reference(StrEnum):
    """What the compiled output was held against."""

    FLOAT64 = "float64"
    EAGER = "eager"
    NONE = "none"
    STATED = "stated"
    """Another runner's word; against what, it does not say."""


class StageTime(Frozen):
    stage: Stage
    wall_s: float


class Failure(Frozen):
    """What went wrong, in the words of the one who raised it; bounded."""

    kind: str
    text: str
    traceback: str | None = None


class Observed(Frozen):
    """What was really there while the case ran, beside what was asked."""

    parameters: int | None = None
    output_dtypes: tuple[str, ...] = ()
    parameter_dtypes: tuple[str, ...] = ()
    autocast_dtype: str | None = None
    batch_size: int | None = None
    """Leading dimension of the first tensor among the arguments."""
    training: bool | None = None
    grad: bool | None = None
    threads: int | None = None
    tf32: bool | None = None
    deterministic: bool | None = None
    emulated: bool = False
    """The machine has no instructions for this precision: times say nothing about the compiler."""
    attention_kernel: str | None = None
    """The fused kernels that eager attention ran, `math` for a call that none served, `spelled out` for batched
    products around a softmax; None: no attention seen."""
    eager_step_s: float | None = None
    """Of the second step, where nothing is compiled: one look, no estimate."""
    peak_bytes: int | None = None
    """Most memory that the process held at any time, where nothing is compiled: weights, gradients and all; on an
    accelerator, the most of its memory."""
    dropouts: int = 0
    """Dropout probabilities that were lowered to nearly zero."""
    draws_random_numbers: bool | None = None
    mutates_inputs: bool | None = None
    parameters_changed: bool | None = None
    """By one step with the optimizer; None without one."""
    sensitivity: float | None = None
    """How far (RMS) the outputs of two different inputs lie apart, in units of the check's slack."""
    insensitive: bool = False
    """The check could hardly notice a wrong answer: sensitivity below 100."""
    device_type: str | None = None


class Leaf(Frozen):
    """One compared value: its path, its error (RMSE, or None where not a number) and what was allowed."""

    name: str
    error: float | None = None
    allowed: float | None = None
    detail: str | None = None


class Accuracy(Frozen):
    """Compiled against eager and the reference. `failed` holds the first ten of `failed_count`."""

    reference: Reference
    reference_why: str | None = None
    """Why the reference is not float64."""
    tolerance: float | None = None
    leaves: int | None = None
    failed_count: int = 0
    failed: tuple[Leaf, ...] = ()
    worst: Leaf | None = None
    eager_noise: float | None = None
    """Largest RMSE between two eager runs of the same numbers."""
    rounding: float | None = None
    """Largest share of a leaf's RMS that rounding alone moves; None: nothing failed that it could explain."""
    batch_size: int | None = None
    """Batch of the check where it differs from the timed one: then another compile was checked."""


class GraphBreak(Frozen):
    reason: str
    count: int
    where: str | None = None
    ours: bool = False
    """Caused by a line of the harness, not of the model."""


class Frame(Frozen):
    """One compiled frame: a Python function that the compiler took in."""

    name: str
    file: str
    line: int
    operators: int
    symbols: int = 0
    """Symbolic sizes in its graph; 0: all shapes static."""


class CompileReport(Frozen):
    """One cold compilation. Wall and CPU seconds are those of the first call less one steady call."""

    wall_s: float
    cpu_s: float
    first_call_s: float
    phases_s: Mapping[str, float] = Field(default_factory=dict)
    graphs: int
    operators: int
    graph_breaks: int
    breaks: tuple[GraphBreak, ...] = ()
    recompiles: int = 0
    """Further compilations of a frame already compiled, before timing."""
    cache_hits: int = 0
    cache_misses: int = 0
    cold: bool
    """No cache answered: verified by the compiler's own counters."""
    backend: str
    compiled_by: str | None = None
    """Which of the compiler's parts were seen at work: `inductor`, `aot_autograd` or `dynamo`."""
    frames: tuple[Frame, ...] = ()
    options: Mapping[str, str] = Field(default_factory=dict)
    """Settings of the compiler that the compile mode changed, as seen while it compiled."""
    random_numbers_from_eager: bool = False


class StopReason(StrEnum):
    PRECISE = "precise"
    PAIR_CAP = "pair_cap"
    TIME_CAP = "time_cap"
    ERROR = "error"


class Timing(Frozen):
    """Every sample, in seconds per step, in the order taken. `eager_first` says who went first in each pair."""

    eager_s: tuple[float, ...]
    compiled_s: tuple[float, ...]
    eager_first: tuple[bool, ...]
    inner_loops: int
    warmup_s: float
    sampling_s: float
    stop_reason: StopReason
    cache: Literal["hot"] = "hot"
    recompiles: int = 0
    """Compilations inside the timed region; any makes the times not valid."""
    drifting: bool = False
    """First and last third differed even after a second, longer warm-up."""
    finite_after: bool | None = None
    """Loss and parameters were finite after timing."""
    eager_events_s: tuple[float, ...] = ()
    compiled_events_s: tuple[float, ...] = ()
    """Seconds per step by the device's own events, beside the host's clock; empty where it has none."""


class Memory(Frozen):
    """Peak above the baseline of one step of each side; None where the kernel refuses to reset the peak."""

    eager_peak_bytes: int | None
    compiled_peak_bytes: int | None


class ClockLock(StrEnum):
    """What became of the wish to hold a device's clock."""

    HELD = "held"
    REFUSED = "refused"
    LOST = "lost"
    """Held at first, and found elsewhere during the case."""


class Conditions(Frozen):
    """The device and the host while a case was timed: read before, between pairs and after, never inside a sample."""

    readings: int
    clock_wanted_mhz: float | None = None
    """What the clock is held at, or else the highest that the device promises."""
    clock_before_mhz: float | None = None
    clock_median_mhz: float | None = None
    clock_lowest_mhz: float | None = None
    slow_share: float | None = None
    """Share of readings with a clock below 75 % of the wanted one."""
    lock: ClockLock | None = None
    """None: not asked for."""
    throttle_reasons: tuple[str, ...] = ()
    """All that were given, e.g. `power cap`."""
    temperature_c: float | None = None
    """Highest."""
    power_w: float | None = None
    """Highest."""
    foreign_processes: tuple[str, ...] = ()
    """Programs of others on the device, before or after."""
    steal_share: float | None = None
    """Share of the processors' time that a hypervisor gave to others."""


class Log(Frozen):
    """What the worker printed, cut to a bounded size: its head and its tail."""

    head: str = ""
    tail: str = ""
    bytes: int = 0


class Findings(Frozen):
    """What the worker found out about a case, complete or so far."""

    outcome: Outcome
    stage: Stage | None = None
    """Where it ended; None when it went through all stages or was skipped."""
    side: Side | None = None
    text: str | None = None
    """One sentence: why it is no plain pass."""
    failure: Failure | None = None
    stages: tuple[StageTime, ...] = ()
    observed: Observed = Observed()
    accuracy: Accuracy | None = None
    compile: CompileReport | None = None
    timing: Timing | None = None
    memory: Memory | None = None
    conditions: Conditions | None = None
