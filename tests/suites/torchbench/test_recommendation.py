"""The two recommenders compute what the originals did, on arguments like theirs."""

from __future__ import annotations

import pytest
import torch

from harness import config
from harness.worker.leaves import tensors
from suites.spec import MODES, Attention, Mode, Preset
from suites.torchbench.build import build
from suites.torchbench.recipe import Ask
from suites.torchbench.recommendation import Autoencoder, Dlrm
from tests.suites import parity

NAMES = ("dlrm", "nvidia_deeprecommender")
SPECS = {spec.name: spec for spec in config.suite("torchbench").models if spec.name in NAMES}
SMALL = {name: SPECS[name].at(Preset.SMALL) for name in NAMES}


@torch.no_grad()
def test_dlrm_computes():
    """Outputs are the original's. Rows are filled from the first on, and 2796 is the last that is looked up."""
    module = parity.filled(Dlrm(rows=2797).network(Attention.FUSED))
    lookups = parity.ints(1_000_000, 400)

    assert 2796 == lookups.max()
    parity.assert_computes("dlrm", [module(parity.wave(4, 512), torch.arange(0, 400, 100).expand(8, 4), [lookups] * 8)])


@torch.no_grad()
def test_autoencoder_computes():
    """Outputs are the original's, at full size."""
    module = parity.filled(Autoencoder().network(Attention.FUSED))

    parity.assert_computes("nvidia_deeprecommender", [module(parity.wave(2, 197951))])


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", NAMES)
def test_outputs_depend_on_inputs(name, mode):
    """Outputs for inputs of two seeds lie a tenth of their size apart; no activation exceeds 1e3."""
    workload, other = (build(SMALL[name], mode, 8, seed) for seed in (0, 1))
    largest = []
    for each in workload.module.modules():
        each.register_forward_hook(lambda _, __, output: largest.extend(t.abs().max() for t in tensors(output)))

    with torch.no_grad():
        one, two = (workload.module(*args) for args in (workload.args, other.args))

    assert (one - two).square().mean().sqrt() >= 0.1 * torch.stack([one, two]).square().mean().sqrt()
    assert max(largest) < 1e3


@pytest.mark.parametrize("name", NAMES)
def test_every_parameter_learns(name):
    """The loss is a finite scalar, and every parameter gets a gradient from it; inference has no loss."""
    workload = build(SMALL[name], Mode.TRAINING, 2, seed=0)

    loss = workload.loss(workload.module(*workload.args))
    loss.backward()

    assert loss.isfinite()
    assert all(each.grad.to_dense().any() for each in workload.module.parameters())
    assert build(SMALL[name], Mode.INFERENCE, 2, seed=0).loss is None


@pytest.mark.parametrize("name", NAMES)
def test_seed_decides(name):
    """Weights come from the seed alone, arguments from seed and batch size."""
    one, same, larger, other = (
        build(SMALL[name], Mode.TRAINING, batch, seed) for batch, seed in ((2, 7), (2, 7), (3, 7), (2, 8))
    )

    pairs = zip(one.module.parameters(), larger.module.parameters(), strict=True)
    assert all(torch.equal(a, b) for a, b in pairs)
    assert all(torch.equal(a, b) for a, b in zip(tensors(one.args), tensors(same.args), strict=True))
    assert not torch.equal(tensors(one.args)[0], tensors(other.args)[0])


def test_lookups():
    """Of a hundred rows drawn per sample and table, each is looked up once: lists are ragged, and other per table."""
    numbers, offsets, indices = Dlrm(rows=1000).call(Ask(Mode.INFERENCE, 16, seed=0)).args
    bags = [rows.tensor_split(begin[1:]) for begin, rows in zip(offsets, indices, strict=True)]

    assert ((16, 512), (8, 16), 8) == (tuple(numbers.shape), tuple(offsets.shape), len(indices))
    assert all(len(bag) == len(bag.unique()) for table in bags for bag in table)
    assert all(85 <= len(bag) <= 100 for table in bags for bag in table)  # 95 are expected, give or take 2
    assert all(0 <= rows.min() and rows.max() < 1000 for rows in indices)
    assert len({len(rows) for rows in indices}) > 1


def test_gradients_of_tables_are_sparse():
    """A table's gradient holds the rows that were looked up, and no other."""
    workload = build(SMALL["dlrm"], Mode.TRAINING, 2, seed=0)

    workload.loss(workload.module(*workload.args)).backward()

    gradient = workload.module.tables[3].weight.grad
    assert torch.sparse_coo == gradient.layout
    assert workload.args[2][3].unique().tolist() == gradient.coalesce().indices()[0].tolist()


def test_both_sides_are_heard():
    """Numbers and lookups, each alone, move what is said of a click."""
    (numbers, *rows), (others, *other_rows) = (build(SMALL["dlrm"], Mode.INFERENCE, 8, seed).args for seed in (0, 1))
    module = build(SMALL["dlrm"], Mode.INFERENCE, 8, seed=0).module

    with torch.no_grad():
        said, by_rows, by_numbers = module(numbers, *rows), module(numbers, *other_rows), module(others, *rows)

    assert (said - by_rows).square().mean().sqrt() >= 0.01 * said.square().mean().sqrt()
    assert (said - by_numbers).square().mean().sqrt() >= 0.01 * said.square().mean().sqrt()


def test_ratings():
    """About one item in a hundred is rated, from 1 to 5; the loss looks at no other."""
    call = Autoencoder(items=20_000).call(Ask(Mode.TRAINING, 4, seed=0))
    (ratings,) = call.args

    assert 0.009 < (ratings != 0).float().mean() < 0.011
    assert [0, 1, 2, 3, 4, 5] == ratings.unique().tolist()
    assert 4 == call.loss(ratings + 2).item()
    assert 4 == call.loss(torch.where(ratings == 0, 100, ratings + 2)).item()
