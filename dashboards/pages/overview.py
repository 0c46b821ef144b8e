"""Is the latest run all right?"""

from __future__ import annotations

from dataclasses import dataclass

from fastapi import Response

from dashboards import figures, marks, words
from dashboards.frame import Framed
from dashboards.pages.run import ROWS
from dashboards.rendering import Asked, new_router, page, part_of
from server import schemas
from server.queries import LATEST
from server.schemas import Status

router = new_router()

FEW = 10
"""Most rows under "needs a look"."""


@dataclass(frozen=True)
class Look:
    """A result that somebody should look at, and why."""

    result: schemas.Result
    why: str
    address: str
    """Of its run's page, with its row on it."""


@router.get("/")
def overview(asked: Asked, frame: Framed, part: str = "", seen: str = "") -> Response:
    if not asked.count():
        return page("empty.html", frame)
    pulse = asked.pulse(LATEST)
    if seen == pulse:
        return Response(status_code=204)
    run = asked.run()
    total, looks = asked.looks(run.id, marks.GRAVE, FEW)
    here = frame.at(f"/runs/{run.id}")
    large = run.planned > ROWS
    return page(
        part_of("overview", part, seen, pulse),
        frame,
        run=run,
        pulse=pulse,
        looks=[Look(each, why(each), here.address(only=each.configuration_id if large else "")) for each in looks],
        more=total - len(looks),
        whiskers=figures.whiskers([summary.speedup for summary in run.summaries]),
    )


def why(result: schemas.Result) -> str:
    """Return why somebody should look at a result: it failed, never ran, proves little, or is slower compiled."""
    if result.status == Status.MISSING:
        return "never ran"
    if marks.failed(result.status):
        return result.text or "no cause was given"
    grave = ", ".join(marks.FLAGS[flag] for flag in result.flags if flag in marks.GRAVE)
    slow = result.speedup is not None and result.valid and words.verdict(result.speedup) == "slower"
    slower = f"compiled is slower: {words.interval(result.speedup)}" if slow and result.speedup else ""
    return "; ".join(filter(None, (grave and f"passed, but {grave}", slower)))
