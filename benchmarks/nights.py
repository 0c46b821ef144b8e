"""Made-up nights: figures of 163 models in 16 configurations, with noise, steps and failures. Seeded, numpy alone.

Nothing here was measured. It has the shape of real nights, so that a database full of it behaves like a full database:
speedups between 0.7 and 3, half a percent of noise from night to night and intervals of that width, one step per series
and year, some four percent that fail and go on failing for a while.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import numpy as np
from numpy.typing import NDArray

from harness import config
from harness.record import Case, Configuration, Outcome, Planned
from suites.spec import Mode, ModelSpec, Precision

Floats = NDArray[np.float64]

SUITES = ("timm", "huggingface", "torchbench")
FIRST_NIGHT = datetime(2016, 1, 1, 1, tzinfo=UTC)
FAILED = (Outcome.FAIL_ACCURACY, Outcome.FAIL_TO_RUN, Outcome.TIMEOUT, Outcome.CRASH)
PASSED = 0
"""Place of a pass in `Night.outcome`; the others are places in `FAILED`, from 1."""


@dataclass(frozen=True)
class Night:
    """One night's figures, an element per planned case."""

    number: int
    started_at: datetime
    outcome: NDArray[np.int8]
    speedup: Floats
    half_width: Floats
    """Of the speedup's interval, as a share."""
    eager_s: Floats
    compile_s: Floats
    eager_bytes: NDArray[np.int64]
    breaks: NDArray[np.int64]


def plan() -> list[Planned]:
    """Return the 163 models in 16 configurations: two modes, two precisions, four ways to compile."""
    specs = [(name, config.suite(name).module, spec) for name in SUITES for spec in _published(name)]
    found = []
    for configuration in configurations():
        for suite, module, spec in specs:
            case = Case(**configuration.model_dump(), suite=suite, model=spec.name, batch_size=8)
            found.append(Planned(case=case, spec=spec, module=module, tolerance=1e-3, timeout_s=1800.0))
    return found


def configurations() -> list[Configuration]:
    ways = ({}, {"compile_mode": "reduce-overhead"}, {"dynamic": True}, {"backend": "aot_eager"})
    return [
        Configuration(
            device="a100",
            mode=mode,
            precision=precision,
            amp_dtype="float16" if precision == Precision.AMP else None,
            **way,
        )
        for mode in (Mode.INFERENCE, Mode.TRAINING)
        for precision in (Precision.FP32, Precision.AMP)
        for way in ways
    ]


def _published(suite: str) -> list[ModelSpec]:
    return list(config.suite(suite).models)


def nights(count: int, cases: int, seed: int = 1) -> Iterator[Night]:
    """Yield nights, the oldest first, one a day."""
    rng = np.random.default_rng(seed)
    level = rng.normal(0.25, 0.25, cases)
    noise = rng.uniform(0.002, 0.008, cases)
    eager = np.exp(rng.normal(-3.5, 1.2, cases))
    compile_s = np.exp(rng.normal(3.3, 0.6, cases))
    eager_bytes = np.exp(rng.normal(20.5, 1.0, cases))
    breaks = rng.poisson(0.6, cases)
    failing = np.zeros(cases, dtype=np.int8)
    for number in range(count):
        steps = rng.random(cases) < 1 / 365
        level = level + np.where(steps, rng.normal(0.0, 0.05, cases), 0.0)
        failing = np.where(failing > 0, np.where(rng.random(cases) < 0.05, 0, failing), 0).astype(np.int8)
        newly = (rng.random(cases) < 0.002) & (failing == 0)
        failing = np.where(newly, rng.integers(1, len(FAILED) + 1, cases), failing).astype(np.int8)
        yield Night(
            number=number,
            started_at=FIRST_NIGHT + timedelta(days=number),
            outcome=failing,
            speedup=np.exp(level + rng.normal(0.0, 1.0, cases) * noise),
            half_width=rng.uniform(0.004, 0.01, cases),
            eager_s=eager * np.exp(rng.normal(0.0, 0.005, cases)),
            compile_s=compile_s * np.exp(rng.normal(0.0, 0.03, cases)),
            eager_bytes=eager_bytes.astype(np.int64),
            breaks=breaks,
        )
