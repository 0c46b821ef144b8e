"""Records and summaries -> lines of text. All text that a terminal shows of a result is made here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from harness.beside import Compared, Comparison
from harness.budget import Fitted
from harness.record import NO_BACKEND, EndReason, Finding, Level, Outcome, Planned, Record, Run
from harness.reference import Quantity, ReferenceConfiguration, Rule
from harness.rules import Figures
from harness.stats import Estimate, NoEstimate
from harness.summary import Summary

NAMED = 8
"""Most models named in a line before the rest is counted."""


def headline(run: Run) -> str:
    suites = sorted({planned.case.suite for planned in run.plan})
    torch = run.environment.versions.get("torch", "unknown")
    count = len(run.plan)
    line = f"{', '.join(suites)} on {run.profile.name}, torch {torch}, {count} case{'s' * (count != 1)}, run {run.id}"
    return "\n  ".join([line, *_expired(run.plan)])


def _expired(plan: Sequence[Planned]) -> list[str]:
    """Return one line of warning for all skips whose last day is over, or none."""
    over = dict.fromkeys(f"{each.case.name}: {each.expired}" for each in plan if each.expired is not None)
    if not over:
        return []
    return [f"Skips have expired, so these run; mend or renew their entries. {printable(_named(over))}"]


def record_line(record: Record, width: int = 0) -> str:
    """Return the line of one result; `width` is that of the longest case name in the run."""
    return f"  {record.case!s:<{width}}   {verdict(record)}".rstrip()


def verdict(record: Record) -> str:
    """Return what is to be said of a result: the speedup and its parts, or the outcome and its cause."""
    if record.outcome != Outcome.PASS:
        return f"{record.outcome}   {cause(record)}".rstrip()
    derived, numbers = record.derived, record.numbers
    words = []
    if numbers.speedup:
        words.append(speedup(numbers.speedup))
    if numbers.eager_s is not None and numbers.compiled_s is not None:
        words.append(times(numbers.eager_s.value, numbers.compiled_s.value))
    if record.observed.eager_step_s is not None:
        words.append(f"ran eager alone   {seconds(record.observed.eager_step_s)} a step")
    if record.observed.peak_bytes is not None:
        words.append(f"peak {record.observed.peak_bytes / 2**30:.2f} GiB")
    if not words:
        words.append("pass")
    if numbers.compile_wall_s is not None:
        words.append(f"compile {numbers.compile_wall_s:.1f} s")
    if numbers.graph_breaks:
        words.append(f"{numbers.graph_breaks} graph breaks")
    if derived.flags:
        words.append(f"({', '.join(derived.flags)})")
    return "   ".join(words)


def cause(record: Record) -> str:
    """Return one line saying why a case is no pass; control characters of a model's words are taken out."""
    leaf = record.accuracy.failed[0] if record.accuracy and record.accuracy.failed else None
    if leaf and leaf.error is not None and leaf.allowed is not None:
        return printable(f"{leaf.name}: error {leaf.error:.3g}, allowed {leaf.allowed:.3g}")
    if leaf:
        return printable(f"{leaf.name}: {leaf.detail or 'differs'}")
    if record.text:
        return printable(record.text)
    return printable(f"{record.failure.kind}: {record.failure.text}") if record.failure else ""


def budget_line(fitted: Fitted) -> str:
    """Return what fits into the limit, how that is known, and what is left out of each suite."""
    fitting, left_out = fitted.fitting, fitted.left_out
    together_s = sum(each.seconds for each in fitting)
    known = _counted(each.source for each in fitting)
    out = _counted((planned.case.suite for planned in left_out), of="of ")
    return (
        f"--limit-seconds {fitted.limit_s:g}: {len(fitting)} of {len(fitting) + len(left_out)} cases fit, about "
        f"{together_s:.0f} s together (known by: {known}); left out: {out}"
    )


def _counted(words: Iterable[str], of: str = "") -> str:
    return ", ".join(f"{count} {of}{word}" for word, count in Counter(words).items()) or "none"


