"""Observations of one case in, `Derived` out. Pure: stored samples give the same answer as often as they are asked."""

from __future__ import annotations

from harness import stats
from harness.record import (
    Accuracy,
    ClockLock,
    CompileReport,
    Conditions,
    Derived,
    Flag,
    Memory,
    Observed,
    Outcome,
    Reference,
    Stated,
    StopReason,
    Timing,
)

LEAST_MEMORY_BYTES = 1 << 20
"""Peaks below have no ratio: the kernel counts a process's memory in batches of pages per core."""

SLOW_SHARE = 0.1
"""Share of readings below 75 % of the wanted clock, above which a result is marked as throttled (statistics.md, 5)."""

STEAL_SHARE = 0.02
"""Share of the processors' time that a hypervisor may give to others before a result is marked; a choice."""


def derive(
    outcome: Outcome,
    observed: Observed,
    accuracy: Accuracy | None,
    compile: CompileReport | None,
    timing: Timing | None,
    memory: Memory | None,
    conditions: Conditions | None = None,
) -> Derived:
    """Return the statistics of one record by method `METHOD`.

    A case that failed keeps its estimates, marked as not valid with every reason there is.
    """
    speedup = stats.speedup(timing.eager_s, timing.compiled_s) if timing else stats.NoEstimate("not timed")
    eager_s = _estimate(stats.median(timing.eager_s)) if timing else None
    compiled_s = _estimate(stats.median(timing.compiled_s)) if timing else None
    doubts = _doubts(outcome, observed, compile, timing, speedup)
    return Derived(
        valid=not doubts,
        invalid_why="; ".join(doubts) or None,
        speedup=_estimate(speedup),
        eager_s=eager_s,
        compiled_s=compiled_s,
        no_estimate=speedup.reason if isinstance(speedup, stats.NoEstimate) else None,
        break_even_steps=_break_even(compile, eager_s, compiled_s),
        memory_ratio=_memory_ratio(memory),
        flags=_flags(observed, accuracy, compile, timing, speedup, conditions),
    )


def derive_stated(outcome: Outcome, stated: Stated, checked: bool) -> Derived:
    """Return the figures that others state, in the place of those of our own method: without intervals.

    Args:
        checked: they say that the output was held against something.
    """
    speedup = None
    if stated.speedup is not None and stated.speedup > 0:
        speedup = stats.Estimate(stated.speedup, None, None, None, stats.STATED)
    why = None if speedup else "no speedup is stated"
    doubts = [f"the outcome is {outcome}"] if outcome != Outcome.PASS else []
    doubts += [why] if why else []
    return Derived(
        valid=not doubts,
        invalid_why="; ".join(doubts) or None,
        speedup=speedup,
        no_estimate=why,
        break_even_steps=_stated_break_even(stated),
        memory_ratio=stated.memory_ratio,
        flags=(Flag.NO_REFERENCE,) if outcome == Outcome.PASS and not checked else (),
    )


def _stated_break_even(stated: Stated) -> float | None:
    if stated.compile_wall_s is None or stated.compile_wall_s < 0 or not stated.eager_s or not stated.compiled_s:
        return None
    return stats.break_even(stated.compile_wall_s, stated.eager_s, stated.compiled_s)


def _estimate(answer: stats.Estimate | stats.NoEstimate) -> stats.Estimate | None:
    return answer if isinstance(answer, stats.Estimate) else None


def _doubts(
    outcome: Outcome,
    observed: Observed,
    compile: CompileReport | None,
    timing: Timing | None,
    speedup: stats.Estimate | stats.NoEstimate,
) -> list[str]:
    """Why the times may not enter aggregates; empty: they may."""
    doubts = [f"the outcome is {outcome}"] if outcome != Outcome.PASS else []
    if compile is not None and _compiled_nothing(compile):
        doubts.append("nothing was compiled")
    if timing is not None and timing.recompiles:
        times = "once" if timing.recompiles == 1 else f"{timing.recompiles} times"
        doubts.append(f"recompiled {times} while timed")
    if timing is not None and timing.finite_after is False:
        doubts.append("loss or parameters were not finite after timing")
    if timing is not None and timing.stop_reason == StopReason.ERROR:
        doubts.append("timing ended with an error")
    if observed.emulated:
        doubts.append("the precision is emulated on this machine")
    if isinstance(speedup, stats.NoEstimate):
        doubts.append(speedup.reason)
    return doubts


def _flags(
    observed: Observed,
    accuracy: Accuracy | None,
    compile: CompileReport | None,
    timing: Timing | None,
    speedup: stats.Estimate | stats.NoEstimate,
    conditions: Conditions | None,
) -> tuple[Flag, ...]:
    """The marks on this result, in the order of `Flag`."""
    ratios: stats.Floats | tuple[float, ...] = ()
    if timing is not None and isinstance(speedup, stats.Estimate):
        ratios = stats.log_ratios(timing.eager_s, timing.compiled_s)
    seen = conditions or Conditions(readings=0)
    marks = {
        Flag.CORRELATED: isinstance(speedup, stats.Estimate) and speedup.method == stats.BLOCK_MEDIANS,
        Flag.DRIFTING: timing is not None and timing.drifting,
        Flag.OUTLIERS: stats.outliers(ratios).warn,
        Flag.IMPRECISE: timing is not None and timing.stop_reason != StopReason.PRECISE,
        Flag.RECOMPILED: timing is not None and timing.recompiles > 0,
        Flag.EMULATED: observed.emulated,
        Flag.INSENSITIVE: observed.insensitive,
        Flag.NOT_COLD: compile is not None and not compile.cold,
        Flag.NOT_COMPILED: compile is not None and _compiled_nothing(compile),
        Flag.NOT_FINITE: timing is not None and timing.finite_after is False,
        Flag.NO_REFERENCE: compile is not None and (accuracy is None or accuracy.reference == Reference.NONE),
        Flag.THROTTLED: (seen.slow_share or 0) > SLOW_SHARE,
        Flag.UNLOCKED: seen.lock == ClockLock.LOST,
        Flag.SHARED: bool(seen.foreign_processes) or (seen.steal_share or 0) > STEAL_SHARE,
    }
    return tuple(flag for flag in Flag if marks[flag])


def _compiled_nothing(compile: CompileReport) -> bool:
    return compile.graphs == 0 or compile.operators == 0


def _break_even(
    compile: CompileReport | None, eager_s: stats.Estimate | None, compiled_s: stats.Estimate | None
) -> float | None:
    """None as well where a cache answered: the seconds are then not those of compiling."""
    if compile is None or not compile.cold or eager_s is None or compiled_s is None:
        return None
    return stats.break_even(compile.wall_s, eager_s.value, compiled_s.value)


def _memory_ratio(memory: Memory | None) -> float | None:
    if memory is None or memory.eager_peak_bytes is None or memory.compiled_peak_bytes is None:
        return None
    if min(memory.eager_peak_bytes, memory.compiled_peak_bytes) < LEAST_MEMORY_BYTES:
        return None
    return memory.eager_peak_bytes / memory.compiled_peak_bytes
