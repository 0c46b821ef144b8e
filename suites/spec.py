"""All that a suite file may say: modes, precisions, models and tiers. Imports no torch.

A suite file is `configs/suites/NAME.toml`; `harness.config` reads it into a `SuiteSpec`.
One `[[model]]` entry says all that is known of one model; each oddity has its `why`.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from enum import StrEnum
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, PositiveFloat, PositiveInt, field_validator


class Mode(StrEnum):
    """What one step does: a forward pass, or forward, loss and backward. `MODES` are those that can be asked for."""

    INFERENCE = "inference"
    TRAINING = "training"
    UNKNOWN = "unknown"
    """A file from elsewhere does not say."""


class Precision(StrEnum):
    """In which number format a step runs: AMP is autocast around an FP32 module, the others cast it. `PRECISIONS` are
    those that can be asked for."""

    FP32 = "fp32"
    AMP = "amp"
    BF16 = "bf16"
    FP16 = "fp16"
    UNKNOWN = "unknown"
    """A file from elsewhere does not say."""


MODES = tuple(mode for mode in Mode if mode != Mode.UNKNOWN)
PRECISIONS = tuple(precision for precision in Precision if precision != Precision.UNKNOWN)

T = TypeVar("T", Mode, Precision)


def _asked(word: T) -> T:
    if word in (Mode.UNKNOWN, Precision.UNKNOWN):
        raise ValueError(f'"{word}" is what a file from elsewhere may be, and cannot be asked for')
    return word


AskedMode = Annotated[Mode, AfterValidator(_asked)]
AskedPrecision = Annotated[Precision, AfterValidator(_asked)]


class Attention(StrEnum):
    """How a library's networks compute attention: by the fused function, its default today, or spelled out as products
    around a softmax, as everything was in 2022."""

    FUSED = "fused"
    EAGER = "eager"


class Preset(StrEnum):
    """How large a model is: as published, or cut down to run in seconds, for trying out. The two are never mixed."""

    FULL = "full"
    SMALL = "small"


class Frozen(BaseModel):
    """A value that says no to unknown fields and to change."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Skip(Frozen):
    """A condition under which a model is not run. Absent fields match everything."""

    why: str
    until: date | None = None
    """The last day on which it holds: a model is not forgotten for ever."""
    device: str | None = None
    """Name of a profile, or a kind of device."""
    mode: AskedMode | None = None
    precision: AskedPrecision | None = None

    @field_validator("until", mode="before")
    @classmethod
    def _no_number(cls, value: object) -> object:
        """Seconds since 1970 are nothing that a person writes on purpose."""
        if isinstance(value, int | float):
            raise ValueError("a day is written as 2026-12-31")
        return value


class Small(Frozen):
    """What the small preset of a model changes; the rest is as in its entry."""

    batch: PositiveInt = 2
    """In both modes."""
    input_size: tuple[PositiveInt, ...] | None = Field(default=None, min_length=1)
    """In both modes."""
    length: PositiveInt | None = None
    """In both modes."""
    repeats: PositiveInt | None = None
    arguments: Mapping[str, Any] = Field(default_factory=dict)
    """Added to those of the entry, each in place of one of the same name."""
    tolerance: Mapping[str, PositiveFloat] = Field(default_factory=dict)
    """Likewise. Where few units add up to a gradient, one that switches by rounding alone moves it more."""


class ModelSpec(Frozen):
    """One model of a suite.

    Shapes are `(channels, height, width)`; `parameters` counts a shared tensor once.
    `tolerance` is keyed by mode or precision (the precision wins), relative and absolute at once.
    """

    name: str
    build: str | None = None
    """The name that builds the same network today, where it differs from `name`."""
    family: str | None = None
    parameters: PositiveInt | None = None
    batch: Mapping[AskedMode, PositiveInt] = Field(default_factory=dict)
    accuracy_batch: PositiveInt | None = None
    input_size: tuple[PositiveInt, ...] | None = Field(default=None, min_length=1)
    eval_input_size: tuple[PositiveInt, ...] | None = Field(default=None, min_length=1)
    length: Mapping[AskedMode, PositiveInt] = Field(default_factory=dict)
    """Tokens, frames or samples of one sequence."""
    arguments: Mapping[str, Any] = Field(default_factory=dict)
    """Of the constructor or configuration, in place of its defaults."""
    task: str | None = None
    """What the model is trained for, where its arguments and its loss depend on that."""
    repeats: PositiveInt | None = None
    """Of equal blocks in a row, this many are kept; None: all. See `suites.shorten`."""
    small: Small | None = None
    """None: the model has no small preset, or this is it."""
    case_s: PositiveFloat | None = None
    """About how many seconds one case in inference takes, as long as none was measured: two CPU cores, inductor,
    checked and timed."""
    loss_scale: PositiveFloat = 1.0
    """The loss is divided by this."""
    tolerance: Mapping[str, PositiveFloat] = Field(default_factory=dict)
    skip: tuple[Skip, ...] = ()
    why: str | None = None

    @property
    def build_name(self) -> str:
        return self.build or self.name

    def at(self, preset: Preset) -> ModelSpec:
        """Return the entry as it is built in this preset.

        Raises:
            ValueError: the small preset is asked for, and the entry has none.
        """
        if preset == Preset.FULL:
            return self.model_copy(update={"small": None})
        if self.small is None:
            raise ValueError(f'model "{self.name}" has no small preset')
        small = self.small
        changed: dict[str, Any] = {
            "small": None,
            "parameters": None,
            "case_s": None,
            "accuracy_batch": None,
            "batch": dict.fromkeys(MODES, small.batch),
            "arguments": {**self.arguments, **small.arguments},
            "tolerance": {**self.tolerance, **small.tolerance},
        }
        if small.input_size is not None:
            changed |= {"input_size": small.input_size, "eval_input_size": small.input_size}
        if small.length is not None:
            changed["length"] = dict.fromkeys(MODES, small.length)
        if small.repeats is not None:
            changed["repeats"] = small.repeats
        return self.model_copy(update=changed)


class Tier(Frozen):
    """A named part of a suite: which models, in which modes, and which of them in reduced precision."""

    models: tuple[str, ...]
    modes: tuple[AskedMode, ...] = ()
    reduced_precision: tuple[str, ...] | None = None
    """Models that run in amp, bf16 and fp16 as well; None: all of them."""


FULL_TIER = "full"
"""Tier of every model, which each suite has without saying so."""


class SuiteSpec(Frozen):
    """A suite file. `module` is the importable name of the builder, e.g. `suites.timm`."""

    name: str
    about: str
    module: str
    tolerance: Mapping[str, PositiveFloat]
    accuracy_batch: PositiveInt | None = None
    """Of every model whose entry gives none."""
    published: bool = False
    """One of the three suites of the published figures, which `--suite all` names."""
    outside: Mapping[str, str] = Field(default_factory=dict)
    """Names that a reader may look for here and that are no model of the suite -> why not."""
    tiers: Mapping[str, Tier] = Field(default_factory=dict)
    """Those of the file; see `every_tier`."""
    models: tuple[ModelSpec, ...]

    @property
    def every_tier(self) -> Mapping[str, Tier]:
        """The tiers of the file, and the one of every model."""
        return {**self.tiers, FULL_TIER: Tier(models=tuple(model.name for model in self.models))}
