"""What is asked for -> conditions of a statement. Within a filter any value will do, all filters must hold.

An empty word asks for what has none: `source=` for what was measured by us, `branch=` where no branch was named.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Text, and_, cast, exists, func, or_
from sqlalchemy.orm import InstrumentedAttribute

from harness.record import Flag
from server.schemas import Status
from server.tables import Case, Configuration, Environment, Result, Run, Series, Summary
from suites.spec import Preset

Condition = ColumnElement[bool]
Words = tuple[str, ...]

ESCAPE = "\\"


@dataclass(frozen=True)
class Span:
    """From `since` up to and without `until`; None: without end."""

    since: datetime | None = None
    until: datetime | None = None

    def of(self, column: InstrumentedAttribute[datetime]) -> Iterator[Condition]:
        if self.since is not None:
            yield column >= self.since
        if self.until is not None:
            yield column < self.until


EVER = Span()


@dataclass(frozen=True)
class RunFilter:
    """Which runs."""

    device: Words = ()
    suite: Words = ()
    branch: Words = ()
    commit: Words = ()
    trigger: Words = ()
    source: Words = ()
    host: Words = ()
    span: Span = EVER

    def conditions(self) -> Iterator[Condition]:
        """Of a statement over runs and their environments."""
        for column, words in (
            (Run.device, self.device),
            (Run.branch, self.branch),
            (Run.commit, self.commit),
            (Run.trigger, self.trigger),
            (Run.source, self.source),
            (Environment.host, self.host),
        ):
            yield from one_of(column, words)
        yield from self.span.of(Run.started_at)
        if self.suite:
            yield exists().where(Summary.run_key == Run.key, Summary.suite.in_(self.suite)).correlate(Run)


@dataclass(frozen=True)
class CaseFilter:
    """Which cases. `model`: names, or patterns with `*` and `?`, in any case of letters."""

    suite: Words = ()
    model: Words = ()
    device: Words = ()
    mode: Words = ()
    precision: Words = ()
    backend: Words = ()
    preset: Words = ()

    def conditions(self) -> Iterator[Condition]:
        """Of a statement over cases and their configurations."""
        for column, words in (
            (Case.suite, self.suite),
            (Configuration.device, self.device),
            (Configuration.mode, self.mode),
            (Configuration.precision, self.precision),
            (Configuration.backend, self.backend),
            (preset(), self.preset),
        ):
            yield from one_of(column, words)
        if self.model:
            yield or_(*[like(Case.model, pattern(each)) for each in self.model])


@dataclass(frozen=True)
class ResultFilter:
    """Which of a run's planned cases. `text`: part of the text, in any case of letters."""

    cases: CaseFilter = CaseFilter()
    status: tuple[Status, ...] = ()
    flag: tuple[Flag, ...] = ()
    text: str = ""
    configuration: str = ""
    """Its id; empty: any."""

    def conditions(self, status: ColumnElement[str], text: ColumnElement[str]) -> Iterator[Condition]:
        """Of a statement over planned cases and their results.

        Args:
            status, text: how these two are computed.
        """
        yield from self.cases.conditions()
        if self.configuration:
            yield Case.configuration_id == self.configuration
        if self.status:
            yield status.in_([each.value for each in self.status])
        if self.flag:
            # A list of words that are known, so that its text is as good as itself.
            listed = cast(Result.flags, Text)
            yield or_(*[listed.contains(f'"{each.value}"', autoescape=True) for each in self.flag])
        if self.text:
            yield like(text, f"%{escaped(self.text)}%")


@dataclass(frozen=True)
class SeriesFilter:
    """Which series. `hard`: the class of the machine, `status`: how the newest result ended, `keys`: these alone."""

    cases: CaseFilter = CaseFilter()
    branch: Words = ()
    source: Words = ()
    hard: Words = ()
    status: Words = ()
    keys: tuple[int, ...] = ()
    case: Words = ()

    def conditions(self) -> Iterator[Condition]:
        """Of a statement over series, their cases and configurations."""
        yield from self.cases.conditions()
        for column, words in (
            (Series.branch, self.branch),
            (Series.source, self.source),
            (Series.hard, self.hard),
            (Series.outcome, self.status),
            (Case.id, self.case),
        ):
            yield from one_of(column, words)
        if self.keys:
            yield Series.key.in_(self.keys)

    def without(self, name: str) -> SeriesFilter:
        """Return the same without one of its filters, by name."""
        empty: dict[str, Any] = {name: ()}
        if name in CaseFilter.__dataclass_fields__:
            return replace(self, cases=replace(self.cases, **empty))
        return replace(self, **empty)


def one_of(column: Any, words: Sequence[str]) -> Iterator[Condition]:
    """Yield that a column is one of the words; an empty word means that it has none."""
    named = [word for word in words if word]
    choices = [column.in_(named)] if named else []
    if len(named) < len(words):
        choices.append(or_(column.is_(None), column == ""))
    if choices:
        yield or_(*choices)


def preset() -> ColumnElement[str]:
    """A configuration's preset; those of older journals do not name theirs."""
    return func.coalesce(Configuration.document["preset"].as_string(), Preset.FULL.value)


def pattern(glob: str) -> str:
    """Return a pattern of LIKE for one with `*` and `?`."""
    return escaped(glob).replace("*", "%").replace("?", "_")


def escaped(text: str) -> str:
    return re.sub(r"([%_\\])", r"\\\1", text)


def like(column: Any, found: str) -> Condition:
    return and_(column.is_not(None), column.ilike(found, escape=ESCAPE))
