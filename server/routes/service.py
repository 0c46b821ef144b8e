"""The service itself: is it up, is it ready, what did it do, whose token is this?"""

from __future__ import annotations

from datetime import datetime
from importlib.metadata import version

from fastapi import APIRouter, Depends, Request, Response, Security
from prometheus_client import CONTENT_TYPE_LATEST

from server import db, schemas
from server.auth import Scope
from server.migrations import HEAD
from server.routes.access import BEARER, Counted, Reader
from server.routes.asked import exact
from server.routes.problems import refusals

probes = APIRouter(tags=["service"], dependencies=[Depends(exact)])
"""What never needs a token; see `guard.PROBES`."""

router = APIRouter(tags=["service"], dependencies=[Depends(exact)])


class Ready(schemas.Answer):
    """The database answers, and is as this version needs it."""

    status: str
    database_schema: str


class Whose(schemas.Answer):
    """A token as it is kept: all but its secret."""

    name: str
    scope: Scope
    expires_at: datetime | None


@probes.get("/healthz", summary="Is the process up?")
def health() -> schemas.Health:
    """Whether the process answers. Of the database it says nothing: one that is away is no reason to start anew."""
    return schemas.Health(status="ok", version=version("compile-bench"))


@probes.get("/readyz", summary="Can it do its work?")
def ready(request: Request) -> Ready:
    """Whether the database answers and its schema is the one of this version."""
    db.check(request.app.state.engine)
    return Ready(status="ready", database_schema=HEAD)


@router.get(
    "/metrics",
    response_class=Response,
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}, "description": "Prometheus text."}},
    summary="Counters for Prometheus",
)
def metrics(counted: Counted) -> Response:
    """Counters of this process: requests by route and status, durations, records that came in; and the runs."""
    return Response(counted.text(), media_type=CONTENT_TYPE_LATEST)


@router.get("/api/v1/token", dependencies=[Security(BEARER)], responses=refusals(403), summary="Whose token?")
def whose(token: Reader) -> Whose:
    """The token with which this is asked: a client looks before it works for a night."""
    return Whose(name=token.name, scope=token.scope, expires_at=token.expires_at)
