"""Published figures, the configuration they were measured in, and the rule that averaged them.

A file `configs/references/NAME.toml` says all three; `harness.beside` holds a run against it. The rule takes plain
numbers, so that our records and anyone's table go through the same functions. Imports no torch.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import fmean
from typing import Any

from pydantic import Field, PositiveFloat, PositiveInt, field_validator

from harness.errors import UsageError
from harness.record import CompileScope, DeviceProfile, OptimizerKind
from harness.stats import NoEstimate
from suites.spec import Attention, Frozen, Mode, Precision, Preset

# -- what a file says -------------------------------------------------------------------------


class Device(Frozen):
    """The device that was measured; `product` is a part of the name that it reports, in any case of letters."""

    kind: str
    product: str


class Numbers(Frozen):
    """What one precision of the configuration allows."""

    tf32: bool = False
    amp_dtype: str | None = None


class Rule(Frozen):
    """How per-model results became one figure."""

    name: str
    about: str
    least_speedup: PositiveFloat | None = None
    """A speedup below is raised to this before the geometric mean; None: none is."""
    weights: Mapping[Precision, PositiveFloat]
    """Of the set-wide averages, in the figure over all precisions. They add up to 1."""

    @field_validator("weights")
    @classmethod
    def _whole(cls, weights: Mapping[Precision, float]) -> Mapping[Precision, float]:
        if not math.isclose(math.fsum(weights.values()), 1.0):
            raise ValueError("weights must add up to 1")
        return weights


class Quantity(StrEnum):
    PASS_RATE = "pass_rate"
    SPEEDUP = "speedup"


class Read(StrEnum):
    """Where a published figure was read."""

    PRIMARY = "primary"
    SECONDARY = "secondary"
    INFERRED = "inferred"


class Published(Frozen):
    """One published figure."""

    of: Quantity
    what: str
    precision: Precision | None = None
    """None: over all precisions, a speedup by the rule's weights."""
    value: PositiveFloat
    printed: str
    read: Read
    reading: str | None = None
    """What we take it to mean, beyond what its source says."""


class ReferenceConfiguration(Frozen):
    """Everything about published figures that a run must share to be compared with them."""

    name: str
    title: str
    about: str
    source: tuple[str, ...]
    device: Device
    mode: Mode
    precisions: Mapping[Precision, Numbers] = Field(min_length=1)
    backend: str
    compile_mode: str
    compile_scope: CompileScope
    optimizer: OptimizerKind
    dynamic: bool
    deterministic: bool
    attention: Attention
    batch_divisor: PositiveInt
    """A list's batch size is divided by this."""
    models: Mapping[str, PositiveInt] = Field(min_length=1)
    """Suite -> how many of its models were measured."""
    rule: Rule
    published: tuple[Published, ...]

    def asked(self) -> dict[str, Any]:
        """Return what it fixes, as fields of `harness.plan.Matrix`."""
        same = ("backend", "compile_mode", "compile_scope", "optimizer", "dynamic", "deterministic", "attention")
        return {name: getattr(self, name) for name in same} | {
            "modes": (self.mode,),
            "precisions": tuple(self.precisions),
            "tf32": any(numbers.tf32 for numbers in self.precisions.values()),
            "batch_size": None,
            "preset": Preset.FULL,
        }

    @property
    def options(self) -> str:
        """What it fixes, as it would be typed."""
        return " ".join(_as_option(name, value) for name, value in self.asked().items() if value not in (None, False))

    def agreed(self, said: Mapping[str, Any]) -> dict[str, Any]:
        """Return `asked`, where what was said, in fields of a matrix too, does not contradict it.

        Raises:
            UsageError: it does; the message names both.
        """
        asked = self.asked()
        for name, value in said.items():
            if value != asked[name]:
                raise UsageError(
                    f"{_as_option(name, value)} contradicts --as {self.name}, which means "
                    f"{_as_option(name, asked[name])}. Leave one of them out."
                )
        return asked

    def on(self, profile: DeviceProfile) -> DeviceProfile:
        """Return a profile that asks for this configuration's number formats and batch sizes.

        Raises:
            UsageError: the profile is of another kind of device, or has no TF32 where it is needed.
        """
        if profile.kind != self.device.kind:
            raise UsageError(
                f"--as {self.name} needs a {self.device.kind.upper()} device, and {profile.name} is of kind "
                f"{profile.kind}. Name one with --device; see `bench list devices`."
            )
        if self.asked()["tf32"] and not profile.tf32:
            raise UsageError(
                f"--as {self.name} allows TF32 in FP32, and device {profile.name} has no TF32 units. Name another "
                "with --device; see `bench list devices`."
            )
        amp = self.precisions.get(Precision.AMP)
        changes = {"batch_divisor": self.batch_divisor, "amp_dtype": (amp and amp.amp_dtype) or profile.amp_dtype}
        return profile.model_copy(update=changes)


