"""Two runs, held against each other."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Query

from server import schemas_comparison as schemas
from server.routes import reading_examples as examples
from server.routes.asked import LONGEST, Asked, exact
from server.routes.problems import responses

router = APIRouter(prefix="/api/v1", tags=["comparison"], dependencies=[Depends(exact)])

_NAMED = "A run: id, unique prefix of it, or `latest`."

Every = Annotated[bool, Query(alias="all", description="With the cases that stayed the same.")]
Across = Annotated[bool, Query(description="Compare across machines, device profiles and batch sizes too.")]
LikeThese = Annotated[bool, Query(description="With the means that models like these should expect, by families.")]


@router.get("/compare", summary="Two runs", responses=responses(404, 409, example=examples.COMPARISON))
def compare(
    asked: Asked,
    base: Annotated[str, Query(max_length=LONGEST, description=_NAMED, examples=["latest"])],
    head: Annotated[str, Query(max_length=LONGEST, description=f"{_NAMED} It is held against the base.")],
    across: Across = False,
    every: Every = False,
    like_these: LikeThese = False,
) -> schemas.RunComparison:
    """One verdict per case, by the rules of `bench compare`; what changed, what needs a look first.

    Regressed and improved need an interval that excludes no change, and the size of a floor; the same needs an interval
    within it. Everything else is inconclusive.
    """
    return asked.compare(base, head, across, every, like_these)
