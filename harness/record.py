"""THE SCHEMA: what is asked for, what was observed, what was derived from it.

A journal is a file of JSON lines, each with `schema` and `type`: one `Run`, then per case a
`Start` and a `Record`, at last a `RunEnd`. Units stand in the names (`_s` seconds, `_bytes`);
absent is None, never zero, never NaN. Nothing here imports torch.
"""

from __future__ import annotations

import hashlib
import json
import secrets
import time
import uuid
from collections.abc import Mapping
from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field, PositiveFloat, PositiveInt, TypeAdapter

from harness import stats
from harness.stats import Estimate
from suites.spec import Attention, Frozen, Mode, ModelSpec, Precision, Preset

SCHEMA: Literal[1] = 1
"""Version of the lines of a journal."""

METHOD = 1
"""Version of how things are measured. Raised by every change that moves a number; part of the hard fingerprint."""

_NAMESPACE = uuid.UUID("6f0f3c1e-6a53-4c57-9d0b-3f4f6d6f2b10")


def now() -> datetime:
    return datetime.now(UTC)


# -- what is asked for ------------------------------------------------------------------------


class CompileScope(StrEnum):
    """What is compiled: the module (as the announcement shows it) or the whole step."""

    MODULE = "module"
    STEP = "step"


class OptimizerKind(StrEnum):
    NONE = "none"
    SGD = "sgd"
    ADAM = "adam"


class Measure(StrEnum):
    """Which stages a run goes through: all, without timing, or without the accuracy check."""

    ALL = "all"
    ACCURACY = "accuracy"
    PERFORMANCE = "performance"


NO_BACKEND = "none"
"""In place of a backend: the model runs eager alone, and nothing is compiled."""

UNKNOWN = "unknown"
"""In place of a name that a file from elsewhere does not say: a suite, a device, a backend."""

_LATER = {"attention": Attention.FUSED.value, "preset": Preset.FULL.value, "variant": None}
"""Fields of a configuration that did not exist from the first, with their defaults."""


