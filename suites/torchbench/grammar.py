"""A grammar whose rule probabilities a network gives."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from suites import inputs
from suites.spec import Attention
from suites.torchbench.recipe import Ask, Call, Recipe

LENGTH = 29
"""Of an entry that gives none."""


@dataclass(frozen=True)
class Grammar(Recipe):
    """Kim et al. 2019, Compound probabilistic context-free grammars: the neural grammar, without its latent vector.

    Takes sentences, int64 `(batch, length)`, stored word by word (strides 1 and batch) as a loader of text gives them.
    Returns three tables of log-probabilities: `(batch, length, terminals)` of each word under each terminal; `(batch,
    nonterminals, symbols, symbols)` of each pair under each non-terminal, symbols being non-terminals and terminals
    together; `(batch, nonterminals)` of each root. The last two are the same for every sentence. Training: the mean
    over the tables, as the sum over all parses (the inside algorithm) is no part of the network.
    """

    vocabulary: int = 4771
    terminals: int = 30
    nonterminals: int = 30
    width: int = 256

    def network(self, attention: Attention) -> nn.Module:
        return _Grammar(self)

    def call(self, ask: Ask) -> Call:
        return Call((inputs.tokens(ask.length or LENGTH, ask.batch_size, self.vocabulary, ask.seed).t(),))


class _Grammar(nn.Module):
    def __init__(self, sizes: Grammar) -> None:
        super().__init__()
        symbols = sizes.nonterminals + sizes.terminals
        self.word = _embeddings(sizes.vocabulary, sizes.width)
        self.terminal = _embeddings(sizes.terminals, sizes.width)
        self.nonterminal = _embeddings(sizes.nonterminals, sizes.width)
        self.pair = _embeddings(symbols, symbols, sizes.width)
        self.root = _embeddings(sizes.nonterminals, sizes.width)
        self.start = _embeddings(1, sizes.width)
        self.of_terminals = _Residual(sizes.width)
        self.of_roots = _Residual(sizes.width)

    def forward(self, words: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return self._terms(words), self._rules(len(words)), self._roots(len(words))

    def _terms(self, words: Tensor) -> Tensor:
        scores = torch.einsum("vh,th->tv", self.word, self.of_terminals(self.terminal))
        every = scores.log_softmax(-1).expand(*words.shape, *scores.shape)
        index = words.unsqueeze(2).expand(-1, -1, len(scores)).unsqueeze(3)
        return every.gather(3, index).squeeze(3)

    def _rules(self, batch: int) -> Tensor:
        scores = torch.einsum("sh,tuh->stu", self.nonterminal, self.pair)
        return scores.flatten(1).log_softmax(-1).view_as(scores).expand(batch, *scores.shape)

    def _roots(self, batch: int) -> Tensor:
        scores = torch.einsum("ah,th->t", self.start, self.of_roots(self.root))
        return scores.log_softmax(-1).expand(batch, *scores.shape)


def _embeddings(*shape: int) -> nn.Parameter:
    """Return embeddings whose products, the scores, vary by about one.

    The original starts flatter: all words are then nearly as likely, and hardly anything depends on a sentence.
    """
    return nn.Parameter(torch.randn(shape) / shape[-1] ** 0.25)


class _Residual(nn.Module):
    """A layer, and two residual branches of two layers with a rectifier after each."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.first = nn.Linear(width, width)
        self.branches = nn.ModuleList(
            nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU()) for _ in range(2)
        )

    def forward(self, states: Tensor) -> Tensor:
        states = self.first(states)
        for branch in self.branches:
            states = states + branch(states)
        return states
