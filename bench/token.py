"""`bench token`: keys to the API, made and ended in the database itself."""

from __future__ import annotations

import re
import sys
from datetime import datetime, timedelta
from typing import Annotated

import typer

from bench import output
from bench.options import DATABASE, Database, Json
from harness.errors import UsageError
from harness.record import now
from server.auth import Scope, Token, Tokens

app = typer.Typer(add_completion=False, no_args_is_help=True, help="Keys to the API of a server.")

FOR_EVER = "never"
DAYS = {"h": 1 / 24, "d": 1, "w": 7, "y": 365}

Name = Annotated[str, typer.Argument(metavar="NAME", help="Of whom or what it is for, e.g. nightly-a100.")]
Opens = Annotated[Scope, typer.Option("--scope", help="read, write (and read), or admin (and all).")]
Expires = Annotated[str, typer.Option("--expires", metavar="TIME", help="12h, 90d, 6w, 1y, or never.")]


@app.command()
def create(
    name: Name, scope: Opens, expires: Expires = "90d", database: Database = DATABASE, as_json: Json = False
) -> None:
    """Make a token and show its secret, once."""
    lasts = lasting(expires)
    token, secret = _tokens(database).create(name, scope, lasts)
    if as_json:
        output.json_line("token", _values(token) | {"secret": secret})
        return
    until = f"until {token.expires_at:%Y-%m-%d %H:%M} UTC" if token.expires_at else "for ever"
    print(secret)
    print(f"Token {name!r} opens {scope} {until}. It is shown this once: keep it where it is safe.", file=sys.stderr)


@app.command("list")
def list_(database: Database = DATABASE, as_json: Json = False) -> None:
    """Show all tokens: whose, what they open, until when, when they were last used."""
    tokens, at = _tokens(database).known(), now()
    if as_json:
        for token in tokens:
            output.json_line("token", _values(token))
        return
    if not tokens:
        print("There is no token yet. Make one: bench token create NAME --scope write")
        return
    lines = [
        [
            token.name,
            token.scope.value,
            token.state(at).value,
            _day(token.created_at),
            _day(token.expires_at) or FOR_EVER,
            _day(token.last_used_at) or "not yet",
            token.id,
        ]
        for token in tokens
    ]
    output.rows(["name", "scope", "state", "created", "expires", "last used", "id"], lines)


@app.command()
def revoke(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name or id.")],
    database: Database = DATABASE,
    as_json: Json = False,
) -> None:
    """End a token at once. What it wrote stays."""
    token = _tokens(database).revoke(name)
    if as_json:
        output.json_line("token", _values(token))
        return
    print(f"Token {token.name!r} opens nothing since {token.revoked_at:%Y-%m-%d %H:%M} UTC.")


def lasting(text: str) -> timedelta | None:
    """Return how long a token lasts; None: for ever.

    Raises:
        UsageError: the text says no such time.
    """
    if text == FOR_EVER:
        return None
    found = re.fullmatch(r"(\d{1,5})([hdwy])", text)
    days = int(found[1]) * DAYS[found[2]] if found else 0
    if not 0 < days <= 36_500:
        raise UsageError(f"--expires {text}: write a number with h, d, w or y, e.g. 90d, up to 100y; or never.")
    return timedelta(days=days)


def _tokens(database: str) -> Tokens:
    from server import db  # here, so that --help connects to nothing

    return Tokens(db.connect(database))


def _values(token: Token) -> dict[str, str | None]:
    moments = {name: getattr(token, name) for name in ("created_at", "expires_at", "revoked_at", "last_used_at")}
    stated = {name: None if at is None else at.isoformat() for name, at in moments.items()}
    return {"id": token.id, "name": token.name, "scope": token.scope.value, "state": token.state(now()).value} | stated


def _day(at: datetime | None) -> str:
    return "" if at is None else f"{at:%Y-%m-%d %H:%M}"
