"""Who may ask, and what a browser may do with the answer."""

from __future__ import annotations

import pytest
from fastapi.testclient import TestClient

from server.app import create_app
from server.guard import host_name
from server.settings import Settings


def client(url, **settings) -> TestClient:
    return TestClient(create_app(Settings(database=url, **settings)))


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.1:8000", "localhost:8000", "[::1]:8000", "LOCALHOST"])
def test_this_machine_is_answered(url, host):
    """Requests addressed to this machine are answered, with and without a port."""
    assert 200 == client(url).get("/healthz", headers={"host": host}).status_code


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example:8000", "localhost.evil.example", "10.0.0.7", ""]
)
def test_foreign_names_are_refused(url, host):
    """A name that somebody pointed at this machine is refused, with the remedy and the policy."""
    answer = client(url).get("/healthz", headers={"host": host})

    assert 421 == answer.status_code
    assert "--public-read" in answer.text
    assert "default-src 'none'" in answer.headers["content-security-policy"]


def test_public_read_answers_everyone(url):
    """With public reading allowed any name is answered."""
    assert 200 == client(url, public_read=True).get("/healthz", headers={"host": "bench.example"}).status_code


@pytest.mark.parametrize(
    ("header", "name"),
    [("a:80", "a"), ("a", "a"), ("[::1]:80", "[::1]"), ("[::1]", "[::1]"), ("a:b", "a:b"), (":80", ":80")],
)
def test_host_name(header, name):
    """A Host header is split from its port."""
    assert name == host_name(header)
