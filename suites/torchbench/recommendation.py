"""Networks that recommend: one over clicks, with tables of embeddings, and one over ratings."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn.functional import linear, selu

from suites import inputs
from suites.spec import Attention
from suites.torchbench.recipe import Ask, Call, Recipe
from suites.torchbench.regression import squared_error


@dataclass(frozen=True)
class Dlrm(Recipe):
    """Deep learning recommendation model (Naumov et al. 2019, arXiv:1906.00091): will somebody click?

    Numbers `(batch, 512)` go through a perceptron; from each table, the rows looked up are summed. All pairs of the
    nine vectors `(batch, 9, 64)` are multiplied, and a second perceptron maps the products and the first vector to
    `(batch, 1)`. Its last layer is rectified: the benchmark asks for no sigmoid. Gradients of the tables are sparse,
    and Adam refuses those.

    The loss is the mean squared error against clicks, 0 or 1.
    """

    numbers: int = 512
    tables: int = 8
    rows: int = 1_000_000
    width: int = 64
    lookups: int = 100
    """Of one sample in one table. A row drawn twice is looked up once: lists of indices are ragged."""
    bottom: Sequence[int] = (512,)
    top: Sequence[int] = (1024, 1024, 1024)

    def network(self, attention: Attention) -> nn.Module:
        return Clicks(self)

    def call(self, ask: Ask) -> Call:
        """Return the loss and three arguments: numbers, offsets `(tables, batch)`, a vector of indices per table."""
        drawn = [self._lookups(ask, table) for table in range(self.tables)]
        numbers = inputs.features(ask.batch_size, (self.numbers,), ask.seed)
        offsets, indices = torch.stack([first for first, _ in drawn]), [rows for _, rows in drawn]
        clicks = inputs.targets(ask.batch_size, 2, ask.seed).float()[:, None]
        return Call((numbers, offsets, indices), loss=squared_error(clicks, ask.loss_scale))

    def _lookups(self, ask: Ask, table: int) -> tuple[Tensor, Tensor]:
        """Return where each sample's rows begin, `(batch,)`, and the rows of all samples behind one another."""
        generator = inputs.stream(ask.seed, f"lookups/{table}")
        rows = torch.randint(self.rows, (ask.batch_size, self.lookups), generator=generator).sort(dim=1).values
        new = torch.ones_like(rows, dtype=torch.bool)
        new[:, 1:] = rows[:, 1:] != rows[:, :-1]
        counts = new.sum(1)
        return counts.cumsum(0) - counts, rows[new]


class Clicks(nn.Module):
    """The network of `Dlrm`."""

    pairs: Tensor

    def __init__(self, sizes: Dlrm) -> None:
        super().__init__()
        vectors = sizes.tables + 1
        self.tables = nn.ModuleList(_table(sizes) for _ in range(sizes.tables))
        self.bottom = _perceptron([sizes.numbers, *sizes.bottom, sizes.width])
        self.top = _perceptron([sizes.width + vectors * (vectors - 1) // 2, *sizes.top, 1])
        self.register_buffer("pairs", torch.tril_indices(vectors, vectors, offset=-1), persistent=False)
        # Below zero, the last unit would answer zero with gradients of zero; its sums have a deviation of 1.4.
        nn.init.constant_(self.top[-2].get_parameter("bias"), 6.0)

    def forward(self, numbers: Tensor, offsets: Tensor, indices: list[Tensor]) -> Tensor:
        first = self.bottom(numbers)
        sums = [table(rows, begin) for table, rows, begin in zip(self.tables, indices, offsets, strict=True)]
        vectors = torch.stack([first, *sums], dim=1)
        products = torch.bmm(vectors, vectors.transpose(1, 2))
        one, other = self.pairs
        clicks: Tensor = self.top(torch.cat([first, products[:, one, other]], dim=1))
        return clicks


def _table(sizes: Dlrm) -> nn.Module:
    """Return a table whose sums have a variance of 1, so that neither side drowns the other in a product."""
    bound = math.sqrt(3 / sizes.lookups)
    weight = torch.empty(sizes.rows, sizes.width).uniform_(-bound, bound)
    return nn.EmbeddingBag.from_pretrained(weight, freeze=False, mode="sum", sparse=True)


def _perceptron(widths: Sequence[int]) -> nn.Sequential:
    layers = [(nn.Linear(above, below), nn.ReLU()) for above, below in pairwise(widths)]
    for layer, _ in layers[:-1]:  # by default each rectified layer halves what differs between samples
        nn.init.kaiming_uniform_(layer.weight, nonlinearity="relu")
    return nn.Sequential(*(each for layer in layers for each in layer))


@dataclass(frozen=True)
class Autoencoder(Recipe):
    """Deep autoencoder over ratings (Kuchaiev and Ginsburg 2017, arXiv:1708.01715): `(batch, items)` to the same.

    Encoder 512-512-1024 and its mirror, SELU behind every layer, dropout on the code. The two matrices at the items
    are 99 % of the parameters. Weights are bare parameters in lists, as in the benchmark: a compiler sees no `Linear`.

    The loss is the paper's, the mean squared error over what was rated. Ratings are 1 to 5, and 0 where there is none.
    """

    items: int = 197_951
    hidden: Sequence[int] = (512, 512, 1024)
    dropout: float = 0.8
    rated: float = 0.01
    """Share of the items that a person has rated; in the Netflix data of the paper it is 1.2 %."""

    def network(self, attention: Attention) -> nn.Module:
        return Ratings([self.items, *self.hidden], self.dropout)

    def call(self, ask: Ask) -> Call:
        generator = inputs.stream(ask.seed, "ratings")
        rated = torch.rand((ask.batch_size, self.items), generator=generator, dtype=torch.float32) < self.rated
        stars = torch.randint(1, 6, (int(rated.sum()),), generator=generator).float()
        ratings = torch.zeros(rated.shape, dtype=torch.float32)
        ratings[rated] = stars
        return Call((ratings,), loss=squared_error(stars, ask.loss_scale, rated.flatten().nonzero()[:, 0]))


class Ratings(nn.Module):
    """The network of `Autoencoder`."""

    def __init__(self, widths: Sequence[int], dropout: float) -> None:
        super().__init__()
        self.encoder_weights, self.encoder_biases = _parameters(widths)
        self.decoder_weights, self.decoder_biases = _parameters(widths[::-1])
        self.dropout = nn.Dropout(dropout)

    def forward(self, ratings: Tensor) -> Tensor:
        code = _through(ratings, self.encoder_weights, self.encoder_biases)
        return _through(self.dropout(code), self.decoder_weights, self.decoder_biases)


def _parameters(widths: Sequence[int]) -> tuple[nn.ParameterList, nn.ParameterList]:
    weights = [torch.empty(below, above) for above, below in pairwise(widths)]
    for weight in weights:
        nn.init.xavier_uniform_(weight)
    biases = [torch.empty(len(weight)).uniform_(-1, 1) / math.sqrt(weight.shape[1]) for weight in weights]
    return nn.ParameterList(weights), nn.ParameterList(biases)


def _through(hidden: Tensor, weights: nn.ParameterList, biases: nn.ParameterList) -> Tensor:
    for weight, bias in zip(weights, biases, strict=True):
        hidden = selu(linear(hidden, weight, bias))
    return hidden
