"""A server with its doors: a client, tokens for it, and bodies to send."""

from __future__ import annotations

import gzip
from collections.abc import Iterable
from datetime import timedelta
from typing import Any

from fastapi.testclient import TestClient
from pydantic import BaseModel

from server.app import create_app
from server.auth import Scope, Tokens
from server.settings import Settings
from tests.server import factory

RECORDS = f"/api/v1/runs/{factory.RUN_ID}/records"


class Door:
    """The API on a database, and who asks."""

    def __init__(self, url: str, **settings: Any) -> None:
        self.app = create_app(Settings(database=url, **settings))
        self.client = TestClient(self.app)
        self.tokens = Tokens(self.app.state.engine)

    def key(self, scope: str = "write", name: str | None = None, lasts: timedelta | None = None) -> dict[str, str]:
        """Return the header that a new token makes."""
        _, secret = self.tokens.create(name or f"a-{scope}", Scope(scope), lasts)
        return bearer(secret)


def bearer(secret: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {secret}"}


def packed(*lines: BaseModel) -> dict[str, Any]:
    """Return a batch as a client sends it."""
    return {"content": gzip.compress(text(lines)), "headers": {"Content-Encoding": "gzip"}}


def text(lines: Iterable[BaseModel]) -> bytes:
    return b"".join(line.model_dump_json().encode() + b"\n" for line in lines)
