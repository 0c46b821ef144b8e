"""Fixtures that several folders share: a database of its own for each test, a driver of NVIDIA's that is a file."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from server.store import Store
from tests.fakes import NVML, Driver


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/bench.db"


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    store = Store.connect(url)
    yield store
    store.dispose()


@pytest.fixture
def driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Driver]:
    """A driver of NVIDIA's that is a file, for this process and those it starts; it has one A100."""
    driver = Driver(tmp_path / "nvml.json")
    monkeypatch.setenv("NVML_STUB", str(driver.path))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(NVML), *filter(None, [os.environ.get("PYTHONPATH")])]))
    monkeypatch.syspath_prepend(str(NVML))
    monkeypatch.delitem(sys.modules, "pynvml", raising=False)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    yield driver
    sys.modules.pop("pynvml", None)
