"""Inputs are seeded, of stated shape, and leave the global random generator alone."""

from __future__ import annotations

import pytest
import torch

from suites import inputs

MAKERS = {
    "images": lambda seed: inputs.images(2, (3, 8, 8), seed),
    "features": lambda seed: inputs.features(2, (5,), seed),
    "tokens": lambda seed: inputs.tokens(2, 7, 64, seed),
    "targets": lambda seed: inputs.targets(8, 1000, seed),
}


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_seed_decides(make):
    """The same seed gives the same values, another seed other ones, and the global generator does not move."""
    before = torch.get_rng_state()

    assert torch.equal(make(1), make(1))
    assert not torch.equal(make(1), make(2))
    assert torch.equal(before, torch.get_rng_state())


def test_images_are_standardised():
    """Images are `(batch, channels, height, width)` with mean 0 and variance 1, from 256 levels."""
    images = inputs.images(4, (3, 16, 16), seed=0)

    assert (4, 3, 16, 16) == images.shape
    assert 0.0 == pytest.approx(images.mean().item(), abs=1e-5)
    assert 1.0 == pytest.approx(images.var().item(), abs=1e-5)
    assert images.unique().numel() <= 256


def test_integers_are_in_range():
    """Tokens and targets are integers from zero to below what is stated."""
    for drawn, limit in ((inputs.tokens(100, 10, 5, 0), 5), (inputs.targets(1000, 7, 0), 7)):
        assert torch.int64 == drawn.dtype
        assert {*range(limit)} == {*drawn.flatten().tolist()}


def test_streams_are_independent():
    """Each name has a stream of its own under one seed."""
    drawn = [torch.rand(4, generator=inputs.stream(0, name)).tolist() for name in ("a", "b")]

    assert drawn[0] != drawn[1]


def test_seeded_block():
    """Inside, the global generator is seeded; afterwards it goes on where it was, also after an error."""
    before = torch.get_rng_state()
    with inputs.seeded(5):
        one = torch.rand(3)
    with inputs.seeded(5):
        other = torch.rand(3)
    with pytest.raises(ValueError, match="inside"), inputs.seeded(5):
        raise ValueError("inside")

    assert torch.equal(one, other)
    assert torch.equal(before, torch.get_rng_state())