class Configuration(Frozen):
    """Everything about a case but its model: what a summary is kept for."""

    device: str
    """Name of the device profile."""
    mode: Mode
    precision: Precision
    amp_dtype: str | None = None
    """Number format of autocast, e.g. `bfloat16`; None unless the precision is amp."""
    tf32: bool = False
    backend: str = "inductor"
    compile_mode: str = "default"
    compile_scope: CompileScope = CompileScope.MODULE
    optimizer: OptimizerKind = OptimizerKind.NONE
    dynamic: bool = False
    deterministic: bool = False
    attention: Attention = Attention.FUSED
    preset: Preset = Preset.FULL
    variant: str | None = None
    """What a foreign runner calls its way of compiling, in its own words, e.g. `with_cudagraphs`; None: ours."""

    @property
    def id(self) -> str:
        """Hash of the fields. One that came later enters it only with a value that is not its default: so cases and
        configurations of older journals keep their ids."""
        values = self.model_dump(mode="json")
        for name, plain in _LATER.items():
            if values[name] == plain:
                del values[name]
        text = json.dumps(values, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    @property
    def label(self) -> str:
        """Short text of what differs from the plain case, e.g. `training amp(bfloat16) aot_eager`."""
        words = ["small"] if self.preset == Preset.SMALL else []
        words += [self.mode.value, self.precision.value + (f"({self.amp_dtype})" if self.amp_dtype else "")]
        words += ["eager alone" if self.backend == NO_BACKEND else self.backend] if self.backend != "inductor" else []
        words += [self.compile_mode] if self.compile_mode != "default" else []
        words += ["whole step"] if self.compile_scope == CompileScope.STEP else []
        words += [self.optimizer.value] if self.optimizer != OptimizerKind.NONE else []
        words += [name for name in ("tf32", "dynamic", "deterministic") if getattr(self, name)]
        words += [f"{self.attention} attention"] if self.attention != Attention.FUSED else []
        words += [self.variant] if self.variant else []
        return " ".join(words)


class Case(Configuration):
    """One model in one configuration. Two equal cases have equal ids, in every run and on every host."""

    suite: str
    model: str
    batch_size: int | None = None
    """None: the model's own inputs decide, as in a person's file without `batch_size`."""

    @property
    def name(self) -> str:
        return f"{self.suite}/{self.model}"

    @property
    def configuration(self) -> Configuration:
        return Configuration.model_validate(self.model_dump(include=set(Configuration.model_fields)))

    def __str__(self) -> str:
        return f"{self.name} {self.label}"


class Orders(Frozen):
    """How a case is run and judged here."""

    module: str
    """Importable name of the suite's builder."""
    tolerance: float
    timeout_s: float


class Planned(Frozen):
    """A case with its place in a plan: how it is built and judged, how long it may take, or why it is skipped."""

    case: Case
    spec: ModelSpec
    module: str | None = None
    """This and the next two are as in `Orders`; None where others measured."""
    tolerance: float | None = None
    timeout_s: float | None = None
    accuracy_batch: int | None = None
    skip: str | None = None
    """Why this case is not run; it then ends as `skipped`."""
    expired: str | None = None
    """A skip whose last day is over, with that day: the case runs, and somebody should look at the entry."""

    @property
    def orders(self) -> Orders:
        """Raises ValueError where others measured, so that nobody here can."""
        if self.module is None or self.tolerance is None or self.timeout_s is None:
            raise ValueError(f"{self.case} was measured elsewhere and cannot be run")
        return Orders(module=self.module, tolerance=self.tolerance, timeout_s=self.timeout_s)


class Protocol(Frozen):
    """How a run measures each of its cases."""

    measure: Measure = Measure.ALL
    precision_target: float = 0.01
    """Stop sampling when the half width of the speedup's interval is at most this share of it."""
    max_seconds: float = 60.0
    """Most seconds of sampling for one case."""
    max_pairs: int = 160
    memory_limit_bytes: int | None = None
    seed: int = 1337


class DeviceProfile(Frozen):
    """The machine we ask for: `configs/devices/NAME.toml`."""

    name: str
    kind: str = Field(pattern=r"^(cpu|cuda|mps|rocm|xpu|hpu|unknown|[\w.]+:\w+)$")
    """`cpu`, `cuda`, `mps`, or the class of another device as `package.module:Class`; the other words are those of
    files from elsewhere, and nothing can be measured there."""
    about: str = ""
    product: str | None = None
    """Part of the name that the machine must report for the device, in any case of letters; None: any will do."""
    architecture: str | None = None
    """Of the host, as `uname -m` says it; None: any will do."""
    threads: PositiveInt | None = None
    """Threads of one operation; None: the physical cores this process may use."""
    pin: bool = False
    """Keep each child on one logical processor per physical core, all of one NUMA node."""
    batch_divisor: PositiveInt = 1
    """A list's batch size is divided by this, rounded down, at least 1."""
    timeout_s: PositiveFloat = 1800.0
    """Most seconds a case may take."""
    max_seconds: PositiveFloat = 60.0
    """Most seconds of sampling for one case."""
    tf32: bool = False
    """The device has TF32 units."""
    amp_dtype: str = "bfloat16"
    memory_reserve_bytes: int = 2 << 30
    """Memory of the host that a model may not take."""
    device_reserve_bytes: int = 0
    """Memory of the device itself that a model may not take, where that is not the host's."""
    lock_clocks: bool = False
    """Hold the device's clock at one frequency during a run, where that is permitted."""
    clock_mhz: PositiveInt | None = None
    """Where to hold it; None: what the driver names as its default for applications."""
    environment: Mapping[str, str] = Field(default_factory=dict)
    """Variables that libraries read when they are imported; set before the workers start."""
    verified_by: tuple[str, ...] = ()
    """Journals of real runs with this profile, as they are named in `examples/`; without one it is unverified."""


class Environment(Frozen):
    """The machine and the software we found. Unknown is None."""

    host: str | None = None
    machine_id: str | None = None
    system: str | None = None
    kernel: str | None = None
    virtualised: str | None = None
    cpu: str | None = None
    cores_physical: int | None = None
    cores_usable: int | None = None
    memory_bytes: int | None = None
    cpu_flags: tuple[str, ...] = ()
    """Those of the CPU's flags that decide on number formats and vector width."""
    cpu_capability: str | None = None
    """Vector width that torch uses, e.g. `AVX512`."""
    governor: str | None = None
    emulated: tuple[str, ...] = ()
    """Number formats that this machine has no instructions for, e.g. `bfloat16`."""
    threads: int | None = None
    compiler: str | None = None
    python: str | None = None
    versions: Mapping[str, str] = Field(default_factory=dict)
    torch_commit: str | None = None
    harness_commit: str | None = None
    method: int = METHOD
    load_average: float | None = None
    hash_seed: str | None = None
    product: str | None = None
    """Name that an accelerator reports; None where the CPU is the device."""
    device_count: int | None = None
    device_memory_bytes: int | None = None
    driver: str | None = None
    """Version of the accelerator's driver."""
    sockets: int | None = None
    numa_nodes: int | None = None
    smt: bool | None = None
    """Cores run two threads or more at once."""
    turbo: bool | None = None
    cgroup_cores: float | None = None
    """Processors' worth of time that the control group allows; None: no limit."""
    cgroup_memory_bytes: int | None = None
    pinned: tuple[int, ...] = ()
    """Logical processors that children are kept on; empty: not pinned."""
    variables: Mapping[str, str] = Field(default_factory=dict)
    """Environment variables that change how libraries compute, as the children see them."""

    @property
    def hard(self) -> str:
        """Fingerprint of what starts a new series (statistics.md, 6): machine, device, threads, method."""
        parts: list[object] = [
            self.machine_id,
            self.host,
            self.cpu,
            self.cores_usable,
            self.memory_bytes,
            self.threads,
            self.method,
        ]
        branch = self.driver and self.driver.partition(".")[0]
        later = (self.product, self.device_count, branch, list(self.pinned), dict(sorted(self.variables.items())))
        parts += [part for part in later if part]  # so that an environment without them keeps its fingerprint
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]

    @property
    def soft(self) -> str:
        """Fingerprint of what is shown as a mark on a series: software versions, kernel, governor."""
        parts = (
            sorted(self.versions.items()),
            self.torch_commit,
            self.compiler,
            self.kernel,
            self.governor,
            self.python,
        )
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]


