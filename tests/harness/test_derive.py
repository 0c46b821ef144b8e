"""From what was observed to what may be said of it."""

from __future__ import annotations

from typing import Any

import pytest

from harness import stats
from harness.derive import derive
from harness.record import (
    Accuracy,
    CompileReport,
    Derived,
    Flag,
    Memory,
    Observed,
    Outcome,
    Reference,
    StopReason,
    Timing,
)

MIB = 1 << 20

ACCURACY = Accuracy(reference=Reference.FLOAT64, tolerance=1e-3, leaves=1)
COMPILE = CompileReport(
    wall_s=30.0,
    cpu_s=40.0,
    first_call_s=30.1,
    graphs=1,
    operators=12,
    graph_breaks=0,
    cold=True,
    backend="inductor",
)
JITTER = tuple(0.0001 * (7 * i % 20 - 9.5) for i in range(20))
TIMING = Timing(
    eager_s=tuple(0.015 + jitter for jitter in JITTER),
    compiled_s=(0.010,) * 20,
    eager_first=(True, False) * 10,
    inner_loops=1,
    warmup_s=0.3,
    sampling_s=0.5,
    stop_reason=StopReason.PRECISE,
)
MEMORY = Memory(eager_peak_bytes=30 * MIB, compiled_peak_bytes=20 * MIB)


def derived(
    *,
    outcome: Outcome = Outcome.PASS,
    observed: dict[str, Any] | None = None,
    accuracy: dict[str, Any] | None = None,
    compile: dict[str, Any] | None = None,
    timing: dict[str, Any] | None = None,
    memory: Memory | None = MEMORY,
) -> Derived:
    """A case that went well, but for what is named."""
    return derive(
        outcome,
        Observed(**(observed or {})),
        ACCURACY.model_copy(update=accuracy or {}),
        COMPILE.model_copy(update=compile or {}),
        TIMING.model_copy(update=timing or {}),
        memory,
    )


def test_plain_pass() -> None:
    """A pass that was timed to the target: valid, all numbers there, no flag."""
    answer = derived()

    assert answer.valid
    assert answer.invalid_why is answer.no_estimate is None
    assert () == answer.flags
    assert stats.speedup(TIMING.eager_s, TIMING.compiled_s) == answer.speedup
    assert answer.eager_s is not None
    assert 0.015 == pytest.approx(answer.eager_s.value, rel=1e-3)
    assert stats.median(TIMING.compiled_s) == answer.compiled_s
    assert 6000 == pytest.approx(answer.break_even_steps, rel=1e-2)
    assert 1.5 == answer.memory_ratio


def test_twice() -> None:
    """Deriving again from the same samples gives the same, also after a journey through JSON."""
    again = derive(
        Outcome.PASS, Observed(), ACCURACY, COMPILE, Timing.model_validate_json(TIMING.model_dump_json()), MEMORY
    )

    assert derived() == again
    assert again == Derived.model_validate_json(again.model_dump_json())


@pytest.mark.parametrize("outcome", [o for o in Outcome if o != Outcome.PASS])
def test_not_passed(outcome: Outcome) -> None:
    """A case that did not pass keeps its times, marked as not valid."""
    answer = derived(outcome=outcome)

    assert not answer.valid
    assert f"the outcome is {outcome}" == answer.invalid_why
    assert answer.speedup is not None


def test_not_timed() -> None:
    """A case that was never timed has no numbers, and says why."""
    answer = derive(Outcome.PASS, Observed(), ACCURACY, COMPILE, None, None)

    assert (False, "not timed", "not timed") == (answer.valid, answer.invalid_why, answer.no_estimate)
    assert (
        answer.speedup is answer.eager_s is answer.compiled_s is answer.break_even_steps is answer.memory_ratio is None
    )
    assert () == answer.flags


def test_never_started() -> None:
    """A crash before anything was seen: the outcome and nothing else."""
    answer = derive(Outcome.CRASH, Observed(), None, None, None, None)

    assert "the outcome is crash; not timed" == answer.invalid_why
    assert () == answer.flags


