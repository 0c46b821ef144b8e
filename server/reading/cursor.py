"""Where a list goes on: the place of the last row, as a word that means nothing to who hands it back.

A page begins after a place, not at a number: what is added meanwhile neither shifts rows nor repeats them.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from pydantic import TypeAdapter, ValidationError

from server.reading.errors import BadQuestion

T = TypeVar("T")
P = TypeVar("P", bound=tuple[Any, ...])

MOST = 500
"""Rows of a page."""


@dataclass(frozen=True)
class Page(Generic[T]):
    """A part of a list, and where it goes on; None: it ends here."""

    items: Sequence[T]
    next: str | None = None


def written(*place: Any) -> str:
    """Return a place as a cursor."""
    text = json.dumps(place, separators=(",", ":"), allow_nan=False)
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def read(cursor: str, place: TypeAdapter[P]) -> P:
    """Return the place that a cursor means.

    Raises:
        BadQuestion: it is none of this list's.
    """
    try:
        text = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
        return place.validate_python(json.loads(text, parse_constant=_refuse))
    except (binascii.Error, ValueError, ValidationError, RecursionError):
        raise BadQuestion(
            f"cursor: {cursor[:40]!r} is no place in this list. Take it from the Link header of the page before, with "
            "the same filters and the same order, or leave it out to begin."
        ) from None


def _refuse(word: str) -> None:
    raise ValueError(word)
