"""Every test of the store and the API runs on both databases."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import postgres


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[postgres.Server]:
    with postgres.server() as found:
        yield found


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """An empty database of the test's own."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/bench.db"
    else:
        with request.getfixturevalue("postgres_server").schema() as found:
            yield found


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    """For what only a file can do: be damaged, be read-only, lie on a full disk."""
    return f"sqlite:///{tmp_path}/file.db"