def finding_line(finding: Finding) -> str:
    """Return a finding as one line: `warning: load 1.9 of 2 processors. Others compute ... Remedy: ...`."""
    seen = f"{finding.check} {finding.value}" if finding.value else finding.check
    remedy = f" Remedy: {finding.remedy}" if finding.remedy else ""
    return f"{finding.level}: {printable(seen)}. {finding.sentence}{remedy}"


def fitness(findings: Iterable[Finding]) -> str:
    """Return the last line of an examination: fit, fit with warnings, or not fit; and how much is unknown."""
    counts = Counter(finding.level for finding in findings)
    unknown = f"; {counts[Level.UNKNOWN]} not told by this host" if counts[Level.UNKNOWN] else ""
    if counts[Level.BAD]:
        return f"Not fit to measure: {counts[Level.BAD]} bad, {counts[Level.WARNING]} warning{unknown}."
    if counts[Level.WARNING]:
        return f"Fit to measure, with {counts[Level.WARNING]} warning{'s' * (counts[Level.WARNING] > 1)}{unknown}."
    return f"Fit to measure{unknown}."


def printable(text: str) -> str:
    """Return the first line of `text` without anything that could steer a terminal."""
    line = text.strip().splitlines()[0] if text.strip() else ""
    return "".join(character if character.isprintable() else "?" for character in line)[:300]


def speedup(estimate: Estimate) -> str:
    """Return `1.42x [1.38, 1.47]`; without an interval `1.42x`."""
    interval = " [{:.2f}, {:.2f}]".format(*estimate.bounds) if estimate.bounds else ""
    return f"{estimate.value:.2f}x{interval}"


def times(eager_s: float, compiled_s: float) -> str:
    """Return both times in one unit, three significant digits: `3.11 -> 2.19 ms`."""
    unit, factor = _unit(eager_s)
    return f"{significant(eager_s * factor)} -> {significant(compiled_s * factor)} {unit}"


def seconds(value_s: float) -> str:
    """Return a time in its own unit, three significant digits: `3.11 ms`."""
    unit, factor = _unit(value_s)
    return f"{significant(value_s * factor)} {unit}"


def _unit(value_s: float) -> tuple[str, float]:
    return ("s", 1.0) if value_s >= 1 else ("ms", 1e3) if value_s >= 1e-3 else ("us", 1e6)


def significant(value: float) -> str:
    """Return a number with three significant digits and no exponent."""
    digits = 2 if value < 10 else 1 if value < 100 else 0
    return f"{value:.{digits}f}"


def summary_lines(
    run: Run,
    records: Mapping[str, Record],
    summaries: Sequence[Summary],
    reason: EndReason,
    journal: str,
    comparisons: Sequence[Comparison] = (),
) -> list[str]:
    """Return the last words of a run: pass rate, geometric mean and left-out models per configuration."""
    lines = []
    for summary in summaries:
        head = f"{summary.suite} {summary.configuration.label}"
        rate = f" ({summary.pass_rate.value:.0%})" if summary.pass_rate else ""
        counts = [f"{n} {outcome}" for outcome, n in sorted(summary.outcomes.items()) if outcome != Outcome.PASS]
        counts += [f"{summary.unchecked} not checked"] if summary.unchecked else []
        judged = summary.planned - summary.outcomes.get(Outcome.SKIPPED, 0)
        others = "; " + ", ".join(counts) if counts else ""
        lines.append(f"{head}: {summary.passed} of {judged} passed{rate}{others}")
        if summary.configuration.backend == NO_BACKEND:
            continue
        mean = speedup(summary.speedup) if summary.speedup else "none"
        of = f" ({summary.no_speedup})"
        if summary.speedup:
            found = "within one launch" if summary.speedup.bounds else "as others state them"
            of = f" of {summary.speedup.n} model{'s' * (summary.speedup.n != 1)}, {found}"
        lines.append(f"  geometric mean, {summary.rule}: {mean}{of}")
        if summary.left_out and summary.speedup:
            lines.append(f"  left out: {_named(f'{left.model} ({left.why})' for left in summary.left_out)}")
    reasons = Counter(planned.skip for planned in run.plan if planned.skip)
    if reasons:
        lines.append(f"skipped: {_named(f'{printable(why)} ({count})' for why, count in reasons.most_common())}")
    lines += [line for comparison in comparisons for line in comparison_lines(comparison)]
    waiting = [planned for planned in run.plan if planned.case.id not in records and not planned.skip]
    passed = sum(summary.passed for summary in summaries)
    counted = {
        "skipped": sum(1 for planned in run.plan if planned.skip),
        "missing": len(waiting),
        "crashed": sum(1 for r in records.values() if r.outcome == Outcome.CRASH),
    }
    beside = ", ".join(f"{name} {n}" for name, n in counted.items())
    lines.append(f"{passed} of {len(run.plan) - counted['skipped']} passed; {beside}. Records: {journal}")
    if reason == EndReason.INTERRUPTED:
        lines.append(f"Interrupted. `bench run --resume {run.id}` runs the {len(waiting)} that are missing.")
    return lines


