"""Where a module stands, told without importing it, nor the packages above it, nor torch."""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
import sys
from collections.abc import Iterable
from importlib.machinery import ModuleSpec
from pathlib import Path


def locate(module: str, folder: Path | None = None) -> ModuleSpec | None:
    """Return where `module` would be imported from; None: there is no such module.

    A folder without `__init__.py` is a module as well, as for `import`; it has no `origin`.

    Args:
        module: its full name, e.g. `package.module`.
        folder: searched first, before what is installed, as `python -m` searches the working directory.
    """
    importlib.invalidate_caches()
    top, *rest = module.split(".")
    name, found = top, _top(top, folder)
    for part in rest:
        name = f"{name}.{part}"
        found = _below(name, (found and found.submodule_search_locations) or ())
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
    here = _below(name, [str(folder)]) if folder is not None and name not in sys.modules else None
    if here is not None and here.origin is not None:
        return here
    try:
        installed = importlib.util.find_spec(name)
    except ValueError:  # imported without saying from where, as `__main__` may be
        installed = None
    if here is None or installed is None or installed.origin is not None:  # a mere folder hides no module
        return installed or here
    return _space(name, [*(here.submodule_search_locations or ()), *(installed.submodule_search_locations or ())])


def _below(name: str, places: Iterable[str]) -> ModuleSpec | None:
    """Look into folders by hand: the standard library's search would import the packages above a name."""
    folders: list[str] = []
    for place in places:
        finder = pkgutil.get_importer(place)
        found = finder.find_spec(name, None) if finder is not None else None
        if found is not None and found.origin is not None:
            return found
        folders += (found and found.submodule_search_locations) or ()
    return _space(name, folders) if folders else None


def _space(name: str, folders: list[str]) -> ModuleSpec:
    spec = ModuleSpec(name, None, is_package=True)
    spec.submodule_search_locations = folders
    return spec
