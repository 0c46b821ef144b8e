"""The grammar computes what the original did; its tables are distributions."""

from __future__ import annotations

import torch

from harness import config
from suites.spec import Attention, Mode
from suites.torchbench.grammar import Grammar
from suites.torchbench.recipe import Ask
from tests.suites import parity


@torch.no_grad()
def test_tables():
    """The three tables are the original's."""
    tables = parity.filled(Grammar().network(Attention.FUSED))(parity.ints(4771, 2, 29))

    parity.assert_computes("pytorch_struct", tables)


@torch.no_grad()
def test_tables_are_distributions():
    """Over all words, over all pairs of symbols and over all roots, probabilities add up to one."""
    network = Grammar(vocabulary=50).network(Attention.FUSED)

    terms, rules, roots = network(torch.arange(50).unsqueeze(0))

    torch.testing.assert_close(terms.exp().sum(1), torch.ones(1, 30))
    torch.testing.assert_close(rules.exp().sum((2, 3)), torch.ones(1, 30))
    torch.testing.assert_close(roots.exp().sum(1), torch.ones(1))


def test_sentences():
    """Sentences are stored word by word."""
    (words,) = Grammar().call(Ask(Mode.TRAINING, 40, seed=0, length=29)).args

    assert ((40, 29), (1, 40)) == (words.shape, words.stride())


def test_batch_and_modes():
    """The entry has upstream's 40 sentences in training, also for the check, and no inference."""
    (spec,) = (each for each in config.suite("torchbench").models if each.name == "pytorch_struct")

    assert {Mode.TRAINING: 40} == spec.batch
    assert 40 == spec.accuracy_batch
    assert [Mode.INFERENCE] == [skip.mode for skip in spec.skip]