class Level(StrEnum):
    """How much a finding about a host matters."""

    GOOD = "good"
    UNKNOWN = "unknown"
    """The host does not tell."""
    NOTE = "note"
    WARNING = "warning"
    """Numbers will be noisier, or not comparable with those of other hosts."""
    BAD = "bad"
    """Numbers from here would mislead, or there will be none."""


class Finding(Frozen):
    """One thing about a host that matters to measuring: what was seen, what it means, what to do."""

    check: str
    """What was looked at, e.g. `governor`."""
    level: Level
    value: str | None = None
    """What was seen, short."""
    sentence: str
    remedy: str | None = None


# -- what was observed ------------------------------------------------------------------------


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


# -- what others state ------------------------------------------------------------------------


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


# -- what is derived --------------------------------------------------------------------------


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


class Line(Frozen):
    """What goes to a file or a pipe as one line of JSON: says by which version of the schema."""

    schema_: Literal[1] = Field(default=SCHEMA, alias="schema")

    model_config = Frozen.model_config | {"populate_by_name": True, "serialize_by_alias": True}


# -- the lines of a journal -------------------------------------------------------------------


class Run(Line):
    """First line: what is going to be done, where, and by which command."""

    type: Literal["run"] = "run"
    id: str
    started_at: datetime
    command: str
    profile: DeviceProfile
    environment: Environment
    protocol: Protocol
    plan: tuple[Planned, ...]
    doctor: tuple[Finding, ...] = ()
    """How fit the host was found to be, before the first case."""
    reference: str | None = None
    """The reference configuration that was asked for, with `--as`."""
    source: str | None = None
    """None: measured here. Else the format of the files that it was imported from, e.g. `pytorch-csv`."""
    dated: bool = True
    """False: nothing says when it was measured; `started_at` is when its file was written."""
    trigger: str | None = None
    """What started it: `manual`, `nightly`, `pull_request`, or another short word."""
    branch: str | None = None
    """This and the next two are of the code under test."""
    commit: str | None = None
    fork_point: str | None = None
    """The commit of the main branch that a branch began at."""


