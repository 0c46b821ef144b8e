"""What each number means."""

from __future__ import annotations

from fastapi.responses import HTMLResponse

from dashboards.frame import Framed
from dashboards.rendering import new_router, page

router = new_router()


@router.get("/methods")
def methods(frame: Framed) -> HTMLResponse:
    return page("methods.html", frame)
