"""Reads `configs/` into types that others own.

Searched in this order, the first that holds the file wins: `$BENCH_CONFIGS`, `./configs`, the
`configs` folder installed beside this package. So one own file does not hide the rest. Suites of
other packages come last: installing something never changes what a name means. What is wrong with
a file is said with its line; `harness.faults` holds what contradicts itself.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from textwrap import shorten
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

import harness
from harness import faults, packages
from harness.errors import BenchError, UsageError, close_to
from harness.faults import Fault
from harness.lines import line_of
from harness.record import DeviceProfile
from harness.reference import ReferenceConfiguration
from suites.spec import ModelSpec, SuiteSpec, Tier

ENVIRONMENT_VARIABLE = "BENCH_CONFIGS"

M = TypeVar("M", bound=BaseModel)


def suite(name: str) -> SuiteSpec:
    """Return a suite by name.

    Raises:
        UsageError: there is no such suite.
        BenchError: its file is broken; the message says where and what to do.
    """
    theirs = None if name in _names("suites") else packages.named(name)
    if theirs is None:
        return _suite(name, _find("suites", name, "suite", suites()))
    try:
        return _suite(name, theirs.file())
    except BenchError as error:
        raise BenchError(f"{theirs}: {error}") from error


def suites() -> list[str]:
    """Return the names of all suites, sorted; one of another package may still turn out to be broken."""
    return sorted({*_names("suites"), *(each.name for each in packages.joined())})


def every_suite() -> tuple[list[SuiteSpec], list[BenchError]]:
    """Return all suites that can be read, by name, and what is wrong with the others: one must not hide the rest."""
    found: list[SuiteSpec] = []
    wrong: list[BenchError] = []
    for name in suites():
        try:
            found.append(suite(name))
        except BenchError as error:
            wrong.append(error)
    ours = {path.stem for path in (search_path()[-1] / "suites").glob("*.toml")}
    for each in packages.joined():
        if each.name in ours:
            wrong.append(BenchError(f"{each}: a suite of that name comes with this command. Rename it there."))
    return found, wrong


def published() -> list[SuiteSpec]:
    """Return the suites of the published figures, by name; none of another package is. Raises as `suite` does."""
    return [each for each in map(suite, _names("suites")) if each.published]


def device(name: str) -> DeviceProfile:
    """Return a device profile by name. Raises as `suite` does."""
    path = _find("devices", name, "device")
    profile = _parse(DeviceProfile, name, _read(path), path, renamed={})
    _refuse(path, faults.of_device(profile))
    return profile


def devices() -> list[str]:
    """Return the names of all device profiles, sorted."""
    return _names("devices")


def reference(name: str) -> ReferenceConfiguration:
    """Return a reference configuration by name. Raises as `suite` does."""
    path = _find("references", name, "reference configuration")
    renamed = {"precision": "precisions", "set": "models"}
    return _parse(ReferenceConfiguration, name, _read(path), path, renamed=renamed)


def references() -> list[str]:
    """Return the names of all reference configurations, sorted."""
    return _names("references")


def search_path() -> list[Path]:
    """Return the folders that are searched, first wins.

    Raises:
        UsageError: `$BENCH_CONFIGS` names no folder.
    """
    packaged = Path(str(harness.__file__)).resolve().parent.parent / "configs"
    own = os.environ.get(ENVIRONMENT_VARIABLE)
    if own and not Path(own).is_dir():
        raise UsageError(f"{ENVIRONMENT_VARIABLE}={own}: there is no such folder. Correct or unset it.")
    folders = [Path(own)] if own else []
    return [*folders, Path("configs"), packaged]


def _names(folder: str) -> list[str]:
    return sorted({path.stem for root in search_path() for path in (root / folder).glob("*.toml")})


def _find(folder: str, name: str, noun: str, others: Iterable[str] = ()) -> Path:
    """Return the file. `others`: names that are known without a file in the folders."""
    known = _names(folder)
    if name not in known:
        close = close_to(name, {*known, *others})
        raise UsageError(f"There is no {noun} {name!r}.{close} See `bench list {folder}`.")
    return next(path for root in search_path() if (path := root / folder / f"{name}.toml").exists())


def _suite(name: str, path: Path) -> SuiteSpec:
    spec = _parse(SuiteSpec, name, _read(path), path, renamed={"model": "models", "tier": "tiers"})
    _refuse(path, faults.of_suite(spec, devices()))
    return spec


def _read(path: Path) -> dict[str, Any]:
    text = ""
    try:
        text = path.read_bytes().decode("utf-8")
        return tomllib.loads(text)
    except OSError as error:
        raise BenchError(f"{path}: cannot be read ({error.strerror}). Mend the file or its permissions.") from error
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise BenchError(f"{path}:{line}: byte {error.start + 1} is not UTF-8. Save the file as UTF-8.") from error
    except tomllib.TOMLDecodeError as error:
        place = re.search(r" \(at (?:line (\d+), column \d+|end of document)\)$", str(error))
        where = place[1] if place and place[1] else len(text.splitlines())
        raise BenchError(f"{path}:{where}: not valid TOML: {error}. Mend that line.") from error


def _parse(kind: type[M], name: str, table: Mapping[str, Any], path: Path, renamed: Mapping[str, str]) -> M:
    """Return the file as a value. `renamed`: words of the file whose field has another name, as `[[model]]`."""
    words = [word for word in _fields(kind) if word not in ("name", *renamed.values())] + [*renamed]
    for word in table:
        if word not in words:
            text = f'unknown field "{word}".{close_to(word, words)} Correct or remove it.'
            raise BenchError(_sentence(path, table, Fault((word,), text)))
    try:
        return kind.model_validate({"name": name} | {renamed.get(word, word): value for word, value in table.items()})
    except ValidationError as error:
        fault = _first_fault(error, {new: old for old, new in renamed.items()})
        raise BenchError(_sentence(path, table, fault)) from error


def _first_fault(error: ValidationError, words: Mapping[str, str]) -> Fault:
    """Return the place of the first fault, in the words of the file, what is wrong there and what to do."""
    first = error.errors()[0]
    head, *rest = first["loc"]
    where = (words.get(str(head), head), *rest)
    inside = len(where) > 2 and where[0] in ("model", "tier")
    known = _fields(ModelSpec if where[0] == "model" else Tier) if inside else []
    field = ".".join(str(part) for part in (where[2:] if inside else where))
    more = f" ({error.error_count() - 1} more faults.)" if error.error_count() > 1 else ""
    if first["type"] == "extra_forbidden":
        return Fault(where, f'unknown field "{field}".{close_to(field, known)} Correct or remove it.{more}')
    if first["type"] == "missing":
        return Fault(where, f'field "{field}" is missing. Add it.{more}')
    given = shorten(repr(first["input"]), 60)
    return Fault(where, f'field "{field}" is {given}: {first["msg"][:1].lower()}{first["msg"][1:]}. Correct it.{more}')


def _refuse(path: Path, found: Iterable[Fault]) -> None:
    for fault in found:
        raise BenchError(_sentence(path, _read(path), fault))


def _sentence(path: Path, table: Mapping[str, Any], fault: Fault) -> str:
    """Return file, line, entry and what is wrong there."""
    line = line_of(path.read_text(encoding="utf-8"), fault.where)
    return f"{path}:{line}{_owner(table, fault.where)}: {fault.text}"


def _owner(table: Mapping[str, Any], where: Sequence[str | int]) -> str:
    """Return whose field it is, e.g. `, model "mlp"`; nothing for one of the file itself."""
    match where:
        case ["tier", str(name), _, *_]:
            return f', tier "{name}"'
        case ["model", int(index), _, *_]:
            entry = table["model"][index]
            known = entry.get("name") if isinstance(entry, dict) else None
            return f', model "{known}"' if known else f", [[model]] number {index + 1}"
    return ""


def _fields(kind: type[BaseModel]) -> list[str]:
    return list(kind.model_fields)
