"""Fixtures that several folders share: a database of its own for each test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from server.store import Store


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/bench.db"


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    store = Store.connect(url)
    yield store
    store.dispose()
