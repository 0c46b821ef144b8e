"""A comparison -> plain values, for one JSON object each. Absent is None; nothing is rounded, and nothing is NaN."""

from __future__ import annotations

from dataclasses import asdict, fields
from typing import Any

from harness.compare import Comparison, Refused
from harness.compare_changes import Change
from harness.compare_cohort import Answer, Cohort, Means
from harness.compare_judge import MetricChange
from harness.compare_points import Point
from harness.stats import NoEstimate

Values = dict[str, Any]


def comparison_values(comparison: Comparison, base: Values, head: Values) -> Values:
    """Return what is said once of a comparison. `base`, `head`: what is said of its sides."""
    return {
        "base": base,
        "head": head,
        "machine": comparison.machine,
        "differences": [asdict(each) for each in comparison.differences],
        "counts": comparison.counts,
        "judgements": comparison.judgements,
        "against": comparison.against,
        "caveat": comparison.caveat,
    }


def refused_values(refused: Refused, base: Values, head: Values) -> Values:
    """Return what stands in the way of a comparison."""
    return {
        "base": base | {"hard": refused.base},
        "head": head | {"hard": refused.head},
        "differences": [asdict(each) for each in refused.differences],
    }


def change_values(change: Change) -> dict[str, Any]:
    point = change.point
    return {
        "suite": point.suite,
        "model": point.model,
        "label": point.label,
        "verdict": change.verdict,
        "outcome": change.outcome,
        "by": change.by,
        "why": change.why,
        "notes": change.notes,
        "base": change.base and _point_values(change.base),
        "head": change.head and _point_values(change.head),
        "metrics": {each.metric: _metric_values(each) for each in change.metrics},
    }


def cohort_values(cohort: Cohort) -> dict[str, Any]:
    base, head = cohort.own
    return {
        "suite": cohort.suite,
        "label": cohort.label,
        "models": len(cohort.members),
        "these_models": _means_values(cohort.these),
        "models_like_these": _means_values(cohort.like_these),
        "same_models": cohort.same_models,
        "own_models": {"base": _answer_values(base), "head": _answer_values(head)},
        "left_out": [left.model_dump() for left in cohort.left_out],
    }


def _point_values(point: Point) -> dict[str, Any]:
    return {name: getattr(point, name) for name in ("case_id", "outcome", "valid", "text")}


_METRIC = tuple(field.name for field in fields(MetricChange) if field.name != "metric")


def _metric_values(each: MetricChange) -> dict[str, Any]:
    return {name: getattr(each, name) for name in _METRIC}  # `asdict` copies deeply, and there are thousands


def _means_values(means: Means) -> dict[str, Any]:
    return {name: _answer_values(getattr(means, name)) for name in ("base", "head", "ratio")}


def _answer_values(answer: Answer) -> dict[str, Any]:
    """Of an estimate its numbers; else the reason why there is none."""
    if isinstance(answer, NoEstimate):
        return {"reason": answer.reason}
    return {"value": answer.value, "low": answer.low, "high": answer.high, "n": answer.n, "method": answer.method}
