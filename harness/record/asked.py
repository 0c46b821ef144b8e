"""What is asked for: a configuration, a case of one model in it, its place in a plan, how it is measured."""

from __future__ import annotations

import hashlib
import json
from enum import StrEnum

from suites.spec import Attention, Frozen, Mode, ModelSpec, Precision, Preset


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
