"""Files that were read -> journals: a `Run` with its plan, a record per case, and the end.

What one upload wrote joins into one run: the files of one folder whose names are equal but for suite, number format,
mode and target, or JSON records of one commit and workflow. Ids are derived from what is said, so repeats are known.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache
from typing import Any

from harness.commits import normalised
from harness.formats.facts import Fact, Format, Parsed, Where
from harness.formats.judge import judge
from harness.formats.names import DEVICES
from harness.record import (
    NO_BACKEND,
    UNKNOWN,
    Case,
    Configuration,
    DeviceProfile,
    EndReason,
    Environment,
    JournalLine,
    Measure,
    Planned,
    Protocol,
    Record,
    Run,
    RunEnd,
    Stated,
    content_id,
    record_id,
)
from suites.spec import Mode, ModelSpec, Precision


@dataclass(frozen=True)
class Imported:
    """One run of others, as the lines of its journal, and what its import has to say."""

    run: Run
    records: tuple[Record, ...]
    files: tuple[str, ...]
    """Paths of the files it was read from."""
    replaced: int
    """Rows that a later row of the same case and file stands in for."""
    notes: tuple[str, ...]

    def lines(self) -> Iterator[JournalLine]:
        yield self.run
        yield from self.records
        yield RunEnd(run_id=self.run.id, at=self.run.started_at, reason=EndReason.FINISHED)


@dataclass(frozen=True, slots=True)
class _Placed:
    """A fact with all that is known of where it belongs, and the file it stands in."""

    fact: Fact
    where: Where
    parsed: Parsed


_Key = tuple[Any, ...]


def join(parsed: Sequence[Parsed], given: Where, command: str) -> list[Imported]:
    """Return the runs in files that were given together, in the order of the files.

    Args:
        given: what options say; it fills what files do not, and wins over what they say.
        command: as it was typed.
    """
    uploads: dict[_Key, list[_Placed]] = {}
    for each in parsed:
        for fact in each.facts:
            where = _merged(given, fact.where, each.where)
            uploads.setdefault(_upload(each, fact, where), []).append(_Placed(fact, where, each))
    return [_run(_sides(placed), command) for placed in uploads.values()]


@cache
def _merged(given: Where, row: Where, file: Where) -> Where:
    """Return what options, a row and its file say together; cached, since most rows of a file say the same."""
    where = given.over(row.over(file))
    return replace(where, commit=normalised(where.commit))


def _upload(parsed: Parsed, fact: Fact, where: Where) -> _Key:
    """Return what the facts of one run share: their upload and their machine."""
    source = parsed.format if parsed.format not in (Format.PYTORCH_CSV, Format.OSS_V3) else Format.PYTORCH_CSV
    folder = str(parsed.file.path.absolute().parent)
    upload: _Key = (fact.upload,) if fact.upload else (folder, parsed.key)
    return (source, *upload, where.device if where.device in DEVICES else None, where.product, where.commit)


def _sides(placed: list[_Placed]) -> list[_Placed]:
    """Return timm's two sides as one: where a compiled file is there, the eager one is its other half."""
    backends = {each.where.backend for each in placed if each.parsed.format == Format.TIMM} - {NO_BACKEND}
    if not backends:
        return placed
    return [replace(each, where=replace(each.where, backend=min(filter(None, backends)))) for each in placed]


def _run(placed: Sequence[_Placed], command: str) -> Imported:
    first = placed[0]
    files = list({str(each.parsed.file.path): each.parsed for each in placed}.values())
    profile = _profile(first.where)
    cases, replaced = _cases(placed)
    at, dated = _moment(placed)
    run = Run(
        id="",
        started_at=at,
        command=command,
        profile=profile,
        environment=_environment(first, files),
        protocol=Protocol(measure=_measure(placed)),
        plan=tuple(Planned(case=case, spec=ModelSpec(name=case.model)) for case in cases),
        source=_source(files),
        dated=dated,
        trigger=first.where.trigger,
        branch=first.where.branch,
        commit=first.where.commit,
    )
    judged = [
        (case, case.id, attempt, judge(facts))
        for case, attempts in cases.items()
        for attempt, facts in enumerate(attempts, 1)
    ]
    said = [(case_id, attempt, each.outcome, _said(each.stated)) for _, case_id, attempt, each in judged]
    run = run.model_copy(update={"id": _id(run, said)})
    records = tuple(
        Record(
            id=record_id(run.id, case_id, attempt),
            run_id=run.id,
            case=case,
            attempt=attempt,
            started_at=at,
            finished_at=at,
            **each.fields(),
        )
        for case, case_id, attempt, each in judged
    )
    return Imported(
        run=run,
        records=records,
        files=tuple(str(each.file.path) for each in files),
        replaced=replaced,
        notes=tuple(_notes(run, records)),
    )


def _cases(placed: Sequence[_Placed]) -> tuple[dict[Case, list[list[Fact]]], int]:
    """Return the facts of each case, an item per attempt, and how many rows a later one replaced.

    A batch size tells cases apart only where one file times a model in several: a row that failed has none, and is
    the same case as the one that ran the night before. So does the size of an image, which joins the model's name.
    """
    several = _several_batches(placed)
    sizes: dict[str, set[int | None]] = {}
    for each in placed:
        sizes.setdefault(each.fact.model, set()).add(each.fact.size)
    found: dict[Case, list[_Placed]] = {}
    for each in placed:
        fact = each.fact
        name = f"{fact.model}@{fact.size}" if len(sizes[fact.model]) > 1 and fact.size else fact.model
        batch_size = fact.batch_size if _key(each) in several else None
        found.setdefault(_case(each.where, name, batch_size), []).append(each)
    replaced = 0
    cases: dict[Case, list[list[Fact]]] = {}
    for case, facts in found.items():
        cases[case], lost = _attempts(facts)
        replaced += lost
    return cases, replaced


