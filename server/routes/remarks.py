"""Remarks about runs and series: what happened there, in somebody's words."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Depends, Path, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from server.auth import Scope
from server.bodies import Moment
from server.reading.cursor import Page
from server.remarks import Annotation, Kind
from server.routes import forms
from server.routes.access import LOCKED, Kept, Writer
from server.routes.asked import Limit, exact
from server.routes.examples import RUN_ID
from server.routes.problems import Refused, refusals

router = APIRouter(prefix="/api/v1/annotations", tags=["annotations"], dependencies=[Depends(exact)])

MOST_KEY = (1 << 63) - 1

SeriesKey = Annotated[int, Field(ge=1, le=MOST_KEY)]


class Remark(BaseModel):
    """A remark about a run or about a series: one of the two."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        json_schema_extra={
            "examples": [{"run": RUN_ID, "kind": "change", "text": "Driver 580 instead of 570, see OPS-12."}]
        },
    )

    run: str | None = Field(None, max_length=36)
    """The full id of the run."""
    series: SeriesKey | None = None
    at: Moment | None = None
    """Left out: when the run started, or the newest point of the series."""
    kind: Kind = Kind.NOTE
    text: str = Field(min_length=1, max_length=4000)

    @field_validator("run", "text")
    @classmethod
    def _is_text(cls, value: str | None) -> str | None:
        if value is not None and ("\0" in value or not value.strip()):
            raise ValueError("is empty, or has a null character in it")
        return value

    @model_validator(mode="after")
    def _about_one(self) -> Remark:
        if (self.run is None) == (self.series is None):
            raise ValueError("name a run or a series, one of the two")
        return self


@router.post(
    "",
    status_code=201,
    dependencies=LOCKED,
    responses=refusals(403, 404, 422),
    summary="Make a remark",
)
def add(remarks: Kept, token: Writer, remark: Remark) -> Annotation:
    """Keep a remark about a run or a series. Its author is the name of the token."""
    return remarks.add(**dict(remark), author=token.name)


@router.get("", responses=refusals(422), summary="Remarks")
def page(
    remarks: Kept,
    request: Request,
    response: Response,
    run: Annotated[str | None, Query(max_length=36, description="The full id of a run.", examples=[RUN_ID])] = None,
    series: Annotated[int | None, Query(ge=1, le=MOST_KEY, description="The key of a series.")] = None,
    limit: Limit = 100,
    cursor: Annotated[UUID | None, Query(description="From the Link header of the page before.")] = None,
) -> list[Annotation]:
    """Remarks, the newest first. The header `Link` holds the address of the next page, where there is one."""
    found, more = remarks.page(run=run, series=series, limit=limit, after=None if cursor is None else str(cursor))
    forms.link(request, response, Page(found, more))
    return found


@router.delete(
    "/{annotation}",
    status_code=204,
    dependencies=LOCKED,
    responses=refusals(403, 404, 422),
    summary="Take a remark back",
)
def remove(
    remarks: Kept, token: Writer, annotation: Annotated[UUID, Path(description="The id of the remark.")]
) -> None:
    """Remove a remark: one's own, or with the scope admin anybody's."""
    found = remarks.find(str(annotation))
    if found.author != token.name and not token.scope.opens(Scope.ADMIN):
        raise Refused(
            403, f"The author of this remark is {found.author!r}. To remove it needs a token with the scope admin."
        )
    remarks.remove(found.id)
