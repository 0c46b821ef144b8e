"""Seeded arguments of stated shape. The global random generator is neither read nor moved."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor


def stream(seed: int, name: str) -> torch.Generator:
    """Return a generator of its own for each name, so that one more draw in one place moves no other."""
    digest = hashlib.sha256(f"{seed}/{name}".encode()).digest()
    return torch.Generator().manual_seed(int.from_bytes(digest[:7], "big"))


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Draw from a seeded global generator inside, for libraries that know no other; put it back afterwards."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        yield


def images(batch_size: int, size: tuple[int, ...], seed: int) -> Tensor:
    """Return `(batch, *size)`: integers 0 to 255, standardised over all of them to mean 0 and variance 1."""
    pixels = torch.randint(256, (batch_size, *size), generator=stream(seed, "images")).to(torch.float32)
    return (pixels - pixels.mean()) / pixels.std()


def features(batch_size: int, size: tuple[int, ...], seed: int) -> Tensor:
    """Return `(batch, *size)` of normally distributed values."""
    return torch.randn((batch_size, *size), generator=stream(seed, "features"), dtype=torch.float32)


def tokens(batch_size: int, length: int, vocabulary: int, seed: int, name: str = "tokens") -> Tensor:
    """Return `(batch, length)` of integers below `vocabulary`; another name gives other ones."""
    return torch.randint(vocabulary, (batch_size, length), generator=stream(seed, name))


def targets(batch_size: int, classes: int, seed: int, name: str = "targets") -> Tensor:
    """Return `(batch,)` of class numbers; another name gives other ones."""
    return torch.randint(classes, (batch_size,), generator=stream(seed, name))
