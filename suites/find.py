"""Where a module stands, told without importing it, nor the packages above it, nor torch."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path


def locate(module: str, folder: Path | None = None) -> ModuleSpec | None:
    """Return where `module` would be imported from; None: there is no such module.

    Args:
        module: its full name, e.g. `package.module`.
        folder: searched first, before what is installed, as `python -m` searches the working directory.
    """
    importlib.invalidate_caches()
    top, *rest = module.split(".")
    name, found = top, _top(top, folder)
    for part in rest:
        if found is None or found.submodule_search_locations is None:
            return None
        name = f"{name}.{part}"
        found = PathFinder.find_spec(name, found.submodule_search_locations)
    return found


def missing_part(module: str, folder: Path | None = None) -> str | None:
    """Return the first part of a module's name that is not there, e.g. `package.modul`; None: all of it is."""
    parts = module.split(".")
    names = [".".join(parts[: count + 1]) for count in range(len(parts))]
    return next((name for name in names if locate(name, folder) is None), None)


def look_here() -> None:
    """Let modules of the working directory be imported, before what is installed.

    `python -m` does so by itself; the command `bench` is started without.
    """
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)


def _top(name: str, folder: Path | None) -> ModuleSpec | None:
    if folder is not None and name not in sys.modules:
        here = PathFinder.find_spec(name, [str(folder)])
        if here is not None:
            return here
    try:
        return importlib.util.find_spec(name)
    except ValueError:  # imported without saying from where, as `__main__` may be
        return None
