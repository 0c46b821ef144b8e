"""Templates in, answers out: what the pages share."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.metadata import version
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request
from fastapi.responses import HTMLResponse
from jinja2 import Environment, PackageLoader, StrictUndefined

from dashboards import marks, words
from dashboards.figures import Figure
from dashboards.frame import Frame
from harness.record import now
from server.app import queries
from server.queries import Queries
from server.schemas import RunState, Status

Asked = Annotated[Queries, Depends(queries)]

PLOTLY_FILE = f"plotly-{version('plotly')}.min.js"
"""Its version stands in the name, so that a browser may keep it for ever."""

_templates = Environment(
    loader=PackageLoader("dashboards"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_templates.globals |= {
    "words": words,
    "marks": marks,
    "Status": Status,
    "RunState": RunState,
    "plotly": f"/static/{PLOTLY_FILE}",
}


@dataclass(frozen=True)
class Chart:
    """A figure as JSON values, with its name and what it shows in a sentence."""

    id: str
    title: str
    sentence: str
    figure: Figure


def new_router() -> APIRouter:
    """Return a router for pages."""
    return APIRouter(include_in_schema=False, default_response_class=HTMLResponse)


def page(template: str, frame: Frame, status: int = 200, **context: Any) -> HTMLResponse:
    """Return a page; `now` is the moment at which it was made."""
    return HTMLResponse(_templates.get_template(template).render(now=now(), frame=frame, **context), status)


def part_of(name: str, part: str, seen: str, pulse: str) -> str:
    """Return the whole page, or with `?part=live` what its script asks for: its head alone where no row changed."""
    if part != "live":
        return f"{name}.html"
    return f"_{name}_head.html" if seen.partition("/")[0] == pulse.partition("/")[0] else f"_{name}_live.html"


def error_page(request: Request, status: int, text: str) -> HTMLResponse:
    """Return a page that says what was looked for and what to do."""
    return page("error.html", Frame(request.url.path), status, path=request.url.path, text=text)
