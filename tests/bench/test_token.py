"""`bench token`: keys are made, listed and ended; the secret is shown once."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from bench import main
from bench.token import lasting
from harness.errors import UsageError
from server import db
from server.auth import SECRET, Scope, Tokens


@pytest.fixture
def token(url, capsys):
    """Runs `bench token` on a database, and returns exit code, stdout and stderr."""

    def run(*args):
        code = main.run(["token", *args, "--database", url])
        return code, *capsys.readouterr()

    return run


def test_secret_alone_on_stdout(token, url):
    """A new token's secret is all that goes to stdout, so that it can go into a file; it opens what was said."""
    code, out, err = token("create", "nightly", "--scope", "write", "--expires", "2d")
    found = Tokens(db.connect(url)).check(out.strip())

    assert (0, True) == (code, bool(SECRET.fullmatch(out.strip())))
    assert "shown this once" in err
    assert (Scope.WRITE, timedelta(days=2)) == (found.scope, found.expires_at - found.created_at)


def test_list(token):
    """The list shows what each token opens and whether it still does, and no secret."""
    assert "Make one: bench token create" in token("list")[1]
    secret = token("create", "nightly", "--scope", "write")[1].strip()
    token("create", "reader", "--scope", "read", "--expires", "never")
    _, out, _ = token("revoke", "nightly")
    assert "Token 'nightly' opens nothing since" in out

    lines = [line.split() for line in token("list")[1].splitlines()]
    assert [["nightly", "write", "revoked"], ["reader", "read", "valid"]] == [line[:3] for line in lines[1:]]
    assert "never" in lines[2]
    assert secret not in token("list", "--json")[1]


def test_json(token):
    """With --json each token is a line with its schema, moments in ISO 8601, null where absent."""
    made = json.loads(token("create", "reader", "--scope", "read", "--expires", "never", "--json")[1])
    listed = json.loads(token("list", "--json")[1])

    assert SECRET.fullmatch(made.pop("secret"))
    assert made == listed
    assert ("token", "valid", None, None) == tuple(
        listed[name] for name in ("type", "state", "expires_at", "last_used_at")
    )


def test_mistakes(token):
    """A name that is taken, a token that is not there, a time that is none: a sentence and exit code 2."""
    token("create", "nightly", "--scope", "write")

    for args, said in {
        ("create", "nightly", "--scope", "read"): "there is a token 'nightly' already",
        ("create", "other", "--scope", "all"): "'all' is not one of",
        ("revoke", "nigthly"): "Close: nightly",
        ("create", "x", "--scope", "read", "--expires", "soon"): "write a number with h, d, w or y",
    }.items():
        code, _, err = token(*args)
        assert (2, True) == (code, said in err), err


@pytest.mark.parametrize(
    ("text", "days"), [("12h", 0.5), ("90d", 90), ("2w", 14), ("1y", 365), ("100y", 36500), ("never", None)]
)
def test_lasting(text, days):
    """Hours, days, weeks and years."""
    assert (None if days is None else timedelta(days=days)) == lasting(text)


@pytest.mark.parametrize("text", ["0d", "90", "d", "-1d", "1.5d", "101y", "99999y", ""])
def test_no_time(text):
    """What is no time a token can last is refused."""
    with pytest.raises(UsageError, match="--expires"):
        lasting(text)
