"""Nested values as named leaves."""

from __future__ import annotations

import enum
from collections import UserDict, namedtuple
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy
import pytest
import torch
from torch import nn

from harness.worker.leaves import flatten, map_tensors, tensors

Pair = namedtuple("Pair", "left right")


@dataclass
class Output:
    hidden: Any
    steps: int = 3


class Slotted:
    __slots__ = ("keys",)

    def __init__(self, keys: Any) -> None:
        self.keys = keys


class Colour(enum.Enum):
    RED = 1


ONE = torch.ones(2)


@pytest.mark.parametrize(
    ("value", "names"),
    [
        (ONE, ["output"]),
        ({"logits": ONE, "extra": {"inner": {"hidden": ONE, "unused": None}}, "steps": 3},
         ["output.logits", "output.extra.inner.hidden", "output.extra.inner.unused", "output.steps"]),
        ((ONE, [True, 1.5, 2j, "text"]), ["output[0]", "output[1][0]", "output[1][1]", "output[1][2]", "output[1][3]"]),
        (UserDict({"a b": ONE, 7: ONE}), ["output['a b']", "output[7]"]),
        (Pair(ONE, 1), ["output.left", "output.right"]),
        (torch.max(torch.ones(2, 2), 0), ["output[0]", "output[1]"]),
        (Output(ONE), ["output.hidden", "output.steps"]),
        (SimpleNamespace(layers=[Slotted(ONE)]), ["output.layers[0].keys"]),
        ({"a": numpy.float32(1.5), "b": Colour.RED, "c": {2, 1}},
         ["output.a", "output.b", "output.c[0]", "output.c[1]"]),
        (torch.nested.nested_tensor([ONE, torch.ones(3)]), ["output[0]", "output[1]"]),
    ],
)  # fmt: skip
def test_every_value_has_a_name(value, names):
    """Mappings, sequences, named tuples, dataclasses, objects and nested tensors are looked into, at any depth."""
    assert names == list(flatten("output", value).values)


def test_empty_containers_leave_a_trace():
    """What holds no value still differs: an empty dict is no empty list, a missing key no None."""
    structures = [flatten("output", value).structure for value in ({}, [], (), {"a": {}}, {"a": []}, [[]])]

    assert all(structures.count(one) == 1 for one in structures)


def test_odd_tensors_become_plain():
    """Sparse tensors turn dense, subclasses plain, views of another sign or conjugate resolved; all detached."""

    class Special(torch.Tensor):
        pass

    leaves = flatten(
        "x",
        [
            torch.tensor([[0.0, 3.0]]).to_sparse(),
            torch.tensor([[0.0, 3.0]]).to_sparse_csr(),
            torch.ones(2).as_subclass(Special),
            torch.tensor([1 + 2j]).conj(),
            nn.Parameter(torch.ones(1)),
            torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.qint8),
        ],
    ).values.values()

    assert {torch.Tensor} == {type(leaf) for leaf in leaves}
    assert {torch.strided} == {leaf.layout for leaf in leaves}
    assert not any(leaf.requires_grad or leaf.is_conj() or leaf.is_quantized for leaf in leaves)
    assert [[0.0, 3.0]] == next(iter(leaves)).tolist()


def test_cycles_and_depth_end():
    """An object that holds itself, or makes ever new ones, is looked into a bounded number of times."""
    loop: dict[str, Any] = {"x": ONE}
    loop["self"] = loop
    deep: Any = ONE
    for _ in range(1000):
        deep = [deep]

    assert ["output.x"] == list(flatten("output", loop).values)
    assert "seen above" == flatten("output", loop).structure["output.self"]
    assert not flatten("output", deep).values


def test_functions_and_modules_are_no_data():
    """They are compared by kind alone: their attributes are not the model's answer."""
    leaves = flatten("output", {"f": torch.relu, "m": nn.Linear(2, 2), "t": int})

    assert not leaves.values
    assert {"output", "output.f", "output.m", "output.t"} == set(leaves.structure)


def test_tensors_come_as_they_are():
    """In order, with their identity: what is changed through them is the model's own."""
    assert [id(ONE), id(ONE)] == [id(tensor) for tensor in tensors({"a": ONE, "b": (1, ONE)})]


def test_rebuilding_keeps_kinds_and_identity():
    """Containers are new, of the same type, and hold a thing once that they held once; even one that holds itself."""
    shared = [ONE]
    value = {"a": Pair(shared, shared), "b": Output(Slotted(ONE)), "c": torch.max(torch.ones(2, 2), 0), "d": {1, 2}}
    value["loop"] = value
    twin = map_tensors(value, lambda tensor: tensor + 1)

    assert twin is twin["loop"] is not value
    assert twin["a"].left is twin["a"].right is not shared
    assert (Pair, Output, Slotted) == (type(twin["a"]), type(twin["b"]), type(twin["b"].hidden))
    assert [2.0, 2.0] == twin["b"].hidden.keys.tolist() == twin["a"].left[0].tolist() == twin["c"].values.tolist()
    assert [1.0, 1.0] == value["b"].hidden.keys.tolist()