def _several_batches(placed: Sequence[_Placed]) -> set[_Key]:
    batches: dict[_Key, set[int]] = {}
    for each in placed:
        if each.fact.batch_size and each.parsed.format != Format.TIMM:
            file = str(each.parsed.file.path)
            batches.setdefault((_key(each), file, tuple(each.fact.values)), set()).add(each.fact.batch_size)
    return {key[0] for key, found in batches.items() if len(found) > 1}


def _attempts(placed: Sequence[_Placed]) -> tuple[list[list[Fact]], int]:
    """Return the facts of one case by attempt, oldest first, CSV over JSON; and how many a later one replaced."""
    replaced = 0
    attempts: list[dict[_Key, _Placed]] = [{}]
    of_json = sorted((each for each in placed if each.parsed.format == Format.OSS_V3), key=lambda each: each.fact.order)
    order = of_json[0].fact.order if of_json else (0, 0)
    for each in of_json:
        slot = (*each.fact.row.cells, *each.fact.values)
        if slot in attempts[-1]:
            if each.fact.order != order:
                attempts.append({})
            else:
                replaced += 1
        order = each.fact.order
        attempts[-1][slot] = each
    for each in placed:
        if each.parsed.format == Format.OSS_V3:
            continue
        slot = (str(each.parsed.file.path), *each.fact.row.cells)
        replaced += slot in attempts[-1]
        attempts[-1][slot] = each
    return [[each.fact for each in attempt.values()] for attempt in attempts], replaced


def _key(placed: _Placed) -> _Key:
    where = placed.where
    parts = (where.mode, where.precision, where.amp_dtype, where.backend, where.variant, where.dynamic)
    return (placed.fact.model, where.suite, *parts, where.device, where.product)


def _case(where: Where, model: str, batch_size: int | None) -> Case:
    precision = where.precision or Precision.UNKNOWN
    return Case(
        device=_device(where),
        mode=where.mode or Mode.UNKNOWN,
        precision=precision,
        amp_dtype=where.amp_dtype if precision == Precision.AMP else None,
        backend=where.backend or UNKNOWN,
        dynamic=bool(where.dynamic),
        variant=where.variant,
        suite=where.suite or UNKNOWN,
        model=model,
        batch_size=batch_size,
    )


def _device(where: Where) -> str:
    return "-".join(filter(None, (where.device or UNKNOWN, where.product)))


def _profile(where: Where) -> DeviceProfile:
    kind = where.device if where.device in DEVICES else UNKNOWN
    return DeviceProfile(name=_device(where), kind=kind, about="as a file from elsewhere says", product=where.product)


def _environment(first: _Placed, files: Iterable[Parsed]) -> Environment:
    values: dict[str, Any] = {}
    for each in files:
        for product in ("", first.where.product or ""):
            values |= each.machine[product].values if product in each.machine else {}
    named = {"cpu" if first.where.device == "cpu" else "product": first.where.product}
    return Environment(**{name: value for name, value in {**named, **values}.items() if value is not None})


def _moment(placed: Sequence[_Placed]) -> tuple[datetime, bool]:
    """Return when a run was, and whether anything says so; else when the newest of its files was written."""
    times = [each.where.time for each in placed if each.where.time is not None]
    if times:
        return min(times), True
    return max(each.parsed.file.written_at for each in placed), False


def _measure(placed: Sequence[_Placed]) -> Measure:
    checked = any(each.fact.word is not None for each in placed)
    timed = any("speedup" in each.fact.values or each.fact.failed for each in placed)
    return Measure.ALL if checked and timed else Measure.ACCURACY if checked else Measure.PERFORMANCE


def _source(files: Sequence[Parsed]) -> str:
    formats = {each.format for each in files}
    return str(Format.PYTORCH_CSV if Format.PYTORCH_CSV in formats else files[0].format)


def _said(stated: Stated) -> dict[str, Any]:
    """Return what is stated, without names and order of files: copies, and in another order, say the same."""
    rows = sorted(json.dumps(dict(row.cells), sort_keys=True) for row in stated.rows)
    return {**stated.model_dump(mode="json"), "rows": rows, "notes": sorted(stated.notes)}


def _id(run: Run, said: Iterable[object]) -> str:
    at = run.started_at.isoformat() if run.dated else None
    parts = (run.source, at, run.commit, run.branch, run.trigger, run.profile.name, sorted(said, key=json.dumps))
    return content_id(json.dumps(parts, sort_keys=True))


def _notes(run: Run, records: Sequence[Record]) -> Iterator[str]:
    if not run.dated:
        yield "nothing says when it was measured; its file's own time is taken. Give --time."
    configurations: dict[Configuration, None] = {record.case.configuration: None for record in records}
    names = ("mode", "precision", "backend")
    unknown = {name for each in configurations for name in names if getattr(each, name) == UNKNOWN}
    unknown |= {"suite"} if any(record.case.suite == UNKNOWN for record in records) else set()
    unknown |= {"device"} if any(each.device.startswith(UNKNOWN) for each in configurations) else set()
    if unknown:
        options = " ".join(f"--{name}" for name in sorted(unknown))
        yield f"not known: {', '.join(sorted(unknown))}. Where you know better: {options}."
