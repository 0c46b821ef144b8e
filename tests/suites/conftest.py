"""One thread: beside other work on the same cores, several wait for each other most of the time."""

from __future__ import annotations

import sys

import pytest
import torch


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(autouse=True)
def own_path(monkeypatch):
    """What a builder adds to the search path for its model ends with the test: in a run it ends with the process."""
    monkeypatch.setattr(sys, "path", [*sys.path])
