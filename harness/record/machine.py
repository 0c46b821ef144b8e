"""The machine: the one we ask for, the one we find, and what the doctor says of it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from enum import StrEnum

from pydantic import Field, PositiveFloat, PositiveInt

from harness.record.versions import METHOD
from suites.spec import Frozen


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