def comparison_lines(comparison: Comparison) -> list[str]:
    """Return published figures with ours by the same rule, or one line that says why they cannot be compared."""
    if comparison.differences:
        points = "; ".join(map(printable, comparison.differences))
        return [f"not comparable with the figures of {comparison.title}: {points}"]
    rule = comparison.rule
    return [
        f"by the {rule.name} ({rule.about}), beside {comparison.title}:",
        *(f"  {each.published.what}: {_ours(each)}; published {each.published.printed}" for each in comparison.figures),
    ]


def _ours(compared: Compared) -> str:
    if compared.ours is None:
        return f"none ({compared.why_not})"
    number = f"{compared.ours:.1%}" if compared.published.of == Quantity.PASS_RATE else f"{compared.ours:.2f}x"
    return f"{number} of {compared.of} models"


def rule_lines(figures: Sequence[Figures], rule: Rule) -> list[str]:
    """Return what a rule of others makes of a run, a line per suite and configuration."""
    lines = [f"  by the {rule.name} ({rule.about}):"]
    for each in figures:
        found = each.aggregates
        rate = f" ({found.pass_rate:.0%})" if found.pass_rate is not None else ""
        mean = "none" if isinstance(found.speedup, NoEstimate) else f"{found.speedup:.2f}x of {found.models} models"
        parts = [f"{found.passed} of {found.rows} passed{rate}", f"geometric mean {mean}"]
        if not isinstance(found.compile_s, NoEstimate):
            parts.append(f"mean compile {found.compile_s:.2f} s")
        if not isinstance(found.memory_ratio, NoEstimate):
            parts.append(f"mean memory ratio {found.memory_ratio:.2f}x")
        lines.append(f"    {each.suite} {each.configuration.label}: {', '.join(parts)}")
    return lines


def reference_lines(reference: ReferenceConfiguration) -> list[str]:
    """Return all that a reference configuration says: the options it means, its set, its rule and its figures."""
    models = ", ".join(f"{count} {suite}" for suite, count in reference.models.items())
    formats = "".join(f"{p.upper()} in {n.amp_dtype}; " for p, n in reference.precisions.items() if n.amp_dtype)
    lines = [
        f"{reference.name}: {reference.about}",
        f"  means    {reference.options}",
        f"  on       {reference.device.kind}, {reference.device.product}; {formats}the list's batch sizes",
        f"  models   {sum(reference.models.values())}: {models}",
        f"  rule     {reference.rule.name}: {reference.rule.about}",
    ]
    for figure in reference.published:
        reading = f"; {figure.reading}" if figure.reading else ""
        lines.append(f"  figure   {figure.what}: {figure.printed} (read in a {figure.read} source{reading})")
    return [*lines, *(f"  source   {each}" for each in reference.source)]


def _named(words: Iterable[str]) -> str:
    listed = list(words)
    more = f" and {len(listed) - NAMED} more" if len(listed) > NAMED else ""
    return ", ".join(listed[:NAMED]) + more


def name_width(plan: Sequence[Planned]) -> int:
    return max((len(str(planned.case)) for planned in plan), default=0)
