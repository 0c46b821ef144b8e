"""What the API answers of two runs. Its words are those of `harness.compare`; nothing is judged here."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from harness.compare import Machine
from harness.compare_changes import Note, Verdict
from harness.compare_judge import Ground, Judgement
from harness.compare_rules import Metric
from harness.record import Outcome
from server.schemas import Answer, LeftOut, RunState


class ComparedRun(Answer):
    """One side."""

    id: str
    started_at: datetime
    state: RunState
    """While it is running, cases are missing that may still come."""
    device: str
    host: str | None
    torch: str | None
    source: str | None
    branch: str | None
    commit: str | None
    cases: int


class MetricChange(Answer):
    """One metric of one case. Absent numbers are null, and `why` says so."""

    judgement: Judgement
    ground: Ground | None
    """What the judgement stands on."""
    base: float | None
    head: float | None
    change: float | None
    """head / base - 1."""
    low: float | None
    high: float | None
    """Ends of its 95 % interval, where both sides have one."""
    floor: float
    """The smallest change that counts; of a counted metric, the smallest difference."""
    why: str | None


class Point(Answer):
    """A case on one side."""

    case_id: str
    outcome: Outcome
    valid: bool
    """Its times may be compared."""
    text: str | None


class Change(Answer):
    """What became of one case."""

    suite: str
    model: str
    label: str
    verdict: Verdict
    outcome: Judgement
    """Better: it passes now; worse: it failed, and passed before."""
    by: Metric | None
    """The metric that decided, where one did."""
    why: str | None
    notes: tuple[Note, ...]
    base: Point | None
    head: Point | None
    metrics: Mapping[Metric, MetricChange]
    """None where one side has no such case."""


class Mean(Answer):
    """A geometric mean of speedups with its 95 % interval, or the reason why there is none."""

    value: float | None = None
    low: float | None = None
    high: float | None = None
    n: int | None = None
    method: str | None = None
    reason: str | None = None


class Means(Answer):
    base: Mean
    head: Mean
    ratio: Mean


class OwnMeans(Answer):
    base: Mean
    head: Mean


class Cohort(Answer):
    """The models of one suite in one configuration that are valid on both sides."""

    suite: str
    label: str
    models: int
    these_models: Means
    """With the interval of the measurement: did these models move?"""
    models_like_these: Means | None
    """With the interval by families: what should models like these expect? Null unless it was asked for."""
    same_models: bool
    """Whatever is valid on one side is valid on the other."""
    own_models: OwnMeans
    """Of whatever is valid on each side: of different models, unless `same_models`."""
    left_out: tuple[LeftOut, ...]


class Difference(Answer):
    """A field in which the environments differ; null: unknown there."""

    field: str
    base: str | None
    head: str | None
    hard: bool
    """It belongs to the fingerprint that starts a new series."""


class RunComparison(Answer):
    """Two runs, case by case."""

    base: ComparedRun
    head: ComparedRun
    machine: Machine
    """Whether both were measured on one machine."""
    differences: tuple[Difference, ...]
    counts: Mapping[Verdict, int]
    """Cases per verdict; they add up to all."""
    judgements: Mapping[Metric, Mapping[Judgement, int]]
    """Cases per metric, of those that both sides have."""
    against: bool
    """A case regressed, or its outcome got worse."""
    caveat: str
    """What the intervals do not cover."""
    changes: tuple[Change, ...]
    """What needs a look first; without those that stayed the same, unless they were asked for."""
    cohorts: tuple[Cohort, ...]
