"""Tokens: keys to the API, shown once and kept as a hash.

A secret is `bench_` and 256 random bits, so its SHA-256 needs no salt and no stretching. The first 16 digits of the
hash are the token's id: it is found by them, the rest is compared in constant time, and people can name it without
saying it.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from sqlalchemy import Engine, insert, select, update
from sqlalchemy.exc import IntegrityError

from harness import record
from harness.errors import BenchError, UsageError, close_to
from server import db
from server.tables import Token as Row

PREFIX = "bench_"
"""By which a person, or a scanner of commits, sees what a string is."""

SECRET = re.compile(rf"{PREFIX}[A-Za-z0-9_-]{{43}}")
"""What a secret looks like wherever it stands."""

NAME = re.compile(r"[\w.@-]{1,64}")

USE_NOTED_EVERY = timedelta(minutes=1)
"""A page asks often, and each note is a write."""


class Unauthorised(BenchError):
    """The token is no key here, or no longer."""


class Scope(StrEnum):
    """What a token opens; each opens what those before it do."""

    READ = "read"
    WRITE = "write"
    ADMIN = "admin"

    def opens(self, wanted: Scope) -> bool:
        order = list(Scope)
        return order.index(self) >= order.index(wanted)


class TokenState(StrEnum):
    VALID = "valid"
    EXPIRED = "expired"
    REVOKED = "revoked"


@dataclass(frozen=True)
class Token:
    """A token as it is kept: all but its secret."""

    id: str
    name: str
    scope: Scope
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None
    last_used_at: datetime | None

    def state(self, at: datetime) -> TokenState:
        if self.revoked_at is not None:
            return TokenState.REVOKED
        if self.expires_at is not None and self.expires_at <= at:
            return TokenState.EXPIRED
        return TokenState.VALID


class Tokens:
    """The tokens of one database. Safe to use from several threads."""

    def __init__(self, engine: Engine, clock: Callable[[], datetime] = record.now) -> None:
        self._engine = engine
        self._clock = clock

    def create(self, name: str, scope: Scope, lasts: timedelta | None) -> tuple[Token, str]:
        """Make a token and return it with its secret, which is kept nowhere.

        Args:
            lasts: None: for ever.

        Raises:
            UsageError: the name is taken, also by a token that was revoked, or is no name.
        """
        if not NAME.fullmatch(name):
            raise UsageError(f"token name {name!r}: up to 64 letters, digits and . _ @ - make a name.")
        secret = PREFIX + secrets.token_urlsafe(32)
        digest = _digest(secret)
        at = self._clock()
        values = {
            "id": digest[:16],
            "name": name,
            "scope": scope.value,
            "digest": digest,
            "created_at": at,
            "expires_at": None if lasts is None else at + lasts,
        }
        with db.explained(self._engine.url):
            try:
                with db.writing(self._engine).begin() as connection:
                    connection.execute(insert(Row).values(**values))
                    found = connection.execute(select(*_COLUMNS).where(Row.id == digest[:16])).one()
            except IntegrityError:
                raise UsageError(
                    f"there is a token {name!r} already. Choose another name: what it wrote bears the old one."
                ) from None
        return _token(found), secret

    def known(self) -> list[Token]:
        """Return all tokens, the oldest first."""
        with db.explained(self._engine.url), self._engine.begin() as connection:
            return [_token(row) for row in connection.execute(select(*_COLUMNS).order_by(Row.created_at, Row.id))]

    def revoke(self, name: str) -> Token:
        """End a token, named by name or id, at once; one that was revoked before stays as it is.

        Raises:
            UsageError: there is none.
        """
        with db.explained(self._engine.url), db.writing(self._engine).begin() as connection:
            named = (Row.name == name) | (Row.id == name)
            connection.execute(update(Row).where(named, Row.revoked_at.is_(None)).values(revoked_at=self._clock()))
            found = connection.execute(select(*_COLUMNS).where(named)).one_or_none()
            names = connection.scalars(select(Row.name)).all() if found is None else []
        if found is None:
            raise UsageError(f"there is no token {name!r}.{close_to(name, names)} See `bench token list`.")
        return _token(found)

    def check(self, secret: str) -> Token:
        """Return the token with this secret.

        Raises:
            Unauthorised: it is unknown, expired or revoked.
            BenchError: the database does not answer.
        """
        digest = _digest(secret)
        with db.explained(self._engine.url), self._engine.begin() as connection:
            found = connection.execute(select(*_COLUMNS, Row.digest).where(Row.id == digest[:16])).one_or_none()
        if found is None or not hmac.compare_digest(found.digest, digest):
            raise Unauthorised("This token is not known here. `bench token create` makes one.")
        token = _token(found)
        state = token.state(self._clock())
        if state == TokenState.REVOKED:
            raise Unauthorised(f"The token {token.name!r} was revoked. Ask for another.")
        if state == TokenState.EXPIRED:
            raise Unauthorised(f"The token {token.name!r} expired on {token.expires_at:%Y-%m-%d}. Ask for another.")
        return token

    def note_use(self, token: Token) -> None:
        """Keep when a token was last used, to the minute."""
        at = self._clock()
        if token.last_used_at is not None and at - token.last_used_at < USE_NOTED_EVERY:
            return
        with db.explained(self._engine.url), db.writing(self._engine).begin() as connection:
            connection.execute(update(Row).where(Row.id == token.id).values(last_used_at=at))


_COLUMNS = (Row.id, Row.name, Row.scope, Row.created_at, Row.expires_at, Row.revoked_at, Row.last_used_at)


def _token(row: Any) -> Token:
    return Token(
        id=row.id,
        name=row.name,
        scope=Scope(row.scope),
        created_at=row.created_at,
        expires_at=row.expires_at,
        revoked_at=row.revoked_at,
        last_used_at=row.last_used_at,
    )


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()
