"""Dropout at a probability near zero: what is lowered, and that kernels and graphs stay those of training."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from harness.worker.dropout import NEARLY_ZERO, lower_dropouts
from suites.spec import Mode


class DropPath(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.drop_prob = 0.2
        self.dropped = 0.5
        self.scale_by_keep = True


class StochasticDepth(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.p = 0.3


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.p = 0.3  # of no dropout
        self.attention_dropout = 0.1
        self.dropout_off = 0.0
        self.dropout_layers = 2
        self.config = SimpleNamespace(hidden_dropout_prob=0.1, text_config=SimpleNamespace(layerdrop=0.1), width=0.5)


class Functional(nn.Module):
    """Calls dropout by function, with probabilities that stand in the code."""

    def __init__(self) -> None:
        super().__init__()
        self.a = nn.Linear(8, 8)

    def forward(self, x: Tensor) -> Tensor:
        x = functional.dropout(self.a(x), 0.9, training=True)
        x = functional.dropout1d(x[:, :, None], p=0.5)[:, :, 0]
        x = torch.dropout(x, 0.5, True)
        heads = x.reshape(1, 1, *x.shape)
        return functional.scaled_dot_product_attention(heads, heads, heads, dropout_p=0.7)


def test_every_named_probability_is_lowered():
    """Dropouts, drop-path, attention dropout and those of configurations; nothing else, and each once."""
    attention = Attention()
    shared = attention.config
    net = nn.ModuleList([nn.Dropout(0.5), nn.LSTM(4, 4, 2, dropout=0.4), DropPath(), StochasticDepth(), attention])
    net.config = shared

    assert 8 == lower_dropouts(net)
    assert NEARLY_ZERO == net[0].p == net[1].dropout == net[2].drop_prob == net[3].p == attention.attention_dropout
    assert NEARLY_ZERO == shared.hidden_dropout_prob == shared.text_config.layerdrop
    assert (0.3, 0.0, 2, 0.5) == (attention.p, attention.dropout_off, attention.dropout_layers, shared.width)
    assert 0 == lower_dropouts(net)


def test_functional_dropouts_are_lowered(bench_of):
    """A model that calls dropout by function gives the same twice in training; with torch's own it does not."""
    x = torch.randn(6, 8)
    net = Functional().train()
    assert not torch.equal(net(x), net(x))

    bench_of(net, x, mode=Mode.TRAINING)

    assert torch.equal(net(x), net(x))


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_lowered_functions_are_one_graph(bench_of, backend):
    """The compiler traces through our functions without a break; `fullgraph` would raise."""
    net = nn.Sequential(nn.Dropout(0.5), Functional(), nn.Dropout(0.5))
    bench = bench_of(net, torch.randn(6, 8), mode=Mode.TRAINING)
    compiled = torch.compile(net, backend=backend, fullgraph=True)

    assert torch.equal(bench.eager().output, bench.step_of(compiled)().output)


def test_dropout_kernels_still_run(bench_of):
    """Near zero, not zero: the random numbers of real training are drawn. In evaluation they are not."""
    net = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5))

    assert bench_of(net, torch.randn(2, 4), mode=Mode.TRAINING).collect().drew
    assert not bench_of(net, torch.randn(2, 4), mode=Mode.INFERENCE).collect().drew
