"""Reads `configs/` into types that others own.

Searched in this order, the first that holds the file wins: `$BENCH_CONFIGS`, `./configs`, the
`configs` folder installed beside this package. So one own file does not hide the rest.
"""

from __future__ import annotations

import os
import tomllib
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from textwrap import shorten
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

import harness
from harness.errors import BenchError, UsageError, close_to
from harness.record import DeviceProfile
from suites.spec import Mode, ModelSpec, Precision, SuiteSpec, Tier

ENVIRONMENT_VARIABLE = "BENCH_CONFIGS"
TOLERANCE_KEYS = [*Mode, *Precision]

M = TypeVar("M", bound=BaseModel)


def suite(name: str) -> SuiteSpec:
    """Return a suite by name.

    Raises:
        UsageError: there is no such suite.
        BenchError: its file is broken; the message says where and what to do.
    """
    path = _find("suites", name, "suite")
    spec = _parse(SuiteSpec, name, _read(path), path, renamed={"model": "models", "tier": "tiers"})
    _check(spec, path)
    return spec


def suites() -> list[str]:
    """Return the names of all suites, sorted."""
    return _names("suites")


def device(name: str) -> DeviceProfile:
    """Return a device profile by name. Raises as `suite` does."""
    path = _find("devices", name, "device")
    return _parse(DeviceProfile, name, _read(path), path, renamed={})


def devices() -> list[str]:
    """Return the names of all device profiles, sorted."""
    return _names("devices")


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


def _find(folder: str, name: str, noun: str) -> Path:
    known = _names(folder)
    if name not in known:
        raise UsageError(f"There is no {noun} {name!r}.{close_to(name, known)} See `bench list {folder}`.")
    return next(path for root in search_path() if (path := root / folder / f"{name}.toml").exists())


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_bytes().decode("utf-8"))
    except OSError as error:
        raise BenchError(f"{path}: cannot be read ({error.strerror}). Mend the file or its permissions.") from error
    except UnicodeDecodeError as error:
        raise BenchError(f"{path}: byte {error.start + 1} is not UTF-8. Save the file as UTF-8.") from error
    except tomllib.TOMLDecodeError as error:
        raise BenchError(f"{path}: not valid TOML: {error}. Mend that line.") from error


def _parse(kind: type[M], name: str, table: Mapping[str, Any], path: Path, renamed: Mapping[str, str]) -> M:
    """Return the file as a value. `renamed`: words of the file whose field has another name, as `[[model]]`."""
    words = [word for word in _fields(kind) if word not in ("name", *renamed.values())] + [*renamed]
    for word in table:
        if word not in words:
            raise BenchError(f'{path}: unknown field "{word}".{close_to(word, words)} Correct or remove it.')
    try:
        return kind.model_validate({"name": name} | {renamed.get(word, word): value for word, value in table.items()})
    except ValidationError as error:
        raise BenchError(f"{path}{_first_fault(error, table, {new: old for old, new in renamed.items()})}") from error


def _first_fault(error: ValidationError, table: Mapping[str, Any], words: Mapping[str, str]) -> str:
    """Return the entry, its field, what is wrong there and what to do, as the rest of a sentence."""
    fault = error.errors()[0]
    where = [words.get(str(part), part) for part in fault["loc"]]
    owner, known = "", []
    if where[0] == "model" and len(where) > 2:
        owner, known = _entry(table["model"][where[1]], int(where[1])), _fields(ModelSpec)
    elif where[0] == "tier" and len(where) > 2:
        owner, known = f', tier "{where[1]}"', _fields(Tier)
    field = ".".join(str(part) for part in (where[2:] if owner else where))
    more = f" ({error.error_count() - 1} more faults.)" if error.error_count() > 1 else ""
    if fault["type"] == "extra_forbidden":
        return f'{owner}: unknown field "{field}".{close_to(field, known)} Correct or remove it.{more}'
    if fault["type"] == "missing":
        return f'{owner}: field "{field}" is missing. Add it.{more}'
    given = shorten(repr(fault["input"]), 60)
    return f'{owner}: field "{field}" is {given}: {fault["msg"][:1].lower()}{fault["msg"][1:]}. Correct it.{more}'


def _entry(entry: object, index: int) -> str:
    name = entry.get("name") if isinstance(entry, dict) else None
    return f', model "{name}"' if name else f", [[model]] number {index + 1}"


def _fields(kind: type[BaseModel]) -> list[str]:
    return list(kind.model_fields)


def _check(spec: SuiteSpec, path: Path) -> None:
    """Refuse what a type cannot: names said twice or never, tolerances for nothing or for too little."""
    names = [model.name for model in spec.models]
    for name, count in Counter(names).items():
        if count > 1:
            raise BenchError(f'{path}, model "{name}": there are {count} such entries. Keep one.')
    for tier_name, tier in spec.tiers.items():
        for field, listed, known in (
            ("models", tier.models, names),
            ("reduced_precision", tier.reduced_precision or (), tier.models),
        ):
            for name in (each for each in listed if each not in known):
                raise BenchError(
                    f'{path}, tier "{tier_name}": field "{field}" names "{name}", which is no model of the '
                    f"{'suite' if field == 'models' else 'tier'}.{close_to(name, known)} Correct it."
                )
    for owner, keys in [("", spec.tolerance), *((f', model "{each.name}"', each.tolerance) for each in spec.models)]:
        for key in keys:
            if key not in TOLERANCE_KEYS:
                raise BenchError(
                    f'{path}{owner}: field "tolerance" has "{key}", which is no mode or precision.'
                    f"{close_to(key, TOLERANCE_KEYS)} Use one of {', '.join(TOLERANCE_KEYS)}."
                )
    for mode in Mode:
        if mode not in spec.tolerance:
            raise BenchError(f'{path}: field "tolerance.{mode}" is missing. Add it under [tolerance].')
