"""What the API answers. Units stand in the names; absent is null, never zero, never NaN."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum

from pydantic import BaseModel, ConfigDict

from harness.beside import Comparison
from harness.record import (
    Case,
    Configuration,
    DeviceProfile,
    Environment,
    Finding,
    Flag,
    Outcome,
    Protocol,
    Reference,
    Side,
    Stage,
)
from harness.summary import UNCLIPPED


class Answer(BaseModel):
    """A value that does not change."""

    model_config = ConfigDict(frozen=True)


class Estimate(Answer):
    """A number with its 95 % interval, the count behind it and the method; others' figures come without an interval."""

    value: float
    low: float | None
    high: float | None
    n: int | None = None
    method: str | None = None

    @property
    def bounds(self) -> tuple[float, float] | None:
        """Lower and upper end of the interval; None without one."""
        return None if self.low is None or self.high is None else (self.low, self.high)


class PassRate(Answer):
    """passed / judged, judged = planned - skipped; Wilson's 95 % interval. Null where nothing was judged."""

    passed: int
    judged: int
    share: float | None = None
    low: float | None = None
    high: float | None = None


class RunState(StrEnum):
    """Where a run is."""

    RUNNING = "running"
    FINISHED = "finished"
    INTERRUPTED = "interrupted"
    LOST = "lost"
    """Ended without saying so: no sign of life for longer than its case in hand may take."""


class LeftOut(Answer):
    model: str
    why: str


class Summary(Answer):
    """How a run's cases of one suite in one configuration ended."""

    suite: str
    configuration_id: str
    label: str
    configuration: Configuration
    planned: int
    skipped: int
    passed: int
    waiting: int
    """Without a result, and the run is still going on."""
    missing: int
    """Without a result, and the run is over."""
    crashed: int
    outcomes: Mapping[Outcome, int]
    """They add up to `planned`; waiting cases are counted as missing here."""
    pass_rate: PassRate
    speedup: Estimate | None
    """Geometric mean of the valid results; interval of the measurement, for these models."""
    no_speedup: str | None
    rule: str = UNCLIPPED
    """By which `speedup` was averaged."""
    emulated: int
    unchecked: int
    """Ran, but held against nothing: not counted as passed."""
    left_out: tuple[LeftOut, ...]
    """Cases that are not in the geometric mean."""
    compile_wall_s: float | None
    """Median."""
    memory_ratio: float | None
    """Median of eager peak / compiled peak."""


class Run(Answer):
    """A run with its counts."""

    id: str
    started_at: datetime
    state: RunState
    ended_at: datetime | None
    heartbeat_at: datetime
    """Last sign of life."""
    command: str
    device: str
    host: str | None
    cpu: str | None
    torch: str | None
    source: str | None
    """The foreign format it was imported from; null: measured by us."""
    dated: bool
    """False: nothing says when it was measured; `started_at` is when its file was written."""
    trigger: str | None
    branch: str | None
    commit: str | None
    fork_point: str | None
    """Where its branch left the main line."""
    planned: int
    skipped: int
    passed: int
    waiting: int
    missing: int
    crashed: int
    pass_rate: PassRate
    summaries: tuple[Summary, ...]


class InHand(Answer):
    """A case that is being measured now."""

    case_id: str
    suite: str
    model: str
    label: str
    attempt: int
    started_at: datetime
    stage: Stage | None
    """Null: the worker is starting."""
    stage_since: datetime
    timeout_s: float


class FailureGroup(Answer):
    """Cases that ended in the same way at the same stage with the same first line of text."""

    outcome: Outcome
    stage: Stage | None
    cause: str
    cases: tuple[str, ...]


class RunDetail(Run):
    """A run with its machine, its protocol, what is in hand, what failed, and what may be held beside it."""

    environment: Environment
    profile: DeviceProfile
    protocol: Protocol
    doctor: tuple[Finding, ...]
    """How fit the host was found to be, before the first case, the worst first; empty: nobody looked."""
    in_hand: tuple[InHand, ...]
    failures: tuple[FailureGroup, ...]
    reference: str | None
    """The reference configuration that was asked for, with `--as`."""
    comparisons: tuple[Comparison, ...]
    """Beside published figures: ours by their rule, or in which points the run is of another configuration."""


class Status(StrEnum):
    """How a planned case stands: one of the outcomes, or on its way to one."""

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
    WAITING = "waiting"
    RUNNING = "running"


class Result(Answer):
    """A planned case and its newest result. Without one, everything after `status` is null."""

    case_id: str
    position: int
    suite: str
    model: str
    configuration_id: str
    label: str
    device: str
    mode: str
    precision: str
    backend: str
    batch_size: int | None
    tolerance: float | None
    status: Status
    text: str | None = None
    """Why it is no plain pass."""
    record_id: str | None = None
    attempt: int | None = None
    finished_at: datetime | None = None
    stage: Stage | None = None
    side: Side | None = None
    valid: bool | None = None
    """The times may enter aggregates."""
    invalid_why: str | None = None
    emulated: bool = False
    flags: tuple[Flag, ...] = ()
    reference: Reference | None = None
    speedup: Estimate | None = None
    no_estimate: str | None = None
    eager_s: float | None = None
    compiled_s: float | None = None
    compile_wall_s: float | None = None
    compile_cpu_s: float | None = None
    graphs: int | None = None
    graph_breaks: int | None = None
    recompiles: int | None = None
    break_even_steps: float | None = None
    eager_peak_bytes: int | None = None
    compiled_peak_bytes: int | None = None
    memory_ratio: float | None = None


class RecordSamples(Answer):
    """Every sample of a record, in pairs in the order in which they were taken: seconds per step."""

    record_id: str
    eager_s: tuple[float, ...]
    compiled_s: tuple[float, ...]
    eager_first: tuple[bool, ...]
    """Which of the two of a pair was taken first."""


class Log(Answer):
    """What a record's worker printed, cut to a bounded size: its head and its tail."""

    head: str
    tail: str
    bytes: int
    """Of all that was printed."""


class Duration(Answer):
    """How long a case took, and how it ended."""

    case: Case
    seconds: float
    outcome: Outcome


class Health(Answer):
    """The process answers; of its database this says nothing."""

    status: str
    version: str
