"""Rules by which others make one figure of many results, on the records of a run. Ours is in `harness.summary`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from harness import config
from harness.beside import Facts
from harness.errors import UsageError, close_to
from harness.record import Configuration, Record, Run
from harness.reference import Aggregates, Row, Rule, aggregate

RULES: Mapping[str, str] = {"upstream-2022": "pytorch-2.0"}
"""Name of a rule -> the reference configuration whose file says it."""


@dataclass(frozen=True, slots=True)
class Figures:
    """What a rule makes of one suite in one configuration."""

    suite: str
    configuration: Configuration
    aggregates: Aggregates


def rule(name: str) -> Rule:
    """Return a rule by its name.

    Raises:
        UsageError: there is no such rule.
        BenchError: the file that says it is broken.
    """
    if name not in RULES:
        raise UsageError(f"there is no rule {name!r}.{close_to(name, RULES)} Known: {', '.join(RULES)}.")
    return config.reference(RULES[name]).rule


def by_rule(run: Run, records: Mapping[str, Record], rule: Rule) -> list[Figures]:
    """Return the figures of a run by a rule, per suite and configuration in the order of the plan.

    Args:
        records: the newest of each case, by case id.
    """
    groups: dict[tuple[str, Configuration], list[Row]] = {}
    for entry in Facts.of(run, records).entries:
        rows = groups.setdefault((entry.suite, entry.configuration), [])
        rows += [entry.row] if entry.row is not None else []
    return [Figures(suite, configuration, aggregate(rows, rule)) for (suite, configuration), rows in groups.items()]
