"""Cuts a deep network down: of equal blocks in a row, the first few are kept.

Equal are neighbours of one class whose saved tensors have the same names and shapes, as the blocks of a transformer or
those of one stage of a ResNet. What one of them puts out, the next but one can take in. A network that counts on the
number of its blocks (VoVNet joins their outputs, each of HRNet's halves the size) breaks where too few are kept.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby

from torch import nn


def shorten(module: nn.Module, repeats: int) -> nn.Module:
    """Keep `repeats` of each row of equal blocks, in place, and return the module.

    A block is a module with parameters that holds modules itself: two equal layers beside each other stay two.

    Args:
        module: anything with `nn.Sequential` or `nn.ModuleList` inside, at any depth.
        repeats: 1 or more.
    """
    for child in module.children():
        shorten(child, repeats)
    if isinstance(module, nn.Sequential | nn.ModuleList):
        kept = [child for _, row in groupby(module.named_children(), _kind) for child in _first(row, repeats)]
        if len(kept) < len(module):
            module._modules = dict(kept) if isinstance(module, nn.Sequential) else _numbered(kept)
    return module


def _first(row: Iterable[tuple[str, nn.Module]], repeats: int) -> list[tuple[str, nn.Module]]:
    blocks = list(row)
    return blocks[:repeats] if _is_block(blocks[0][1]) else blocks


def _is_block(module: nn.Module) -> bool:
    return any(True for _ in module.children()) and any(True for _ in module.parameters())


def _kind(named: tuple[str, nn.Module]) -> tuple[object, ...]:
    """Tensors that are not saved do not count: those of swin are masks, there in every other block."""
    block = named[1]
    shapes = [(name, tuple(each.shape)) for name, each in block.state_dict().items()]
    return type(block), tuple(shapes)


def _numbered(named: list[tuple[str, nn.Module]]) -> dict[str, nn.Module]:
    """A list is indexed by number, so that none may be missing."""
    return {str(place): child for place, (_, child) in enumerate(named)}
