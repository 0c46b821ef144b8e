"""Commit ids as people write them: cut short, in capitals, with a mark, or not at all. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

FULL = 40
"""Letters of a full id."""

LEAST = 7
"""Fewest letters that may stand for a full id."""

_HEX = re.compile(r"[0-9a-f]+")


@dataclass(frozen=True, slots=True)
class Resolved:
    """A commit as far as it is known. `ambiguous`: it is the beginning of several, so it stays as it is."""

    commit: str
    ambiguous: bool = False


def normalised(text: str | None) -> str | None:
    """Return a commit in small letters; None where there is none. A tag or a branch in its place stays as written.

    A mark such as `-dirty` is kept: that code is no commit's, and is grouped with none.
    """
    text = (text or "").strip()
    head, mark, rest = text.partition("-")
    return (head.lower() + mark + rest if _HEX.fullmatch(head.lower()) else text) or None


def resolve(commit: str, known: Iterable[str]) -> Resolved:
    """Return the full id that a short one begins, where exactly one of the known ones does."""
    if len(commit) >= FULL or len(commit) < LEAST or not _HEX.fullmatch(commit):
        return Resolved(commit)
    fits = {each for each in known if len(each) == FULL and each.startswith(commit)}
    return Resolved(fits.pop()) if len(fits) == 1 else Resolved(commit, ambiguous=len(fits) > 1)


def grouped(commits: Sequence[str | None]) -> list[tuple[int, ...]]:
    """Return which of the commits are one and the same, as places in the sequence; each without one stands alone."""
    found = [normalised(commit) for commit in commits]
    known = [commit for commit in found if commit is not None]
    groups: dict[object, list[int]] = {}
    for place, commit in enumerate(found):
        key: object = place if commit is None else resolve(commit, known).commit
        groups.setdefault(key, []).append(place)
    return [tuple(places) for places in groups.values()]
