"""Whether the service answers."""

from __future__ import annotations

from importlib.metadata import version

from fastapi import APIRouter, Depends

from server import schemas
from server.routes import reading_examples as examples
from server.routes.asked import Asked, exact
from server.routes.problems import responses

router = APIRouter(tags=["service"], dependencies=[Depends(exact)])


@router.get("/healthz", summary="Is it well?", responses=responses(example=examples.HEALTH))
def health(asked: Asked) -> schemas.Health:
    """Whether the service and its database answer."""
    return schemas.Health(status="ok", version=version("compile-bench"), runs=asked.count())