@pytest.mark.parametrize(
    ("change", "flag", "why"),
    [
        ({"timing": {"recompiles": 1}}, Flag.RECOMPILED, "recompiled once while timed"),
        ({"timing": {"recompiles": 3}}, Flag.RECOMPILED, "recompiled 3 times while timed"),
        ({"timing": {"finite_after": False}}, Flag.NOT_FINITE, "loss or parameters were not finite after timing"),
        ({"observed": {"emulated": True}}, Flag.EMULATED, "the precision is emulated on this machine"),
        ({"compile": {"graphs": 0, "operators": 0}}, Flag.NOT_COMPILED, "nothing was compiled"),
    ],
)
def test_invalid(change: dict[str, Any], flag: Flag, why: str) -> None:
    """Times that say nothing of the compiler stay out of aggregates, and say why."""
    answer = derived(**change)

    assert (False, why, (flag,)) == (answer.valid, answer.invalid_why, answer.flags)
    assert answer.speedup is not None


@pytest.mark.parametrize(
    ("change", "flag"),
    [
        ({"timing": {"drifting": True}}, Flag.DRIFTING),
        ({"timing": {"stop_reason": StopReason.TIME_CAP}}, Flag.IMPRECISE),
        ({"timing": {"stop_reason": StopReason.PAIR_CAP}}, Flag.IMPRECISE),
        ({"timing": {"eager_s": (*TIMING.eager_s[:19], 0.5)}}, Flag.OUTLIERS),
        ({"observed": {"insensitive": True}}, Flag.INSENSITIVE),
        ({"compile": {"cold": False}}, Flag.NOT_COLD),
        ({"accuracy": {"reference": Reference.NONE}}, Flag.NO_REFERENCE),
    ],
)
def test_doubtful(change: dict[str, Any], flag: Flag) -> None:
    """Other marks leave the times valid: a reader should see them first."""
    answer = derived(**change)

    assert (True, (flag,)) == (answer.valid, answer.flags)


def test_correlated() -> None:
    """Forty pairs of which neighbours are alike: flagged, and the method of the interval says so."""
    slow = tuple(0.015 + 0.0001 * (i // 8) for i in range(40))

    answer = derived(timing={"eager_s": slow, "compiled_s": (0.010,) * 40, "eager_first": (True,) * 40})

    assert (Flag.CORRELATED,) == answer.flags
    assert answer.speedup is not None
    assert stats.BLOCK_MEDIANS == answer.speedup.method


def test_unchecked() -> None:
    """A run for times alone has no reference: flagged, valid."""
    answer = derive(Outcome.PASS, Observed(), None, COMPILE, TIMING, MEMORY)

    assert (True, (Flag.NO_REFERENCE,)) == (answer.valid, answer.flags)


def test_too_few_pairs() -> None:
    """Too few pairs: no speedup, not valid, and the reason is the same in both places."""
    answer = derived(timing={"eager_s": (3.0, 3.1), "compiled_s": (2.0, 2.1), "stop_reason": StopReason.TIME_CAP})

    assert answer.speedup is answer.eager_s is answer.break_even_steps is None
    assert "2 pairs, at least 6 are needed" == answer.no_estimate == answer.invalid_why
    assert (Flag.IMPRECISE,) == answer.flags


def test_all_reasons() -> None:
    """Every reason is given, not the first alone."""
    answer = derived(outcome=Outcome.FAIL_ACCURACY, observed={"emulated": True}, timing={"recompiles": 2})

    why = "the outcome is fail_accuracy; recompiled 2 times while timed; the precision is emulated on this machine"
    assert why == answer.invalid_why


def test_never_pays_back() -> None:
    """A compiled step that is slower never pays for its compilation."""
    assert derived(timing={"compiled_s": (0.020,) * 20}).break_even_steps is None


def test_warm_compilation() -> None:
    """Seconds of a compilation that a cache answered pay back nothing: unknown."""
    assert derived(compile={"cold": False}).break_even_steps is None


@pytest.mark.parametrize(
    "memory",
    [
        None,
        Memory(eager_peak_bytes=None, compiled_peak_bytes=None),
        Memory(eager_peak_bytes=0, compiled_peak_bytes=0),
        Memory(eager_peak_bytes=20 * MIB, compiled_peak_bytes=MIB - 1),
    ],
)
def test_no_memory_ratio(memory: Memory | None) -> None:
    """Peaks that are not known, or below what the kernel counts reliably, have no ratio."""
    assert derived(memory=memory).memory_ratio is None
