"""What a route may ask for: the store, the queries, a token with a scope."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Annotated

from fastapi import Depends, Request, Security
from fastapi.security import HTTPBearer

from server.arrivals import known_records
from server.auth import Scope, Token
from server.bodies import Body, received
from server.metrics import Metrics
from server.remarks import Remarks
from server.routes.problems import Refused
from server.store import Store

BEARER = HTTPBearer(
    scheme_name="token", description="A token of `bench token create`, as Authorization: Bearer.", auto_error=False
)


def store(request: Request) -> Store:
    found: Store = request.app.state.store
    return found


def metrics(request: Request) -> Metrics:
    found: Metrics = request.app.state.metrics
    return found


def remarks(request: Request) -> Remarks:
    found: Remarks = request.app.state.remarks
    return found


def arrived(request: Request) -> Callable[[str], list[str]]:
    return partial(known_records, request.app.state.engine)


def _with(scope: Scope) -> Callable[[Request], Token]:
    def found(request: Request) -> Token:
        token: Token | None = request.state.token
        if token is None:
            raise Refused(
                401,
                f"This needs a token with the scope {scope}, as the header Authorization: Bearer. "
                f"`bench token create NAME --scope {scope}` makes one.",
                {"WWW-Authenticate": "Bearer"},
            )
        if not token.scope.opens(scope):
            raise Refused(403, f"The token {token.name!r} has the scope {token.scope}; this needs {scope}.")
        return token

    return found


reading, writing = _with(Scope.READ), _with(Scope.WRITE)

Stored = Annotated[Store, Depends(store)]
Counted = Annotated[Metrics, Depends(metrics)]
Kept = Annotated[Remarks, Depends(remarks)]
Arrived = Annotated[Callable[[str], list[str]], Depends(arrived)]
"""Run id -> the ids of its records that are here."""
Reader = Annotated[Token, Depends(reading)]
"""Whose token it is; unlike plain reading this always needs one."""
Writer = Annotated[Token, Depends(writing)]
Received = Annotated[Body, Depends(received)]

LOCKED = [Security(BEARER), Depends(writing)]
"""Of routes that write. It stands on the route, so that a token is asked for before the body is read."""
