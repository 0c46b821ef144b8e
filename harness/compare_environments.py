"""Two environments -> in which fields they differ, and which of those start a new series."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from harness.record import Environment

PASSING = frozenset({"load_average"})
"""Never the same twice, and part of no fingerprint: the doctor speaks of it."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A field of the environment with its text on both sides; None: unknown there.

    Args:
        field: e.g. `cpu`; an entry of a mapping as `versions.torch`.
        hard: it belongs to the fingerprint that starts a new series.
    """

    field: str
    base: str | None
    head: str | None
    hard: bool


def differences(base: Environment, head: Environment) -> tuple[Difference, ...]:
    """Return the fields in which two environments differ, hard ones first, in the order of the schema.

    A field is hard when the fingerprint of the base changes with it: that is asked of the fingerprint itself.
    """
    found = list(_differences(base, head))
    return (*(each for each in found if each.hard), *(each for each in found if not each.hard))


def _differences(base: Environment, head: Environment) -> Iterator[Difference]:
    for name in Environment.model_fields:
        old, new = getattr(base, name), getattr(head, name)
        if old == new or name in PASSING:
            continue
        if name in ("versions", "variables"):
            for key in dict.fromkeys([*old, *new]):
                if old.get(key) != new.get(key):
                    hard = _is_hard(base, name, {**old, key: new.get(key, "")})
                    yield Difference(f"{name}.{key}", old.get(key), new.get(key), hard)
        else:
            yield Difference(name, _text(old), _text(new), _is_hard(base, name, new))


def _is_hard(base: Environment, name: str, value: Any) -> bool:
    return base.model_copy(update={name: value}).hard != base.hard


def _text(value: Any) -> str | None:
    if value is None or value == ():
        return None
    return " ".join(map(str, value)) if isinstance(value, tuple) else str(value)
