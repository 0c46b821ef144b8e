"""Demucs computes what the original did; in train mode songs are augmented."""

from __future__ import annotations

import pytest
import torch

from suites.spec import Attention, Mode
from suites.torchbench.demucs import Demucs
from suites.torchbench.recipe import Ask
from tests.suites import parity

SMALL = Demucs(channels=4, depth=2, shift=100)


@torch.no_grad()
def test_sources_and_estimate():
    """Sources and their estimate are the original's."""
    with torch.device("meta"):  # a GiB of weights that are filled anyway
        module = Demucs().network(Attention.FUSED)

    output = parity.filled(module.to_empty(device="cpu"))(parity.wave(1, 5, 2, 88200))

    parity.assert_computes("demucs", output)


@pytest.fixture
def augmentation():
    return SMALL.network(Attention.FUSED).augmentation


def songs(batch):
    """Return sources whose every sample says where it is from: song, source, channel and place."""
    return 1 + torch.arange(batch * 4 * 2 * 300, dtype=torch.float32).reshape(batch, 4, 2, 300)


def test_inference_cuts_the_end(augmentation):
    """In eval mode the end is cut off, and nothing is random."""
    sources = songs(2)

    assert torch.equal(sources[..., :200], augmentation.eval()(sources))


@pytest.mark.parametrize("batch", [1, 2, 4, 6, 8])
def test_training_mixes_songs(augmentation, batch):
    """Each source of each song is found once, whole, with one sign and shift, in a group of 4, 2 or 1 neighbours."""
    torch.manual_seed(0)
    group = {1: 1, 2: 2, 4: 4, 6: 2, 8: 4}[batch]

    augmented = augmentation.train()(songs(batch))

    number = augmented.abs().long() - 1
    song, source, channel, place = number // 2400, number // 600 % 4, number // 300 % 2, number % 300
    assert (batch, 4, 2, 200) == augmented.shape
    for each in (augmented.sign(), song, source):
        assert (each == each[:, :, :1, :1]).all()
    assert (source[:, :, 0, 0] == torch.arange(4)).all()
    assert (channel.sum(2) == 1).all()
    assert (place.diff(dim=3) == 1).all()
    assert (song[:, :, 0, 0].sort(0).values == torch.arange(batch).unsqueeze(1)).all()
    assert (song[:, :, 0, 0] // group == torch.arange(batch).unsqueeze(1) // group).all()


def test_training_draws(augmentation):
    """Signs, channels, shifts and songs all change from call to call."""
    torch.manual_seed(0)
    augmentation.train()
    one, two = augmentation(songs(4)), augmentation(songs(4))
    channel, place = ((each.abs().long() - 1) for each in (one, two))

    assert (one.sign() != two.sign()).any()
    assert ((channel // 300 % 2) != (place // 300 % 2)).any()
    assert ((channel % 300) != (place % 300)).any()
    assert ((channel // 2400) != (place // 2400)).any()


def test_loss_by_hand():
    """Sources are cut at both ends to the length of the estimate; 2 beside 5 costs 3."""
    loss = SMALL.call(Ask(Mode.TRAINING, 1, seed=0, length=400)).loss
    sources = torch.full((1, 4, 2, 9), 100.0)
    sources[..., 3:6] = 5.0

    assert 3 == loss((sources, torch.full((1, 4, 2, 3), 2.0))).item()


def test_weights_are_rescaled():
    """Every convolution's weights are spread by the root of 0.1 times what they were."""
    torch.manual_seed(0)
    plain = torch.nn.Conv1d(2, 4, 8, 4)
    torch.manual_seed(0)
    module = SMALL.network(Attention.FUSED).separator.encoder[0][0]

    assert (0.1 * plain.weight.std()).sqrt().item() == pytest.approx(module.weight.std().item())
    torch.testing.assert_close(module.bias / plain.bias, (module.weight / plain.weight)[:, 0, 0])
