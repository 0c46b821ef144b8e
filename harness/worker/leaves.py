"""Nested values: flattened into named leaves, or rebuilt with other tensors.

A model may return dicts in tuples in dataclasses in cache objects; every value inside is
compared, so every value needs a name: `output.extra.inner.hidden`, `output[0]`.
"""

from __future__ import annotations

import copy
import dataclasses
import enum
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from typing import Any

import numpy
import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import is_traceable_wrapper_subclass

MAX_DEPTH = 24
"""Deeper than any output seen; an object that makes new objects when looked at ends here."""

PLAIN = (bool, int, float, complex, str, bytes, type(None), torch.dtype, torch.device, torch.layout)
"""Values that are leaves themselves."""

Value = Tensor | bool | int | float | complex | str | None


@dataclasses.dataclass
class Leaves:
    """Everything that one step gave, by name; tensors detached, dense and on the CPU.

    `structure` holds what surrounds the values: the kind of each container and its keys or length.
    """

    values: dict[str, Value] = dataclasses.field(default_factory=dict)
    structure: dict[str, str] = dataclasses.field(default_factory=dict)
    drew: bool = False
    """A random number generator moved on while this was computed."""

    def add(self, name: str, value: Any, keep: Callable[[Tensor], Tensor] | None = None) -> None:
        """Flatten `value` under `name`; `keep` makes a tensor safe from what happens later (default: as it is)."""
        for leaf_name, leaf in _walk(name, value, self.structure, ()):
            self.values[leaf_name] = to_plain(leaf, keep) if isinstance(leaf, Tensor) else leaf

    def below(self, prefix: str) -> dict[str, Value]:
        """Return the leaves named `prefix` or below it."""
        starts = (f"{prefix}.", f"{prefix}[")
        return {name: value for name, value in self.values.items() if name == prefix or name.startswith(starts)}


def flatten(name: str, value: Any) -> Leaves:
    """Return the named leaves of any nested value."""
    leaves = Leaves()
    leaves.add(name, value)
    return leaves


def tensors(value: Any) -> list[Tensor]:
    """Return the tensors of any nested value in order, as they are."""
    return [leaf for _, leaf in _walk("", value, {}, ()) if isinstance(leaf, Tensor)]


def named_tensors(name: str, value: Any) -> list[tuple[str, Tensor]]:
    """Return the tensors of any nested value with their names, as they are."""
    return [(path, leaf) for path, leaf in _walk(name, value, {}, ()) if isinstance(leaf, Tensor)]


def to_plain(tensor: Tensor, keep: Callable[[Tensor], Tensor] | None = None) -> Tensor:
    """Return the values of any kind of tensor as a dense, detached one on the CPU. Copies only where it must."""
    plain = tensor.detach()
    if plain.layout != torch.strided:
        return plain.to_dense().cpu()
    if plain.is_quantized:
        return plain.dequantize().cpu()
    if type(plain) is not Tensor:
        plain = plain.as_subclass(Tensor)
    plain = plain.resolve_conj().resolve_neg()
    if plain.device.type != "cpu":
        return plain.cpu()
    return plain if keep is None else keep(plain)


def map_tensors(value: Any, change: Callable[[Tensor], Tensor]) -> Any:
    """Return `value` rebuilt with `change` applied to every tensor, at any depth.

    Containers are new ones of the same type; one that stood in two places still does.
    """
    return _Rebuild(change).rebuild(value, 0)


def _walk(name: str, value: Any, structure: dict[str, str], above: tuple[int, ...]) -> Iterator[tuple[str, Any]]:
    value = _known(value)
    if isinstance(value, Tensor) and not value.is_nested and not is_traceable_wrapper_subclass(value):
        yield name, value
        return
    if isinstance(value, PLAIN):
        yield name, value
        return
    if id(value) in above or len(above) >= MAX_DEPTH:
        structure[name] = "seen above" if id(value) in above else f"deeper than {MAX_DEPTH}"
        return
    parts = _parts(value)
    structure[name] = _describe(value, parts)
    for key, part in parts:
        yield from _walk(name + key, part, structure, (*above, id(value)))


