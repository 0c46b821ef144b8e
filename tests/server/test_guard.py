"""Who may ask, how often, and what a browser may do with the answer."""

from __future__ import annotations

import base64

import pytest
from fastapi.testclient import TestClient

from server.app import create_app
from server.guard import host_name
from server.settings import Reading, Settings
from tests.server.doors import Door, bearer
from tests.server.reading import rows

RUNS = "/api/v1/runs"


def client(url, **settings) -> TestClient:
    return TestClient(create_app(Settings(database=url, **settings)))


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.1:8000", "localhost:8000", "[::1]:8000", "LOCALHOST"])
def test_this_machine_is_answered(sqlite_url, host):
    """Requests addressed to this machine are answered, with and without a port."""
    assert 200 == client(sqlite_url).get("/healthz", headers={"host": host}).status_code


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example:8000", "localhost.evil.example", "10.0.0.7", ""]
)
def test_foreign_names_are_refused(sqlite_url, host):
    """A name that somebody pointed at this machine is refused, with the remedy and the policy."""
    answer = client(sqlite_url).get("/healthz", headers={"host": host})

    assert 421 == answer.status_code
    assert "--public-read" in answer.text
    assert "default-src 'none'" in answer.headers["content-security-policy"]


@pytest.mark.parametrize("way", [{"public_read": True}, {"read": Reading.TOKEN}])
def test_any_name_where_reading_is_settled(sqlite_url, way):
    """Where all may read, or reading needs a token, any name is answered; a list of names holds there as well."""
    host = {"host": "bench.example:8000"}

    assert 200 == client(sqlite_url, **way).get("/healthz", headers=host).status_code
    listed = client(sqlite_url, hosts="Bench.example, other.example", **way)
    assert 200 == listed.get("/healthz", headers=host).status_code
    assert 421 == listed.get("/healthz", headers={"host": "evil.example"}).status_code


@pytest.mark.parametrize("host", ["[", "a/b", "a@b", "a b", "[::1]x", "a:port"])
def test_what_is_no_host(sqlite_url, host):
    """A Host header that is no name of a host is refused, also where any name is answered."""
    assert 421 == client(sqlite_url, public_read=True).get(RUNS, headers={"host": host}).status_code


def test_named_host_is_answered(sqlite_url):
    """A name in the list is answered where otherwise only this machine's are: behind a proxy."""
    asked = client(sqlite_url, hosts=("bench.example",))

    assert 200 == asked.get(RUNS, headers={"host": "bench.example"}).status_code
    assert 200 == asked.get(RUNS, headers={"host": "localhost"}).status_code


@pytest.mark.parametrize(
    ("header", "name"),
    [("a:80", "a"), ("a", "a"), ("[::1]:80", "[::1]"), ("[::1]", "[::1]"), ("a:b", "a:b"), (":80", ":80")],
)
def test_host_name(header, name):
    """A Host header is split from its port."""
    assert name == host_name(header)


def test_reading_with_a_token(url):
    """Where reading needs a token, any scope opens it, and without one only the probes are answered."""
    door = Door(url, read=Reading.TOKEN)
    header = door.key("read")

    for path in (RUNS, "/metrics", "/api/v1/openapi.json", "/nowhere"):
        refused = door.client.get(path)
        assert (401, True) == (refused.status_code, "Reading needs a token" in refused.text)
        assert door.client.get(path, headers=header).status_code in (200, 404)
    assert [200, 200] == [door.client.get(path).status_code for path in ("/healthz", "/readyz")]


def test_browser_reads_with_a_password(sqlite_url):
    """A browser is asked for a password, which is the token; it opens reading and never writing."""
    door = Door(sqlite_url, read=Reading.TOKEN)
    secret = door.key("write")["Authorization"].removeprefix("Bearer ")
    basic = {"Authorization": "Basic " + base64.b64encode(f"anybody:{secret}".encode()).decode()}
    asked = door.client.get("/", headers={"accept": "text/html"})

    assert (401, True) == (asked.status_code, asked.headers["www-authenticate"].startswith("Basic "))
    assert "Bearer" == door.client.get(RUNS).headers["www-authenticate"]
    assert 200 == door.client.get(RUNS, headers=basic).status_code
    assert 401 == door.client.post(RUNS, headers=basic, content=b"{}").status_code
    for broken in ("Basic ???", "Basic " + base64.b64encode(b"\xff").decode(), "Basic"):
        assert 401 == door.client.get(RUNS, headers={"Authorization": broken}).status_code


def test_wrong_token_is_refused_where_none_is_needed(sqlite_url):
    """A token that is none is said to be none, also where anybody may read."""
    answer = client(sqlite_url).get(RUNS, headers=bearer("bench_" + "x" * 43))

    assert (401, "Bearer") == (answer.status_code, answer.headers["www-authenticate"])
    assert "is not known" in answer.json()["detail"]


@pytest.mark.parametrize(
    "path", ["/api/v1/runs?token=abc", "/?Access_Token=abc", "/runs?q={secret}", "/runs/{secret}", "/?q=%62ench_{rest}"]
)
def test_token_in_an_address_is_refused(sqlite_url, path):
    """A token in an address is refused with a sentence that does not repeat it."""
    door = Door(sqlite_url)
    secret = door.key("read")["Authorization"].removeprefix("Bearer ")

    answer = door.client.get(path.format(secret=secret, rest=secret.removeprefix("bench_")))

    assert 400 == answer.status_code
    assert "must not stand in an address" in answer.text
    assert secret not in answer.text


def test_rate_is_per_token_and_per_address(sqlite_url):
    """Each token and each address has a rate of its own; who is over it is told when to come back."""
    door = Door(sqlite_url, rate=12)
    one, two = door.key("read", "one"), door.key("read", "two")
    answers = [door.client.get(RUNS, headers=one) for _ in range(3)]

    assert [200, 200, 429] == [answer.status_code for answer in answers]
    assert "5" == answers[-1].headers["retry-after"]
    assert "Ask again in 5 s" in answers[-1].json()["detail"]
    assert [200, 200] == [door.client.get(RUNS, headers=header).status_code for header in (two, {})]
    assert [200] * 4 == [door.client.get("/healthz").status_code for _ in range(4)]


def test_guessing_is_slow(sqlite_url):
    """Who tries tokens is soon not listened to, while others at the same address are."""
    door = Door(sqlite_url, rate=12)
    tried = [door.client.get(RUNS, headers=bearer(f"bench_{n}")).status_code for n in range(3)]

    assert [401, 401, 429] == tried
    assert 200 == door.client.get(RUNS).status_code


def test_no_limit(sqlite_url):
    """A rate of 0 limits nobody."""
    asked = client(sqlite_url, rate=0)

    assert {200} == {asked.get("/healthz").status_code for _ in range(50)}


def test_use_is_noted(url):
    """When a token was last used is known."""
    door = Door(url)
    header = door.key("read")
    assert [(None,)] == rows(url, "SELECT last_used_at FROM token")
    door.client.get(RUNS, headers=header)

    assert [(None,)] != rows(url, "SELECT last_used_at FROM token")
