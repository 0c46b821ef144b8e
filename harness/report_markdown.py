"""A comparison -> Markdown, for an issue or a pull request: the rows of `report_compare`, as a table."""

from __future__ import annotations

from harness.compare import Comparison
from harness.compare_changes import Change, Verdict
from harness.compare_judge import Judgement, MetricChange
from harness.compare_rules import Metric
from harness.report_compare import (
    NOTES,
    Side,
    cells_of,
    changed,
    cohort_lines,
    counts_line,
    figure,
    metric_lines,
    moved,
    name,
    reason,
    shown,
    speedup_of,
    times_of,
    warnings,
    word,
)

COLUMNS = ("model", "verdict", "speedup", "change", "floor", "eager", "compiled", "compile", "memory ratio", "notes")


def markdown(comparison: Comparison, base: Side, head: Side, *, unchanged: bool = False) -> str:
    """Return the same as Markdown, for an issue or a pull request."""
    rows = [_markdown_row(each) for each in shown(comparison, unchanged)]
    table = [COLUMNS, ("---",) * len(COLUMNS), *rows] if rows else []
    parts = [
        [f"**{_escaped(base.name)} → {_escaped(head.name)}**: {counts_line(comparison)}"],
        [f"- {_escaped(line)}" for line in warnings(comparison)],
        [f"| {' | '.join(row)} |" for row in table],
        [f"- {_escaped(line.strip())}" for line in metric_lines(comparison)],
        [f"- {_escaped(line.strip())}" for cohort in comparison.cohorts for line in cohort_lines(cohort)],
        [comparison.caveat],
    ]
    return "\n\n".join("\n".join(part) for part in parts if part)


def _markdown_row(change: Change) -> tuple[str, ...]:
    verdict = f"**{word(change)}**" if change.against else word(change)
    if change.base is None or change.head is None or change.verdict == Verdict.STATUS_CHANGED:
        return (_escaped(name(change)), verdict, *[""] * 7, _escaped("; ".join(cells_of(change))))
    speedup = change.metric(Metric.SPEEDUP)
    there = speedup.judgement != Judgement.ABSENT
    times_ = (times_of(change, metric).partition(" ")[2] for metric in (Metric.EAGER_TIME, Metric.COMPILED_TIME))
    others = (_both(change.metric(metric)) for metric in (Metric.COMPILE_TIME, Metric.MEMORY_RATIO))
    breaks = change.metric(Metric.GRAPH_BREAKS)
    notes = [reason(change), *(NOTES[note] for note in change.notes)]
    notes += [moved(breaks)] if breaks.judgement in (Judgement.BETTER, Judgement.WORSE) else []
    return (
        _escaped(name(change)),
        verdict,
        f"{speedup_of(change.base)} → {speedup_of(change.head)}" if there else "",
        changed(speedup) if there else "",
        f"{100 * speedup.floor:g} %" if there else "",
        *times_,
        *others,
        _escaped("; ".join(filter(None, notes))),
    )


def _both(each: MetricChange) -> str:
    if each.judgement == Judgement.ABSENT:
        return ""
    return f"{figure(each.metric, each.base)} → {figure(each.metric, each.head)}"


def _escaped(text: str) -> str:
    """A name or a text that is nothing but text in Markdown and in a cell of a table."""
    for sign in "\\`*_|<>[]~":
        text = text.replace(sign, f"\\{sign}")
    return text
