"""What was made of a run's results, kept until they change: answers to questions about runs that are over.

A run's results are many and hardly ever change once it ended; what is read of them in one piece is asked again by every
page that shows it beside another. So it is kept by the run and the state of its results.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock
from typing import Generic, TypeVar

from sqlalchemy import Connection, func, select

from server.tables import Planned

T = TypeVar("T")


@dataclass(frozen=True)
class Version:
    """The results that a run's plan points at: no two states of a run have the same.

    A new result's key is higher than all before, and one that is pruned leaves the count.
    """

    run_key: int
    newest: int | None
    results: int
    planned: int


def version(connection: Connection, run_key: int) -> Version:
    """Return the state of a run's results, from its plan alone."""
    counts = select(func.max(Planned.result_key), func.count(Planned.result_key), func.count())
    return Version(run_key, *connection.execute(counts.where(Planned.run_key == run_key)).one())


class Kept(Generic[T]):
    """The values of the versions that were asked for last. Safe to use from several threads."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._values: OrderedDict[Version, T] = OrderedDict()
        self._lock = Lock()

    def get(self, wanted: Version, make: Callable[[], T]) -> T:
        """Return the value of a version, made where it is not kept."""
        with self._lock:
            if wanted in self._values:
                self._values.move_to_end(wanted)
                return self._values[wanted]
        made = make()  # two threads may both make it: better than one that waits for the other's database
        with self._lock:
            self._values[wanted] = made
            self._values.move_to_end(wanted)
            while len(self._values) > self._most:
                self._values.popitem(last=False)
        return made
