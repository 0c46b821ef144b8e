"""The published set as a whole: 163 models, each of its published size, and each with a small preset."""

from __future__ import annotations

import warnings
from importlib import import_module

import pytest
import torch

from harness import config
from suites.spec import Preset

SUITES = [suite for name in config.suites() if (suite := config.suite(name)).published]
ALL = [pytest.param(suite, model, id=f"{suite.name}/{model.name}") for suite in SUITES for model in suite.models]


def counted(module):
    return sum(parameter.numel() for parameter in module.parameters())


def test_as_many_as_announced():
    """The published set has 61 models of timm, 46 of transformers and 56 of TorchBench: 163."""
    assert {"timm": 61, "huggingface": 46, "torchbench": 56} == {suite.name: len(suite.models) for suite in SUITES}
    assert 163 == len(ALL)


@pytest.mark.parametrize(("suite", "model"), ALL)
def test_size(suite, model):
    """Each builds on the meta device, full with the parameters of its entry, and small with no more."""
    network = import_module(suite.module).network
    with torch.device("meta"), warnings.catch_warnings():
        warnings.simplefilter("error", DeprecationWarning)
        full = network(model.at(Preset.FULL))
        small = network(model.at(Preset.SMALL))

    assert model.parameters == counted(full)
    assert all(parameter.is_meta for parameter in full.parameters())
    assert counted(small) <= counted(full)
