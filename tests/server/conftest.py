"""Every test of the store and the API runs on both databases."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from server.app import create_app
from server.settings import Settings
from tests import postgres
from tests.server import library


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


@pytest.fixture(scope="session", params=["sqlite", "postgresql"])
def api(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    """A client of the API on the small library, which is filled once: nothing that is asked changes it."""
    with ExitStack() as stack:
        if request.param == "sqlite":
            found = f"sqlite:///{tmp_path_factory.mktemp('library')}/bench.db"
        else:
            found = stack.enter_context(request.getfixturevalue("postgres_server").schema())
        library.fill(found)
        app = create_app(Settings(database=found))
        yield TestClient(app)
        app.state.queries.dispose()


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    """For what only a file can do: be damaged, be read-only, lie on a full disk."""
    return f"sqlite:///{tmp_path}/file.db"
