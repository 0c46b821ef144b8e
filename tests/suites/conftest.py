"""What the tests of suites share: one thread, a search path of their own, and no network where it is asked for."""

from __future__ import annotations

import socket
import sys

import pytest
import torch


@pytest.fixture(autouse=True)
def one_thread():
    """Beside other work on the same cores, several threads wait for each other most of the time."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(autouse=True)
def own_path(monkeypatch):
    """What a builder adds to the search path for its model ends with the test: in a run it ends with the process."""
    monkeypatch.setattr(sys, "path", [*sys.path])


@pytest.fixture
def no_network(monkeypatch):
    """Any attempt to reach another machine fails the test."""

    def refuse(*_, **__):
        raise AssertionError("something was about to be downloaded")

    for name in ("connect", "connect_ex"):
        monkeypatch.setattr(socket.socket, name, refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
