"""What every page has around it: chips that carry over to other pages, its address, what of that was not understood.

The address holds everything that changes a page's content. Chips narrow what is shown to a suite, a mode and so on;
each link to another page takes them along. Values that are not set stand in no address: addresses stay short.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated
from urllib.parse import urlencode

from fastapi import Depends, Query, Request, params
from fastapi.dependencies.utils import get_flat_params

from server import schemas
from server.reading.filters import CaseFilter

LONGEST = 200
"""Characters of a chip's value."""

ONCE = ("part", "seen", "after")
"""Parameters that belong to one request: no link of the page holds them."""

Word = Annotated[str, Query(max_length=LONGEST)]


@dataclass(frozen=True)
class Chips:
    """What the reader looks at; empty: anything."""

    suite: str = ""
    mode: str = ""
    device: str = ""
    precision: str = ""
    backend: str = ""

    def given(self) -> dict[str, str]:
        return {name: value for name, value in vars(self).items() if value}

    def cases(self) -> CaseFilter:
        """Return the filter that leaves the cases that fit."""
        return CaseFilter(**{name: (value,) for name, value in self.given().items()})

    def fit(self, summary: schemas.Summary) -> bool:
        """Whether a summary's cases are among them."""
        values = summary.configuration.model_dump(include={*NAMES}) | {"suite": summary.suite}
        return all(str(values[name]) == value for name, value in self.given().items())


NAMES = tuple(Chips.__dataclass_fields__)


@dataclass(frozen=True)
class Choice:
    """A value that a chip may have, and the address of the page with it."""

    value: str
    address: str
    chosen: bool


@dataclass(frozen=True)
class Frame:
    """Args:
    path: of the page.
    chips: as the address gives them.
    query: what else the address says, as it is written there.
    ignored: parameters that the page does not know.
    """

    path: str
    chips: Chips = Chips()
    query: Mapping[str, str] = field(default_factory=dict)
    ignored: tuple[str, ...] = ()

    def to(self, path: str) -> str:
        """Return the address of another page, with the chips."""
        return _address(path, self.chips.given())

    def address(self, **changes: str | int) -> str:
        """Return the address of this page with some of its values changed; an empty one is left out."""
        return _address(self.path, {**self.chips.given(), **self.query, **changes})

    def without_chips(self) -> Frame:
        return replace(self, chips=Chips())

    def at(self, path: str) -> Frame:
        """Return the same at another address, e.g. that of the run that `latest` means today."""
        return replace(self, path=path)

    def choices(self, options: Mapping[str, Iterable[str]]) -> dict[str, list[Choice]]:
        """Return the chips that have something to choose: of one value only where it is set.

        Args:
            options: by chip, the values that have data.
        """
        found: dict[str, list[Choice]] = {}
        for name in NAMES:
            now = getattr(self.chips, name)
            values = sorted({*options.get(name, ()), *filter(None, (now,))})
            if len(values) > 1 or now:
                every = Choice("", self.address(**{name: ""}), not now)
                found[name] = [every, *(Choice(v, self.address(**{name: v}), v == now) for v in values)]
        return found


def frame(
    request: Request,
    suite: Word = "",
    mode: Word = "",
    device: Word = "",
    precision: Word = "",
    backend: Word = "",
) -> Frame:
    """Return the frame of the page that a request asks for."""
    given = request.query_params
    taken = get_flat_params(request.scope["route"].dependant)
    known = {each.alias for each in taken if isinstance(each.field_info, params.Query)}
    return Frame(
        path=request.url.path,
        chips=Chips(suite, mode, device, precision, backend),
        query={name: value for name, value in given.items() if name in known and name not in (*NAMES, *ONCE) and value},
        ignored=tuple(name for name in given if name not in known),
    )


Framed = Annotated[Frame, Depends(frame)]


def options_of(summaries: Iterable[schemas.Summary]) -> dict[str, set[str]]:
    """Return the values that a run's summaries have, by chip."""
    found: dict[str, set[str]] = {name: set() for name in NAMES}
    for each in summaries:
        found["suite"].add(each.suite)
        for name in NAMES[1:]:
            found[name].add(str(getattr(each.configuration, name)))
    return found


def _address(path: str, values: Mapping[str, str | int]) -> str:
    query = urlencode({name: value for name, value in values.items() if value})
    return path + (f"?{query}" if query else "")
