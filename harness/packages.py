"""Suites of other installed packages, which join by an entry point. None of them is imported.

    [project.entry-points."bench.suites"]
    mysuite = "mypackage.suite"

Beside that module, or in that package, stands `mysuite.toml`: a suite's file like any other.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from email.parser import HeaderParser
from importlib import metadata
from pathlib import Path

from harness.errors import BenchError
from suites.find import locate, missing_part

GROUP = "bench.suites"

_NAME = re.compile(r"\w[\w.-]*")
_MODULE = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")


@dataclass(frozen=True)
class Joined:
    """A suite that a distribution announces.

    Args:
        name: of the suite.
        module: full name of the module beside which its file stands; whatever was written, right or wrong.
        distribution: who announces it: name and version.
    """

    name: str
    module: str
    distribution: str

    def __str__(self) -> str:
        return f'suite "{self.name}" of the installed distribution {self.distribution}'

    def file(self) -> Path:
        """Return the suite's file.

        Raises:
            BenchError: there is none, or the entry point is not written as one.
        """
        written = f'its entry point says {self.name} = "{self.module}"'
        if not _NAME.fullmatch(self.name) or self.name.endswith(".py"):
            raise BenchError(f"{written}, and a suite's name is of letters, digits, . _ and -. Rename it there.")
        if not _MODULE.fullmatch(self.module):
            raise BenchError(f"{written}, and a module is written as mypackage.suite. Correct it there.")
        missing = missing_part(self.module)
        if missing is not None:
            raise BenchError(f"{written}, and there is no module {missing}. Correct it there, or install what lacks.")
        files = [folder / f"{self.name}.toml" for folder in _folders(self.module)]
        for file in files:
            if file.is_file():
                return file
        where = f"{files[0]} is not there" if files else "no file can stand beside that module"
        raise BenchError(f"{written}, and {where}. Add the file to the distribution.")


def joined() -> list[Joined]:
    """Return all suites that installed distributions announce, broken ones too."""
    found: dict[str, list[Joined]] = {}
    for distribution in metadata.distributions():
        text = distribution.read_text("entry_points.txt") or ""
        if GROUP in text:
            name, version = _called(distribution)
            announced = [Joined(*entry, f"{name} {version}".rstrip()) for entry in _entries(text)]
            # One that is there twice is imported from where it comes first on the path.
            found.setdefault(re.sub(r"[-_.]+", "-", name).lower(), announced)
    return [each for announced in found.values() for each in announced]


def named(name: str) -> Joined | None:
    """Return the suite of that name; None: nobody announces it.

    Raises:
        BenchError: two distributions do.
    """
    found = [each for each in joined() if each.name == name]
    if len(found) > 1:
        owners = " and ".join(each.distribution for each in found)
        raise BenchError(f'suite "{name}" is announced twice, by {owners}. Uninstall one of them.')
    return found[0] if found else None


def _entries(text: str) -> Iterator[tuple[str, str]]:
    """Yield name and value of each entry of our group.

    The standard library's reader stops at the first line that is none, of whatever group.
    """
    group = ""
    for line in filter(None, map(str.strip, text.splitlines())):
        if line.startswith("["):
            group = line.strip("[] ")
        elif group == GROUP and not line.startswith(("#", ";")):
            name, _, value = line.partition("=")
            yield name.strip(), value.strip()


def _called(distribution: metadata.Distribution) -> tuple[str, str]:
    """Return name and version, as far as the distribution says them."""
    said = HeaderParser().parsestr(distribution.read_text("METADATA") or distribution.read_text("PKG-INFO") or "")
    return said["Name"] or f"without a name in {distribution.locate_file('')}", said["Version"] or ""


def _folders(module: str) -> list[Path]:
    found = locate(module)
    if found is None:
        return []
    if found.has_location and found.origin is not None:
        return [Path(found.origin).parent]
    return [Path(folder) for folder in found.submodule_search_locations or ()]
