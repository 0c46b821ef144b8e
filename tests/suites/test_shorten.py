"""Deep networks are cut down to one of each kind of block, and still run."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from suites.shorten import shorten


class Block(nn.Module):
    """A residual layer of the width that it is given."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.layer = nn.Linear(width, width)

    def forward(self, x):
        return x + self.layer(x)


class Masked(Block):
    """A block with a mask of its own, which is not saved."""

    def __init__(self, masked: bool) -> None:
        super().__init__(4)
        self.register_buffer("mask", torch.ones(4) if masked else None, persistent=False)


class Indexed(nn.Module):
    """A network that finds its blocks by number."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList([Block(4), Block(4), Narrow(4, 2), Block(2), Block(2)])

    def forward(self, x):
        for place in range(len(self.blocks)):
            x = self.blocks[place](x)
        return x


class Narrow(nn.Module):
    """A block of another class, which changes the width."""

    def __init__(self, before: int, after: int) -> None:
        super().__init__()
        self.layer = nn.Linear(before, after)

    def forward(self, x):
        return self.layer(x)


@pytest.mark.parametrize(("repeats", "kept"), [(1, ["0"]), (2, ["0", "1"]), (5, ["0", "1", "2"])])
def test_equal_blocks(repeats, kept):
    """Of equal blocks in a row the first are kept, with their names; a row that is shorter stays as it is."""
    network = nn.Sequential(Block(4), Block(4), Block(4))
    first = network[0]

    assert network is shorten(network, repeats)
    assert kept == [name for name, _ in network.named_children()]
    assert first is network[0]


def test_rows_are_cut_one_by_one():
    """Blocks of other shapes, or of another class, begin a row of their own; what is left still fits together."""
    network = nn.Sequential(Block(4), Block(4), Narrow(4, 2), Block(2), Block(2), Block(2), Narrow(2, 4), Block(4))

    shorten(network, 1)

    assert ["0", "2", "3", "6", "7"] == [name for name, _ in network.named_children()]
    assert (3, 4) == network(torch.ones(3, 4)).shape


def test_lists_are_numbered_anew():
    """A list of blocks has no gap in its numbers, so that a network may count through it."""
    network = shorten(Indexed(), 1)

    assert ["0", "1", "2"] == [name for name, _ in network.blocks.named_children()]
    assert (3, 2) == network(torch.ones(3, 4)).shape


def test_blocks_inside_of_blocks():
    """Rows are cut at every depth, the inner ones first."""
    inner = [nn.Sequential(Block(4), Block(4)) for _ in range(3)]

    network = shorten(nn.Sequential(nn.Sequential(*inner)), 1)

    assert 1 == sum(isinstance(each, Block) for each in network.modules())


def test_plain_layers_stay():
    """Layers that hold no modules are no blocks, and neither are blocks without parameters: a head keeps its depth."""
    network = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4), nn.Sequential(nn.ReLU()), nn.Sequential(nn.ReLU()))

    assert 4 == len(shorten(network, 1))


@pytest.mark.parametrize(("repeats", "kept"), [(1, [None]), (2, [None, 4])])
def test_tensors_that_are_not_saved(repeats, kept):
    """Windows that are shifted in every other block, as in Swin, make one row: two of it hold both kinds."""
    network = shorten(nn.ModuleList([Masked(masked) for masked in (False, True, False, True)]), repeats)

    assert kept == [None if each.mask is None else len(each.mask) for each in network]


def test_saved_buffers_count():
    """Blocks whose saved buffers differ in shape are not equal."""
    blocks = [Block(4) for _ in range(2)]
    for place, block in enumerate(blocks):
        block.register_buffer("table", torch.zeros(place + 1))

    assert 2 == len(shorten(nn.Sequential(*blocks), 1))
