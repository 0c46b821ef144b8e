"""Stand-ins at the seams made for them: a device whose clock is ours, accelerators that misbehave, a driver."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from harness.errors import BenchError
from harness.host.reading import Reading
from harness.worker.device import CpuDevice, Device, Stopwatch

NVML = Path(__file__).parent / "data" / "nvml"
"""Folder of the module that stands in for `pynvml`."""


@dataclass
class FakeDevice(Device):
    """A device in virtual time: its clock moves when work is done, and by nothing else.

    Args:
        tick_s: the clock shows multiples of this; 0 shows every moment.
        weather: a factor on all work, of the time it begins: drift that both sides share.
        refuses_reset: the kernel does not let the peak begin anew.
        has_events: it has events of its own, that show the time work takes without what synchronizing costs.
        synchronize_s: what synchronizing costs.
        readings: what it shows, look by look; the last one stays.
    """

    tick_s: float = 0.0
    weather: Callable[[float], float] = lambda now_s: 1.0
    refuses_reset: bool = False
    has_events: bool = False
    synchronize_s: float = 0.0
    readings: tuple[Reading, ...] = (Reading(),)
    highest_mhz: float | None = None
    kind: str = "fake"
    torch_type: str = "cpu"
    now_s: float = 0.0
    queued_s: float = 0.0
    in_use: int = 1 << 30
    peak: int = 1 << 30
    freed: int = 0
    last: str | None = None
    calls: list[str] = field(default_factory=list)
    """What was asked of it, but for readings of the clock."""

    def clock(self) -> float:
        return self.now_s // self.tick_s * self.tick_s if self.tick_s else self.now_s

    def synchronize(self) -> None:
        self.calls.append("synchronize")
        self.now_s, self.queued_s = self.now_s + self.queued_s + self.synchronize_s, 0.0

    def trim(self) -> None:
        self.calls.append("trim")
        self.in_use, self.freed = self.in_use - self.freed, 0

    def reset_peak(self) -> bool:
        self.calls.append("reset_peak")
        if not self.refuses_reset:
            self.peak = self.in_use
        return not self.refuses_reset

    def memory_bytes(self) -> int | None:
        return self.in_use

    def peak_bytes(self) -> int | None:
        return self.peak

    def stopwatch(self) -> Stopwatch | None:
        return FakeStopwatch(self) if self.has_events else None

    def highest_clock_mhz(self) -> float | None:
        return self.highest_mhz

    def read(self) -> Reading:
        self.calls.append("read")
        return self.readings[min(self.calls.count("read"), len(self.readings)) - 1]

    def hold(self, bytes: int) -> None:
        """Use memory for a moment; it is freed and, until trimmed, still counts as used."""
        self.in_use += max(0, bytes - self.freed)
        self.freed = max(self.freed, bytes)
        self.peak = max(self.peak, self.in_use)


@dataclass
class FakeStopwatch:
    """Events in the queue of a fake device: where the work that was given to it until then ends."""

    device: FakeDevice
    begun_s: float = 0.0
    ended_s: float = 0.0

    def start(self) -> None:
        self.device.calls.append("start")
        self.begun_s = self.device.now_s + self.device.queued_s

    def stop(self) -> None:
        self.device.calls.append("stop")
        self.ended_s = self.device.now_s + self.device.queued_s

    def seconds(self) -> float:
        assert self.device.queued_s == 0, "events are read when the device is done"
        self.device.calls.append("seconds")
        return self.ended_s - self.begun_s


@dataclass
class FakeStep:
    """A step that costs virtual seconds.

    Args:
        seconds: its cost, before the weather.
        after_other: factor on its cost where another step ran just before: caches went cold.
        noise: standard deviation of the cost, as a share; `rng` draws it.
        spike: a step out of `spike_every` costs so many times more.
        first: costs of the first calls, one by one: what warming up is for.
        lazy: the call returns at once, and only synchronizing pays.
        bytes: memory in use while it runs.
        fails_at: the call, from 1, that raises.
    """

    device: FakeDevice
    name: str
    seconds: float
    after_other: float = 1.0
    noise: float = 0.0
    rng: random.Random = field(default_factory=lambda: random.Random(0))
    spike: float = 1.0
    spike_every: int = 0
    first: tuple[float, ...] = ()
    lazy: bool = False
    bytes: int = 0
    fails_at: int = 0
    calls: int = 0

    def __call__(self) -> str:
        device = self.device
        self.calls += 1
        if self.calls == self.fails_at:
            raise RuntimeError(f"call {self.calls} of {self.name}")
        cost_s = self.first[self.calls - 1] if self.calls <= len(self.first) else self.seconds
        cost_s *= device.weather(device.now_s)
        if device.last not in (None, self.name):
            cost_s *= self.after_other
        if self.noise:
            cost_s *= max(0.1, 1.0 + self.noise * self.rng.gauss())
        if self.spike_every and self.calls % self.spike_every == 0:
            cost_s *= self.spike
        device.last = self.name
        device.hold(self.bytes)
        if self.lazy:
            device.queued_s += cost_s
        else:
            device.now_s += cost_s
        return self.name


class Watch:
    """A stopwatch in real time."""

    def start(self) -> None:
        self.begun_s = time.perf_counter()

    def stop(self) -> None:
        self.ended_s = time.perf_counter()

    def seconds(self) -> float:
        return self.ended_s - self.begun_s


class Accelerator(CpuDevice):
    """An accelerator for profiles, `kind = "tests.fakes:Accelerator"`: a CPU that shows a clock and has events."""

    kind = "tests.fakes:Accelerator"
    reading = Reading(clock_mhz=1410.0, temperature_c=50.0, power_w=200.0)

    def __init__(self) -> None:
        super().__init__()
        self.looks = 0

    def product(self) -> str | None:
        return "Fakesoft F100"

    def stopwatch(self) -> Stopwatch | None:
        return Watch()

    def highest_clock_mhz(self) -> float | None:
        return 1410.0

    def read(self) -> Reading:
        self.looks += 1
        return self.reading


class Throttling(Accelerator):
    """Runs hot, at less than half of its clock."""

    reading = Reading(clock_mhz=600.0, throttle_reasons=("thermal",), temperature_c=93.0, power_w=100.0)


class Unlocked(Accelerator):
    """Leaves the clock where it was held at its third look, and gives no reason."""

    def read(self) -> Reading:
        reading = super().read()
        return replace(reading, clock_mhz=1200.0) if self.looks >= 3 else reading


class Shared(Accelerator):
    """Somebody else is on it."""

    reading = replace(Accelerator.reading, foreign_processes=("blender",))


class Poisoned(Accelerator):
    """Fails at every synchronization once it was looked at, as after an illegal access to memory while timing."""

    def synchronize(self) -> None:
        if self.looks:
            raise RuntimeError("CUDA error: an illegal memory access was encountered")


class PoisonedByCompiled(Accelerator):
    """Fails at the first synchronization, that of the first compiled call."""

    def synchronize(self) -> None:
        raise RuntimeError("CUDA error: device-side assert triggered")


class Absent(Accelerator):
    """Does not answer."""

    def __init__(self) -> None:
        raise BenchError("the accelerator does not answer. Plug it in.")


@dataclass
class Driver:
    """The state of the driver that `tests/data/nvml/pynvml.py` plays: one A100 at first."""

    path: Path

    def __post_init__(self) -> None:
        self.write({"driver": "580.95.05", "gpus": [dict(A100)]})

    def write(self, state: dict[str, Any]) -> None:
        self.path.write_text(json.dumps(state), encoding="utf-8")

    def read(self) -> dict[str, Any]:
        state: dict[str, Any] = json.loads(self.path.read_text(encoding="utf-8"))
        return state

    def change(self, **fields: Any) -> None:
        """Change the first GPU."""
        state = self.read()
        state["gpus"][0] |= fields
        self.write(state)

    @property
    def locked(self) -> list[int] | None:
        locked: list[int] | None = self.read()["gpus"][0].get("locked")
        return locked

    @property
    def history(self) -> list[list[int] | None]:
        """What its clock was locked to, time after time; None: released."""
        history: list[list[int] | None] = self.read()["gpus"][0].get("history", [])
        return history


A100 = {
    "name": "NVIDIA A100-SXM4-40GB",
    "uuid": "GPU-11111111-aaaa-bbbb-cccc-000000000001",
    "memory": 40 << 30,
    "capability": [8, 0],
    "clock": 1350,
    "highest": 1410,
    "default": 1095,
    "reasons": 0,
    "temperature": 41,
    "milliwatts": 61_500,
    "pids": [],
}
