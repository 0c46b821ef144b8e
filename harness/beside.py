"""A run beside published figures: in which points it is of another configuration, or else the figures, by their rule.

`differences` is what decides: a figure of ours stands beside a published one only where it finds nothing. Imports no
torch; server and dashboards ask it too.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from harness import config
from harness.record import (
    Configuration,
    DeviceProfile,
    Environment,
    Line,
    Measure,
    Outcome,
    Planned,
    Protocol,
    Record,
    Run,
)
from harness.reference import Device, Published, Quantity, ReferenceConfiguration, Row, Rule, aggregate, weighted
from harness.stats import NoEstimate
from suites.spec import Attention, Frozen, Mode, Preset


def known() -> list[ReferenceConfiguration]:
    """Return every reference configuration there is, by name.

    Raises:
        BenchError: a file is broken.
    """
    return [config.reference(name) for name in config.references()]


@dataclass(frozen=True)
class Entry:
    """A planned case with its result, as far as a comparison needs them.

    Args:
        listed_batch: the batch size of the list, before a device divides it.
        skipped: it is not run.
        row: its result; None: there is none yet.
    """

    suite: str
    model: str
    configuration: Configuration
    batch_size: int | None
    listed_batch: int | None
    skipped: bool
    row: Row | None

    @classmethod
    def of(cls, planned: Planned, record: Record | None) -> Entry:
        case = planned.case
        return cls(
            suite=case.suite,
            model=case.model,
            configuration=case.configuration,
            batch_size=case.batch_size,
            listed_batch=planned.spec.batch.get(case.mode),
            skipped=planned.skip is not None or (record is not None and record.outcome == Outcome.SKIPPED),
            row=_row(record) if record is not None else None,
        )


@dataclass(frozen=True)
class Facts:
    """What was asked for in a run, what was found, and how far it is."""

    profile: DeviceProfile
    environment: Environment
    protocol: Protocol
    entries: tuple[Entry, ...]

    @classmethod
    def of(cls, run: Run, records: Mapping[str, Record]) -> Facts:
        """`records` is keyed by case id."""
        entries = tuple(Entry.of(planned, records.get(planned.case.id)) for planned in run.plan)
        return cls(run.profile, run.environment, run.protocol, entries)

    @property
    def trains(self) -> bool:
        return any(entry.configuration.mode == Mode.TRAINING for entry in self.entries)


class Compared(Frozen):
    """A published figure with ours, by the same rule."""

    published: Published
    ours: float | None
    of: int | None = None
    """How many models ours is of: those in its geometric mean, or those that were run."""
    why_not: str | None = None


class Comparison(Line):
    """A run beside published figures: either in which points it is of another configuration, or the figures."""

    type: Literal["comparison"] = "comparison"
    reference: str
    title: str
    rule: Rule
    differences: tuple[str, ...]
    figures: tuple[Compared, ...]
    """Empty where there are differences."""


def comparisons_of(run: Run, records: Mapping[str, Record]) -> list[Comparison]:
    """Return what the last words of a run hold it against: what it was asked to be, or all where it trains on CUDA."""
    facts = Facts.of(run, records)
    if run.reference is None and not (facts.profile.kind == "cuda" and facts.trains):
        return []
    return [compare(each, facts) for each in known() if run.reference in (None, each.name)]


def compare(reference: ReferenceConfiguration, run: Facts) -> Comparison:
    """Return the published figures beside those of a run by their rule, where the run is of their configuration."""
    found = differences(reference, run)
    return Comparison(
        reference=reference.name,
        title=reference.title,
        rule=reference.rule,
        differences=found,
        figures=() if found else tuple(_compared(reference, run)),
    )


def differences(reference: ReferenceConfiguration, run: Facts) -> tuple[str, ...]:
    """Return the points in which a run is not of the configuration, in words; empty: it is."""
    return (
        *_device(reference.device, run),
        *_choices(reference, run.entries),
        *_batches(reference, run.entries),
        *_models(reference, run.entries),
        *_way(run),
    )


def _row(record: Record) -> Row:
    numbers, stated = record.numbers, record.stated
    speedup = numbers.speedup
    # Others count a skip by its word: `pass_due_to_skip` begins like a pass.
    word = stated.word if stated is not None and record.outcome == Outcome.SKIPPED else None
    return Row(
        accuracy=word or record.outcome.value,
        speedup=speedup.value if speedup and math.isfinite(speedup.value) else None,
        compile_s=numbers.compile_wall_s,
        memory_ratio=numbers.memory_ratio,
    )


def _device(wanted: Device, run: Facts) -> Iterable[str]:
    found = run.environment.product or (run.environment.cpu if run.profile.kind == "cpu" else None)
    if found is None:
        yield f"device: unknown, not known to be {wanted.product}"
    elif run.profile.kind != wanted.kind or wanted.product.lower() not in found.lower():
        yield f"device: {found}, not {wanted.product}"


def _choices(reference: ReferenceConfiguration, entries: Sequence[Entry]) -> Iterable[str]:
    """What was chosen in the configurations of the plan."""
    found = list(dict.fromkeys(entry.configuration for entry in entries))
    yield from _differs("mode", (each.mode for each in found), (reference.mode,))
    yield from _differs("precision", (each.precision for each in found), tuple(reference.precisions))
    for precision, numbers in reference.precisions.items():
        these = [each for each in found if each.precision == precision]
        name = precision.upper()
        yield from _differs(f"TF32 in {name}", (_on(each.tf32) for each in these), (_on(numbers.tf32),))
        if numbers.amp_dtype:
            yield from _differs(f"format of {name}", (str(each.amp_dtype) for each in these), (numbers.amp_dtype,))
    for label, name in (
        ("backend", "backend"),
        ("compile mode", "compile_mode"),
        ("compile scope", "compile_scope"),
        ("optimizer", "optimizer"),
    ):
        yield from _differs(label, (getattr(each, name) for each in found), (getattr(reference, name),))
    words = {Attention.FUSED: "fused", Attention.EAGER: "spelled out"}
    yield from _differs("attention", (words[each.attention] for each in found), (words[reference.attention],))
    yield from _differs("preset", (each.preset for each in found), (Preset.FULL,))
    for label, name in (("dynamic shapes", "dynamic"), ("deterministic kernels", "deterministic")):
        yield from _differs(label, (_on(getattr(each, name)) for each in found), (_on(getattr(reference, name)),))


def _differs(label: str, found: Iterable[str], wanted: Sequence[str]) -> Iterable[str]:
    """Nothing is found: that is said by what is missing, in the set or among the precisions."""
    here = list(dict.fromkeys(map(str, found)))
    if here and set(here) != {*wanted}:
        yield f"{label}: {' and '.join(here)}, not {' and '.join(map(str, wanted))}"


def _on(value: bool) -> str:
    return "on" if value else "off"


def _batches(reference: ReferenceConfiguration, entries: Sequence[Entry]) -> Iterable[str]:
    other = 0
    for entry in entries:
        listed = entry.listed_batch
        other += listed is None or entry.batch_size != max(listed // reference.batch_divisor, 1)
    if other:
        yield f"batch size: {other} of {len(entries)} cases have another than the list's"


def _models(reference: ReferenceConfiguration, entries: Sequence[Entry]) -> Iterable[str]:
    """A model counts where it is run in every precision of the configuration that the plan has at all."""
    planned = {entry.configuration.precision for entry in entries}
    precisions = [precision for precision in reference.precisions if precision in planned] or [*reference.precisions]
    for suite, count in reference.models.items():
        run = [
            {e.model for e in entries if e.suite == suite and e.configuration.precision == precision and not e.skipped}
            for precision in precisions
        ]
        here = len(set.intersection(*run))
        if here != count:
            both = " in " + " and ".join(precisions) if len({len(each) for each in run}) > 1 else ""
            yield f"models: {here or 'none'} of {count} of {suite}{both}"
    others = sorted({entry.suite for entry in entries} - {*reference.models})
    if others:
        yield f"models: those of {', '.join(others)}, which are not in its set"


def _way(run: Facts) -> Iterable[str]:
    if run.protocol.measure == Measure.PERFORMANCE:
        yield "accuracy: not checked"
    if run.protocol.measure == Measure.ACCURACY:
        yield "time: not measured"
    if any(entry.row is None and not entry.skipped for entry in run.entries):
        yield "not complete: some of its cases have no result"


def _compared(reference: ReferenceConfiguration, run: Facts) -> Iterable[Compared]:
    rows = {
        precision: [e.row for e in run.entries if e.row is not None and e.configuration.precision == precision]
        for precision in reference.precisions
    }
    each = {precision: aggregate(these, reference.rule) for precision, these in rows.items()}
    for figure in reference.published:
        if figure.of == Quantity.PASS_RATE:
            yield _compared_rate(figure, reference, run.entries)
            continue
        if figure.precision is not None:
            ours, models = each[figure.precision].speedup, each[figure.precision].models
        else:
            ours = weighted({precision: found.speedup for precision, found in each.items()}, reference.rule)
            models = min(found.models for found in each.values())
        if isinstance(ours, NoEstimate):
            yield Compared(published=figure, ours=None, why_not=ours.reason)
        else:
            yield Compared(published=figure, ours=ours, of=models)


def _compared_rate(figure: Published, reference: ReferenceConfiguration, entries: Sequence[Entry]) -> Compared:
    """A model passes where it passes in the figure's precision, or without one in every precision."""
    wanted = [figure.precision] if figure.precision is not None else list(reference.precisions)
    passing: dict[tuple[str, str], bool] = {}
    for entry in entries:
        if entry.row is not None and entry.configuration.precision in wanted:
            key = (entry.suite, entry.model)
            passing[key] = passing.get(key, True) and entry.row.passed
    return Compared(published=figure, ours=sum(passing.values()) / len(passing), of=len(passing))