def _as_option(name: str, value: Any) -> str:
    """Return how a field of a matrix is typed."""
    option = f"--{name.replace('_', '-')}"
    if name == "precisions":
        return " ".join(f"--{each}" for each in value)
    if name == "modes":
        return f"--mode {value[0] if len(value) == 1 else 'both'}"
    if value is None or value is False:
        return f"no {option}"
    return option if value is True else f"{option} {value}"


# -- the rule, on plain numbers ---------------------------------------------------------------

PASSES = "pass"
"""An accuracy word that begins so is a pass: `pass_due_to_skip` too."""


@dataclass(frozen=True)
class Row:
    """One model's result, ours or anyone's. Absent is None, never NaN.

    Args:
        accuracy: the word of the accuracy check; of our records, the outcome.
        speedup: eager time / compiled time.
        compile_s: seconds of compiling.
        memory_ratio: eager peak / compiled peak.
    """

    accuracy: str
    speedup: float | None = None
    compile_s: float | None = None
    memory_ratio: float | None = None

    @property
    def passed(self) -> bool:
        return self.accuracy.startswith(PASSES)


@dataclass(frozen=True)
class Aggregates:
    """What a rule makes of the rows of one suite or set in one precision; `models` are in the speedup."""

    rows: int
    passed: int
    models: int
    speedup: float | NoEstimate
    compile_s: float | NoEstimate
    memory_ratio: float | NoEstimate

    @property
    def pass_rate(self) -> float | None:
        """passed / rows; None where there are none."""
        return self.passed / self.rows if self.rows else None


def aggregate(rows: Iterable[Row], rule: Rule) -> Aggregates:
    """Return pass rate, geometric mean of speedups, and plain means of compile seconds and memory ratios.

    All but the pass rate are over the models that pass: what failed is dropped, not counted as zero.

    Raises:
        ValueError: a number of a passing row is not finite, or its speedup is negative.
    """
    found = list(rows)
    passing = [row for row in found if row.passed]
    for row in passing:
        numbers = [n for n in (row.speedup, row.compile_s, row.memory_ratio) if n is not None]
        if not all(map(math.isfinite, numbers)) or (row.speedup or 0.0) < 0:
            raise ValueError(f"{row} holds a number that is none")
    least = rule.least_speedup or 0.0
    speedups = [max(least, row.speedup) for row in passing if row.speedup is not None]
    return Aggregates(
        rows=len(found),
        passed=len(passing),
        models=len(speedups),
        speedup=_mean(speedups, passing, _geometric),
        compile_s=_mean([row.compile_s for row in passing if row.compile_s is not None], passing, fmean),
        memory_ratio=_mean([row.memory_ratio for row in passing if row.memory_ratio is not None], passing, fmean),
    )


def weighted(averages: Mapping[Precision, float | NoEstimate], rule: Rule) -> float | NoEstimate:
    """Return the set-wide averages of the precisions, each times its weight in the rule."""
    parts = []
    for precision, weight in rule.weights.items():
        average = averages.get(precision, NoEstimate("not measured"))
        if isinstance(average, NoEstimate):
            return NoEstimate(f"{precision}: {average.reason}")
        parts.append(weight * average)
    return math.fsum(parts)


def _mean(
    values: Sequence[float], passing: Sequence[Row], mean: Callable[[Sequence[float]], float]
) -> float | NoEstimate:
    if not passing:
        return NoEstimate("no model passes")
    return mean(values) if values else NoEstimate("no passing model has a value")


def _geometric(values: Sequence[float]) -> float:
    """Return the geometric mean; one value of 0 makes it 0."""
    return math.exp(fmean(map(math.log, values))) if all(values) else 0.0