class Start(Line):
    """A case was begun. A start without a record: the harness itself was killed meanwhile."""

    type: Literal["start"] = "start"
    run_id: str
    case_id: str
    attempt: int
    at: datetime


class Record(Findings, Line):
    """Everything observed about one case in one run."""

    type: Literal["record"] = "record"
    id: str
    run_id: str
    case: Case
    attempt: int = 1
    started_at: datetime
    finished_at: datetime
    exit_code: int | None = None
    """Of the worker, where it died without an answer; negative: the signal."""
    derived: Derived
    log: Log = Log()
    stated: Stated | None = None
    """None: measured here."""

    @property
    def numbers(self) -> Numbers:
        """The figures of this case, whoever found them."""
        derived, stated = self.derived, self.stated
        if stated is None:
            return Numbers(
                speedup=derived.speedup,
                eager_s=derived.eager_s,
                compiled_s=derived.compiled_s,
                compile_wall_s=self.compile and self.compile.wall_s,
                compile_cpu_s=self.compile and self.compile.cpu_s,
                graphs=self.compile and self.compile.graphs,
                graph_breaks=self.compile and self.compile.graph_breaks,
                operators=self.compile and self.compile.operators,
                recompiles=self.compile and self.compile.recompiles,
                break_even_steps=derived.break_even_steps,
                eager_peak_bytes=self.memory and self.memory.eager_peak_bytes,
                compiled_peak_bytes=self.memory and self.memory.compiled_peak_bytes,
                memory_ratio=derived.memory_ratio,
            )
        return Numbers(
            speedup=derived.speedup,
            eager_s=_stated(stated.eager_s),
            compiled_s=_stated(stated.compiled_s),
            compile_wall_s=stated.compile_wall_s,
            graphs=stated.graphs,
            graph_breaks=stated.graph_breaks,
            operators=stated.operators,
            recompiles=stated.recompiles,
            break_even_steps=derived.break_even_steps,
            eager_peak_bytes=stated.eager_peak_bytes if stated.memory_comparable else None,
            compiled_peak_bytes=stated.compiled_peak_bytes if stated.memory_comparable else None,
            memory_ratio=derived.memory_ratio,
        )


def _stated(value: float | None) -> Estimate | None:
    return None if value is None else Estimate(value, None, None, None, stats.STATED)


class EndReason(StrEnum):
    FINISHED = "finished"
    INTERRUPTED = "interrupted"


class RunEnd(Line):
    """Last line of one execution; a resumed run has several."""

    type: Literal["end"] = "end"
    run_id: str
    at: datetime
    reason: EndReason


JournalLine = Run | Start | Record | RunEnd
LINE: TypeAdapter[JournalLine] = TypeAdapter(Annotated[JournalLine, Field(discriminator="type")])


def new_run_id() -> str:
    """Return a UUIDv7 (RFC 9562): sorts by time of creation."""
    milliseconds = time.time_ns() // 1_000_000
    value = (milliseconds << 80) | (0x7 << 76) | (secrets.randbits(12) << 64) | (0b10 << 62) | secrets.randbits(62)
    return str(uuid.UUID(int=value))


def record_id(run_id: str, case_id: str, attempt: int) -> str:
    """Return the id of a record: derived, so that sending it twice is harmless."""
    return str(uuid.uuid5(_NAMESPACE, f"{run_id}/{case_id}/{attempt}"))


def content_id(text: str) -> str:
    """Return the id of a run that others measured: derived, so that importing the same facts twice is harmless."""
    return str(uuid.uuid5(_NAMESPACE, text))
