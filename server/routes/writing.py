"""Runs and their lines come in. Everything may be sent twice; a batch is stored as a whole or not at all."""

from __future__ import annotations

import json
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Response
from pydantic import BaseModel, ConfigDict, Field, model_validator

from harness.record import EndReason, RunEnd, new_run_id, now
from server import schemas
from server.arrivals import Receipt
from server.bodies import Body, Moment, lines_of, number_of, run_of
from server.description import LINE_SCHEMA, RUN_SCHEMA
from server.routes import examples
from server.routes.access import LOCKED, Arrived, Counted, Received, Stored, Writer
from server.routes.asked import exact
from server.routes.problems import Refused, refusals
from server.rows import Misfit
from server.writer import Kept

router = APIRouter(tags=["writing"], dependencies=[Depends(exact)])

RunId = Annotated[str, Path(description="The full id of the run.", examples=[examples.RUN_ID])]


class Opened(schemas.Answer):
    """A run that is here now."""

    id: str
    new: bool
    """False: it was here before."""
    planned: int


class Taken(schemas.Answer):
    """What became of a batch. Sent again, its records are `known`."""

    upload: str
    """Id under which it is kept who sent the batch, and when."""
    lines: int
    new: int
    known: int
    late: int
    """Refused: a newer attempt of the case was begun or recorded."""


class Known(schemas.Answer):
    """What is here of a run."""

    run: str
    records: tuple[str, ...]
    """Their ids, in the order in which they came in."""


class Amendment(BaseModel):
    """What a run did not say of itself, or that it ended."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        json_schema_extra={
            "examples": [
                {"commit": "4f2a91c", "trigger": "nightly"},
                {"ended_at": "2026-08-12T05:00:00Z", "end_reason": "interrupted"},
            ]
        },
    )

    branch: str | None = Field(None, min_length=1, max_length=200)
    """Only while the run has no results: they belong to the series of a branch."""
    commit: str | None = Field(None, min_length=1, max_length=200)
    trigger: str | None = Field(None, min_length=1, max_length=200)
    fork_point: str | None = Field(None, min_length=1, max_length=200)
    ended_at: Moment | None = None
    end_reason: EndReason | None = None

    @model_validator(mode="after")
    def _whole(self) -> Amendment:
        if (self.ended_at is None) != (self.end_reason is None):
            raise ValueError("ended_at and end_reason go together")
        if not self.model_fields_set or all(getattr(self, name) is None for name in type(self).model_fields):
            raise ValueError("nothing is said; name one of " + ", ".join(type(self).model_fields))
        if any("\0" in (getattr(self, name) or "") for name in ("branch", "commit", "trigger", "fork_point")):
            raise ValueError("a null character is no text")
        return self

    @property
    def said(self) -> dict[str, str]:
        words = self.model_dump(include={"branch", "commit", "trigger", "fork_point"})
        return {name: value for name, value in words.items() if value is not None}


def _takes(content: str, example: Any, schema: Any) -> dict[str, Any]:
    """Return the description of a body that the route reads itself, plain or gzipped."""
    return {
        "requestBody": {
            "required": True,
            "description": "Plain, or gzipped with `Content-Encoding: gzip`.",
            "content": {content: {"schema": schema, "example": example}},
        }
    }


@router.post(
    "/api/v1/runs",
    status_code=201,
    dependencies=LOCKED,
    responses=refusals(403, 409, 413, 415, 422)
    | {200: {"model": Opened, "description": "It was here before; nothing changed but a plan that grew."}},
    openapi_extra=_takes("application/json", examples.RUN, RUN_SCHEMA),
    summary="Open a run",
)
def open_run(store: Stored, body: Received, response: Response) -> Opened:
    """Keep a run with its whole plan: the first line of its journal. A resumed run is opened again."""
    run = run_of(body)
    new = store.admit(run)
    response.status_code = 201 if new else 200
    return Opened(id=run.id, new=new, planned=len(run.plan))


@router.get(
    "/api/v1/runs/{run}/records",
    responses=refusals(404, 422),
    summary="What is here of a run",
)
def known_records(arrived: Arrived, run: RunId) -> Known:
    """The ids of the records that are here: what a client asks before it sends the others."""
    return Known(run=run, records=tuple(arrived(run)))


@router.post(
    "/api/v1/runs/{run}/records",
    dependencies=LOCKED,
    responses=refusals(403, 404, 413, 415, 422),
    openapi_extra=_takes("application/x-ndjson", "\n".join(json.dumps(line) for line in examples.LINES), LINE_SCHEMA),
    summary="Send lines of a run",
)
def take_records(store: Stored, counted: Counted, token: Writer, run: RunId, body: Received) -> Taken:
    """Keep a batch of lines of the journal, JSON Lines: starts, stages, records, ends. All of them, or none.

    Repeats are harmless: a record has an id that is derived from its run, case and attempt.
    """
    lines = lines_of(body, run)
    receipt = _receipt(body, token.id)
    try:
        kept = store.receive(run, lines, receipt)
    except Misfit as error:
        if (number := number_of(lines, error.case_id)) is not None:
            raise Refused(422, f"line {number}: {error}") from error
        raise
    counted.count(kept)
    counts = {each.value: kept.count(each) for each in Kept}
    return Taken(upload=receipt.id, lines=len(lines), **counts)


@router.patch(
    "/api/v1/runs/{run}",
    status_code=204,
    dependencies=LOCKED,
    responses=refusals(403, 404, 409, 422),
    summary="Say more of a run",
)
def amend_run(store: Stored, run: RunId, amendment: Amendment) -> None:
    """Say what a run did not say of itself, or that it ended. What it said is not changed."""
    end = None
    if amendment.ended_at is not None and amendment.end_reason is not None:
        end = RunEnd(run_id=run, at=amendment.ended_at, reason=amendment.end_reason)
    store.amend(run, amendment.said, end)


def _receipt(body: Body, token_id: str) -> Receipt:
    return Receipt(
        id=new_run_id(),
        token_id=token_id,
        received_at=now(),
        source="api",
        format="journal",
        digest=body.digest,
        bytes=len(body.content),
    )