def _parts(value: Any) -> list[tuple[str, Any]]:
    """Return what `value` holds, each with the end of its name."""
    if isinstance(value, Tensor):
        if value.is_nested:
            return _numbered(value.unbind())
        names, _ = value.__tensor_flatten__()  # type: ignore[attr-defined]
        return [(f".{name}", getattr(value, name)) for name in names]
    if isinstance(value, Mapping):
        return [(_key(key), value[key]) for key in value]
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return [(f".{name}", getattr(value, name)) for name in value._fields]
    if isinstance(value, (list, tuple)):
        return _numbered(value)
    if isinstance(value, Set):
        return _numbered(sorted(value, key=repr))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return [(f".{field.name}", getattr(value, field.name, None)) for field in dataclasses.fields(value)]
    if _is_opaque(value):
        return []
    slots = [name for kind in type(value).__mro__ for name in _slots(kind) if hasattr(value, name)]
    return [
        (f".{name}", part) for name, part in {**{n: getattr(value, n) for n in slots}, **_attributes(value)}.items()
    ]


def _numbered(values: Iterable[Any]) -> list[tuple[str, Any]]:
    return [(f"[{index}]", part) for index, part in enumerate(values)]


def _key(key: Any) -> str:
    return f".{key}" if isinstance(key, str) and key.isidentifier() else f"[{key!r}]"


def _known(value: Any) -> Any:
    """Return numpy's values and enumeration members as what they stand for."""
    if isinstance(value, enum.Enum):
        return f"{type(value).__name__}.{value.name}"
    if isinstance(value, numpy.generic):
        return value.item()
    if isinstance(value, numpy.ndarray) and value.dtype.kind in "biufc":
        return torch.from_numpy(numpy.ascontiguousarray(value).reshape(value.shape))
    return value


def _is_opaque(value: Any) -> bool:
    """Functions, classes and modules are no data; they are compared by kind alone."""
    return callable(value) or isinstance(value, (type, nn.Module, torch.Generator, range, slice))


def _attributes(value: Any) -> dict[str, Any]:
    return {name: part for name, part in getattr(value, "__dict__", {}).items() if not name.startswith("__")}


def _slots(kind: type) -> tuple[str, ...]:
    slots = kind.__dict__.get("__slots__", ())
    names = (slots,) if isinstance(slots, str) else tuple(slots)
    return tuple(name for name in names if not name.startswith("__"))


def _describe(value: Any, parts: list[tuple[str, Any]]) -> str:
    kind = type(value).__name__
    if isinstance(value, (list, tuple, Set)) and not hasattr(value, "_fields"):
        return f"{kind} of {len(parts)}"
    return f"{kind}({', '.join(sorted(key.lstrip('.') for key, _ in parts))})"


class _Rebuild:
    def __init__(self, change: Callable[[Tensor], Tensor]) -> None:
        self.change = change
        self.done: dict[int, tuple[Any, Any]] = {}
        """By identity; the original is kept so that its identity stays its own."""

    def rebuild(self, value: Any, depth: int) -> Any:
        if isinstance(value, (*PLAIN, enum.Enum, torch.Size)) or depth > MAX_DEPTH:
            return value
        if id(value) not in self.done:
            self.done[id(value)] = (value, self._rebuild(value, depth))
        return self.done[id(value)][1]

    def _rebuild(self, value: Any, depth: int) -> Any:
        if isinstance(value, Tensor):
            return self.change(value)
        if isinstance(value, numpy.ndarray):
            return value.copy()
        if isinstance(value, tuple):
            parts = [self.rebuild(part, depth + 1) for part in value]
            return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
        if isinstance(value, (list, Mapping)):
            return self._fill(value, depth)
        if isinstance(value, Set) or _is_opaque(value):
            return value
        twin = self._twin(value)
        for name, part in _parts(value):
            object.__setattr__(twin, name[1:], self.rebuild(part, depth + 1))
        return twin

    def _fill(self, value: Any, depth: int) -> Any:
        twin = self._twin(value)
        for key in range(len(value)) if isinstance(value, list) else list(value):
            part = self.rebuild(value[key], depth + 1)
            try:
                twin[key] = part
            except TypeError:  # a mapping that cannot be written, such as MappingProxyType
                return {key: self.rebuild(value[key], depth + 1) for key in value}
        return twin

    def _twin(self, value: Any) -> Any:
        try:
            twin = copy.copy(value)
        except TypeError:
            twin = dict(value) if isinstance(value, Mapping) else value
        self.done[id(value)] = (value, twin)
        return twin
