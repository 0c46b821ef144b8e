"""A run as it goes on, as server-sent events.

A listener waits in the event loop and holds no thread; each look at the database is a short piece of work of the thread
pool. How many may listen is bounded, so that pages left open cannot use the service up.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from typing import Annotated

import anyio
from fastapi import APIRouter, Depends, Header, Path, Request, Response
from fastapi.responses import StreamingResponse
from fastapi.sse import KEEPALIVE_COMMENT, EventSourceResponse, format_sse_event
from starlette.concurrency import run_in_threadpool

from harness.errors import BenchError
from server.live import Follower, Kind, RecordNews, StageNews, Standing, place
from server.queries import LATEST
from server.routes.asked import Asked, exact
from server.routes.problems import Refused, refusals
from server.schemas import RunState

router = APIRouter(tags=["runs"], dependencies=[Depends(exact)])

LOOK_EVERY_S = 1.0
HEARTBEAT_S = 15.0
"""Proxies close what is silent for a minute or so."""

MOST_LISTENERS = 100
"""Of one process: each costs three short statements a second."""

RETRY_MS = 3000
"""A browser that was cut off comes back after so long."""

EXAMPLE = """\
event: planned
data: {"run":"0194a3f2-1111-7000-8000-000000000001","state":"running","planned":2,"skipped":0,"passed":0,"missing":2,"crashed":0}

event: stage
data: {"case_id":"4e7f8e92611a1293","suite":"toy","model":"mlp","label":"inference fp32","attempt":1,"stage":"compile","since":"2026-08-12T01:00:07Z"}

event: finished
data: {"run":"0194a3f2-1111-7000-8000-000000000001","state":"finished","planned":2,"skipped":0,"passed":2,"missing":0,"crashed":0}
id: 17-over

"""  # noqa: E501


EVENT = {
    "type": "object",
    "properties": {
        "event": {"type": "string", "enum": [kind.value for kind in Kind]},
        "data": {
            "type": "string",
            "contentMediaType": "application/json",
            "contentSchema": {"oneOf": [kind.model_json_schema() for kind in (Standing, StageNews, RecordNews)]},
        },
        "id": {"type": "string"},
        "retry": {"type": "integer"},
    },
}
"""One event, for the description of the API."""


class Listeners:
    """How many listen to this process."""

    def __init__(self, most: int = MOST_LISTENERS) -> None:
        self.count = 0
        self.most = most


async def _place(request: Request) -> AsyncIterator[None]:
    """Hold one of the places for a listener until the answer has ended. In the event loop: counts are exact."""
    listeners: Listeners = request.app.state.listeners
    if listeners.count >= listeners.most:
        raise Refused(
            503, f"{listeners.count} listen already. Ask again later, or for the run itself.", {"Retry-After": "30"}
        )
    listeners.count += 1
    try:
        yield
    finally:
        listeners.count -= 1


@router.get(
    "/api/v1/runs/{run}/events",
    dependencies=[Depends(_place)],
    response_class=StreamingResponse,
    responses=refusals(404, 422)
    | {
        200: {
            "description": "Events `planned`, `stage`, `record`, `finished`; comments in between.",
            "content": {"text/event-stream": {"itemSchema": EVENT, "example": EXAMPLE}},
        },
        204: {"description": "The run is over, and the listener has heard all of it: a browser stops asking."},
    },
    summary="A run as it goes on",
)
def events(
    asked: Asked,
    request: Request,
    run: Annotated[str, Path(description="The id of a run, a unique prefix of it, or `latest`.", examples=[LATEST])],
    last_event_id: Annotated[
        str | None, Header(description="The last `id` that was heard: goes on after it. Browsers send it.")
    ] = None,
) -> Response:
    """Server-sent events until the run ends: `planned` first, then each `stage` and `record`, at last `finished`.

    Results that are there already come first, each once.
    """
    _, run_id, state = asked.standing(run)
    after, heard_the_end = place(last_event_id)
    if heard_the_end and state != RunState.RUNNING:
        return Response(status_code=204)
    follower = Follower(asked, request.app.state.engine, run_id, after)
    return EventSourceResponse(_told(follower), headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"})


async def _told(follower: Follower) -> AsyncIterator[bytes]:
    yield format_sse_event(retry=RETRY_MS)
    heard_at = time.monotonic()
    while not follower.over:
        try:
            news = await run_in_threadpool(follower.look)
        except BenchError as error:  # the listener comes back, and then the database may, too
            yield format_sse_event(comment=str(error))
            return
        for event in news:
            yield format_sse_event(event=event.kind, data_str=event.data.model_dump_json(), id=event.id)
        if news:
            heard_at = time.monotonic()
        elif time.monotonic() - heard_at >= HEARTBEAT_S:
            heard_at = time.monotonic()
            yield KEEPALIVE_COMMENT
        if not follower.over:
            await anyio.sleep(LOOK_EVERY_S)
