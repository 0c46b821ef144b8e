"""What a test imports, without a database."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from harness.formats import detect
from harness.formats.facts import Parsed, Where, refuse
from harness.formats.join import Imported, join
from harness.formats.text import File
from harness.record import Record

DATA = Path(__file__).parents[2] / "data"
EXTERNAL = DATA / "external"
CASES = DATA / "cases"


def parsed(path: Path) -> Parsed:
    file = File(path)
    return detect.read(file, detect.detect(file))


def imported(*paths: Path, given: Where | None = None, lenient: bool = False) -> list[Imported]:
    """Return the runs in files that are given together."""
    found = [parsed(path) for path in paths]
    for each in () if lenient else found:
        refuse(each)
    return join(found, given or Where(), "bench import")


def run_of(*paths: Path, given: Where | None = None, lenient: bool = False) -> Imported:
    """Return the one run in files that are given together."""
    (run,) = imported(*paths, given=given, lenient=lenient)
    return run


def by_model(records: Iterable[Record]) -> dict[str, Record]:
    return {record.case.model: record for record in records}


def case(number: int) -> Path:
    """Return the folder of a case."""
    (found,) = CASES.glob(f"s{number}-*")
    return found
