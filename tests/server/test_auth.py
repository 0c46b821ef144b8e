"""Tokens: shown once, kept as a hash, ended by time or by hand."""

from __future__ import annotations

import hashlib
from datetime import timedelta

import pytest

from harness.errors import UsageError
from server import db
from server.auth import SECRET, Scope, Tokens, TokenState, Unauthorised
from tests.server.factory import BEGIN
from tests.server.reading import everything, rows


class Clock:
    def __init__(self) -> None:
        self.now = BEGIN

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def tokens(url, clock):
    engine = db.connect(url)
    yield Tokens(engine, clock)
    engine.dispose()


def test_secret_is_kept_as_a_hash(tokens, url):
    """A secret is a prefix and 256 random bits; the database holds its SHA-256 and nothing of itself."""
    token, secret = tokens.create("nightly", Scope.WRITE, timedelta(days=90))

    assert SECRET.fullmatch(secret)
    assert secret != tokens.create("other", Scope.WRITE, None)[1]
    assert secret.removeprefix("bench_") not in str(everything(url))
    assert [(hashlib.sha256(secret.encode()).hexdigest(),)] == rows(
        url, f"SELECT digest FROM token WHERE id = '{token.id}'"
    )


def test_token_is_found_by_its_secret(tokens):
    """The whole secret opens, and one that differs in its last letter does not."""
    token, secret = tokens.create("nightly", Scope.WRITE, None)
    near = secret[:-1] + ("A" if secret[-1] != "A" else "B")

    assert token == tokens.check(secret)
    for wrong in (near, secret + "x", "", "bench_", token.id):
        with pytest.raises(Unauthorised, match="not known"):
            tokens.check(wrong)


def test_hash_that_begins_alike_is_not_enough(tokens, url):
    """A token is found by the beginning of its hash, and opens only with all of it."""
    token, secret = tokens.create("nightly", Scope.WRITE, None)
    engine = db.connect(url)
    with db.writing(engine).begin() as connection:
        connection.exec_driver_sql(f"UPDATE token SET digest = '{token.id}{'0' * 48}'")
    engine.dispose()

    with pytest.raises(Unauthorised):
        tokens.check(secret)


def test_expired(tokens, clock):
    """A token opens until its last moment and not at it."""
    _, secret = tokens.create("nightly", Scope.WRITE, timedelta(days=1))
    clock.now = BEGIN + timedelta(days=1) - timedelta(microseconds=1)
    tokens.check(secret)
    clock.now = BEGIN + timedelta(days=1)

    with pytest.raises(Unauthorised, match="expired on 2026-08-13"):
        tokens.check(secret)
    assert TokenState.EXPIRED == tokens.known()[0].state(clock())


def test_revoked(tokens, clock):
    """A token that was revoked, by name or id, opens nothing from then on, and the moment stays."""
    token, secret = tokens.create("nightly", Scope.WRITE, None)
    tokens.revoke("nightly")
    clock.now += timedelta(days=1)

    assert BEGIN == tokens.revoke(token.id).revoked_at
    with pytest.raises(Unauthorised, match="'nightly' was revoked"):
        tokens.check(secret)


def test_names(tokens):
    """A name is one word and is of one token; one that is not there is answered with those near it."""
    tokens.create("nightly", Scope.READ, None)

    with pytest.raises(UsageError, match="there is a token 'nightly' already"):
        tokens.create("nightly", Scope.WRITE, None)
    with pytest.raises(UsageError, match="make a name"):
        tokens.create("two words", Scope.WRITE, None)
    with pytest.raises(UsageError, match="Close: nightly"):
        tokens.revoke("nihgtly")


def test_use_is_noted_once_a_minute(tokens, clock):
    """The last use is kept to the minute, so that a page that asks often does not write as often."""
    token, _ = tokens.create("nightly", Scope.READ, None)
    tokens.note_use(token)
    for later in (59, 60):
        clock.now = BEGIN + timedelta(seconds=later)
        tokens.note_use(tokens.known()[0])

        assert BEGIN + timedelta(seconds=60 if later == 60 else 0) == tokens.known()[0].last_used_at


@pytest.mark.parametrize(
    ("has", "wanted", "opens"),
    [
        ("read", "read", True),
        ("read", "write", False),
        ("write", "read", True),
        ("write", "admin", False),
        ("admin", "write", True),
    ],
)
def test_scopes(has, wanted, opens):
    """Each scope opens what those below it open."""
    assert opens is Scope(has).opens(Scope(wanted))
