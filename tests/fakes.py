"""Stand-ins at the seams made for them: a device whose clock is ours."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass
class FakeDevice:
    """A device in virtual time: its clock moves when work is done, and by nothing else.

    Args:
        tick_s: the clock shows multiples of this; 0 shows every moment.
        weather: a factor on all work, of the time it begins: drift that both sides share.
        refuses_reset: the kernel does not let the peak begin anew.
    """

    tick_s: float = 0.0
    weather: Callable[[float], float] = lambda now_s: 1.0
    refuses_reset: bool = False
    kind: str = "fake"
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
        self.now_s, self.queued_s = self.now_s + self.queued_s, 0.0

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

    def hold(self, bytes: int) -> None:
        """Use memory for a moment; it is freed and, until trimmed, still counts as used."""
        self.in_use += max(0, bytes - self.freed)
        self.freed = max(self.freed, bytes)
        self.peak = max(self.peak, self.in_use)


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
