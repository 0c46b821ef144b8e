"""A comparison -> lines of text."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from harness.compare import Comparison, Machine, Refused
from harness.compare import shown as shown
from harness.compare_changes import Change, Note, Verdict
from harness.compare_cohort import Answer, Cohort
from harness.compare_environments import Difference
from harness.compare_judge import Ground, Judgement, MetricChange
from harness.compare_points import Point
from harness.compare_rules import TRAITS, Family, Metric
from harness.record import Environment, Outcome
from harness.report import NAMED, printable, seconds, times
from harness.stats import Estimate

WORDS = {
    Metric.SPEEDUP: "speedup",
    Metric.EAGER_TIME: "eager time",
    Metric.COMPILED_TIME: "compiled time",
    Metric.COMPILE_TIME: "compile time",
    Metric.PEAK_MEMORY: "peak memory",
    Metric.MEMORY_RATIO: "memory ratio",
    Metric.GRAPH_BREAKS: "graph breaks",
}

NOTES = {
    Note.BOTH_SLOWER: "both sides slower: look at the host and the libraries first",
    Note.BOTH_FASTER: "both sides faster",
    Note.ANOTHER_CASE: "another device or batch size",
}

MACHINES = {
    Machine.DIFFERENT: "The sides have different hard fingerprints: what changed may be the machine.",
    Machine.UNKNOWN: "A side does not say on which machine it was measured.",
}


@dataclass(frozen=True)
class Side:
    """How a side is called: the run's id or the file's name, and a few words about it."""

    name: str
    about: str


def side_of(run_id: str, started_at: datetime, device: str, environment: Environment) -> Side:
    """Return how a run is called as a side."""
    torch = environment.versions.get("torch", "unknown")
    return Side(run_id, f"{started_at:%Y-%m-%d %H:%M} UTC, {device}, torch {torch}")


def lines(comparison: Comparison, base: Side, head: Side, *, unchanged: bool = False) -> list[str]:
    """Return all that a terminal shows; `unchanged` rows are counted only, unless asked for."""
    rows = shown(comparison, unchanged)
    width = max((len(name(each)) for each in rows), default=0)
    return [
        *(f"{side}  {each.name}  {printable(each.about)}" for side, each in (("base", base), ("head", head))),
        *warnings(comparison),
        counts_line(comparison),
        *(f"  {word(each):<14}  {name(each):<{width}}   {'   '.join(cells_of(each))}".rstrip() for each in rows),
        *(f"  {line}" for line in metric_lines(comparison)),
        *(line for cohort in comparison.cohorts for line in cohort_lines(cohort)),
        comparison.caveat,
    ]


def counts_line(comparison: Comparison) -> str:
    """Return `regressed 3, improved 5, ...` of all verdicts."""
    return ", ".join(f"{verdict.replace('_', ' ')} {count}" for verdict, count in comparison.counts.items())


def refusal(refused: Refused) -> str:
    """Return why two sides are not compared, and what to do."""
    what = "; ".join(map(_difference, refused.hard))
    if not what:
        what = " -> ".join(f"fingerprint {', '.join(side)}" for side in (refused.base, refused.head))
    return (
        f"the sides are not of one machine and method: {what}. Compare runs of one machine, or `--across` to see both "
        "side by side nevertheless."
    )


def nothing_common(base: int, head: int, across: bool) -> str:
    """Return that no case is on both sides, and what to do."""
    remedy = (
        "They have no model in the same configuration."
        if across
        else "A case is a model in one configuration, on one device profile, with one batch size; `--across` asks for "
        "less."
    )
    return f"no case is on both sides: the base has {base}, the head {head}. {remedy}"


def cohort_lines(cohort: Cohort) -> list[str]:
    """Return the means of one suite in one configuration, and who is not in them."""
    n, these, like = len(cohort.members), cohort.these, cohort.like_these
    head = f"{printable(cohort.suite)} {printable(cohort.label)}"
    if not isinstance(these.ratio, Estimate):
        text = [f"{head}: no mean, no model is valid on both sides"]
    else:
        text = [
            f"{head}: geometric mean {_mean(these.base)} -> {_mean(these.head)} over the {n} model{'s' * (n != 1)} "
            "valid on both sides",
            f"  change {_percent(these.ratio.value - 1)}; {_interval('these models', these.ratio)}; "
            f"{_interval('models like these', like.ratio)}",
        ]
    if cohort.left_out:
        text.append(f"  left out: {_few(f'{printable(left.model)} ({left.why})' for left in cohort.left_out)}")
    if not cohort.same_models:
        base, new = cohort.own
        text.append(f"  each side over its own models, which are not the same: {_own(base)} -> {_own(new)}")
    return text


# -- parts of a line --------------------------------------------------------------------------


def warnings(comparison: Comparison) -> list[str]:
    """Return what to know before any row: whether the machine is the same, and in what else the sides differ."""
    known = MACHINES.get(comparison.machine)
    groups = {
        "differs, and starts a new series": [each for each in comparison.differences if each.hard],
        "differs": [each for each in comparison.differences if not each.hard],
    }
    listed = [f"{words}: {'; '.join(map(_difference, group))}" for words, group in groups.items() if group]
    return [*([known] if known else []), *listed]


def _difference(each: Difference) -> str:
    return printable(f"{each.field} {each.base or 'unknown'} -> {each.head or 'unknown'}")


def metric_lines(comparison: Comparison) -> Iterable[str]:
    """One line for each metric of which some case changed."""
    for metric, found in comparison.judgements.items():
        if found[Judgement.WORSE] or found[Judgement.BETTER]:
            told = ", ".join(f"{count} {judgement}" for judgement, count in found.items() if count)
            yield f"{WORDS[metric]}: {told}"


def word(change: Change) -> str:
    return change.verdict.replace("_", " ")


def name(change: Change) -> str:
    return printable(f"{change.point.name} {change.point.label}")


def cells_of(change: Change) -> list[str]:
    if change.base is None or change.head is None:
        return [_state(change.point)]
    if change.verdict == Verdict.STATUS_CHANGED:
        return [f"{_state(change.base)} -> {_state(change.head)}" + (" (worse)" if change.against else "")]
    cells = [_speedups(change)] if change.judgement(Metric.SPEEDUP) != Judgement.ABSENT else []
    cells += [times_of(change, metric) for metric in (Metric.EAGER_TIME, Metric.COMPILED_TIME)]
    others = [each for each in change.metrics if TRAITS[each.metric].family != Family.TIME]
    cells += [moved(each) for each in others if each.judgement in (Judgement.BETTER, Judgement.WORSE)]
    return [cell for cell in (*cells, reason(change), *(NOTES[note] for note in change.notes)) if cell]


def _state(point: Point) -> str:
    text = f": {printable(point.text)}" if point.text and point.outcome != Outcome.PASS else ""
    return f"{point.outcome}{text}"


def reason(change: Change) -> str:
    """Why it is not known whether it changed."""
    if change.why:
        return printable(change.why)
    if change.by is None or change.verdict != Verdict.INCONCLUSIVE:
        return ""
    return printable(f"no {WORDS[change.by]} to compare: {change.metric(change.by).why}") if _absent(change) else ""


def _absent(change: Change) -> bool:
    return change.by is not None and change.judgement(change.by) == Judgement.ABSENT


def _speedups(change: Change) -> str:
    assert change.base is not None, "it is on both sides"
    assert change.head is not None, "it is on both sides"
    each = change.metric(Metric.SPEEDUP)
    return f"{speedup_of(change.base)} -> {speedup_of(change.head)}   {changed(each)}, floor {100 * each.floor:g} %"


def speedup_of(point: Point) -> str:
    return _with_ends(point.speedup, point.speedup_low, point.speedup_high)


def changed(each: MetricChange) -> str:
    if each.change is None:
        return ""
    if each.low is None or each.high is None:
        return f"{_percent(each.change)} ({'no interval' if each.ground == Ground.STATED else each.ground})"
    return f"{_percent(each.change)} [{_plain(each.low)}, {_plain(each.high)}]"


def times_of(change: Change, metric: Metric) -> str:
    each = change.metric(metric)
    if each.base is None or each.head is None or each.judgement == Judgement.ABSENT:
        return ""
    return f"{WORDS[metric].split()[0]} {times(each.base, each.head)}"


def moved(each: MetricChange) -> str:
    """Return `compile time 20.1 s -> 41.0 s (worse)`."""
    base, head = (figure(each.metric, value) for value in (each.base, each.head))
    return f"{WORDS[each.metric]} {base} -> {head} ({each.judgement})"


def figure(metric: Metric, value: float | None) -> str:
    if value is None:
        return "unknown"
    if metric in (Metric.EAGER_TIME, Metric.COMPILED_TIME, Metric.COMPILE_TIME):
        return seconds(value)
    if metric == Metric.PEAK_MEMORY:
        return f"{value / 2**20:.0f} MiB"
    return f"{value:.0f}" if metric == Metric.GRAPH_BREAKS else f"{value:.2f}"


def _percent(share: float) -> str:
    return f"{_plain(share)} %"


def _plain(share: float) -> str:
    """Percent with a sign and one decimal; what rounds to zero has no sign."""
    text = f"{100 * share:+.1f}"
    return "0.0" if text in ("+0.0", "-0.0") else text


def _mean(answer: Answer) -> str:
    if not isinstance(answer, Estimate):
        return f"none ({answer.reason})"
    return _with_ends(answer.value, answer.low, answer.high)


def _with_ends(value: float | None, low: float | None, high: float | None) -> str:
    return f"{value:.2f}x" + ("" if low is None or high is None else f" [{low:.2f}, {high:.2f}]")


def _own(answer: Answer) -> str:
    return f"{_mean(answer)} of {answer.n}" if isinstance(answer, Estimate) else _mean(answer)


def _interval(whose: str, answer: Answer) -> str:
    if not isinstance(answer, Estimate):
        return f"{whose}: no interval ({answer.reason})"
    if answer.low is None or answer.high is None:
        return f"{whose}: no interval (a side states none)"
    return f"{whose} [{_plain(answer.low - 1)}, {_plain(answer.high - 1)}]"


def _few(words: Iterable[str]) -> str:
    listed = list(words)
    return ", ".join(listed[:NAMED]) + (f" and {len(listed) - NAMED} more" if len(listed) > NAMED else "")
