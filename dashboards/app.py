"""The app that is served: the server's API and these pages."""

from __future__ import annotations

import gzip
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from fastapi.staticfiles import StaticFiles
from starlette.exceptions import HTTPException

from dashboards import pages, rendering
from harness.errors import BenchError
from server import app as server
from server.settings import Settings

_FOR_EVER = "public, max-age=31536000, immutable"


def create_app(settings: Settings) -> FastAPI:
    """Return the API with the pages on it.

    Raises:
        BenchError: the database cannot be opened.
    """
    app = server.create_app(settings)
    for router in pages.ROUTERS:
        app.include_router(router)
    app.add_api_route(f"/static/{rendering.PLOTLY_FILE}", plotly_js, include_in_schema=False)
    app.mount("/static", StaticFiles(packages=[("dashboards", "static")]))
    app.add_exception_handler(BenchError, _explain)
    app.add_exception_handler(HTTPException, _refuse)
    app.add_exception_handler(RequestValidationError, _refuse_values)
    return app


def plotly_js(request: Request) -> Response:
    """Return plotly.min.js of the installed package."""
    headers = {"Cache-Control": _FOR_EVER, "Vary": "Accept-Encoding"}
    if "gzip" in request.headers.get("accept-encoding", ""):
        return Response(_zipped(), media_type="text/javascript", headers=headers | {"Content-Encoding": "gzip"})
    return Response(_plotly().read_bytes(), media_type="text/javascript", headers=headers)


@cache
def _zipped() -> bytes:
    return gzip.compress(_plotly().read_bytes(), 6)


def _plotly() -> Traversable:
    return files("plotly").joinpath("package_data/plotly.min.js")


def _wants_json(request: Request) -> bool:
    return request.url.path.startswith("/api/") or request.url.path in ("/healthz", "/readyz", "/metrics")


async def _explain(request: Request, error: Exception) -> Response:
    assert isinstance(error, BenchError)
    if _wants_json(request):
        return server.answer(error)
    return rendering.error_page(request, server.status_of(error), str(error))


async def _refuse(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if _wants_json(request):
        return await server.refuse(request, error)
    text = "There is no such page." if error.status_code == 404 else str(error.detail)
    return rendering.error_page(request, error.status_code, text)


async def _refuse_values(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    text = server.sentence(error)
    if _wants_json(request):
        return JSONResponse({"detail": text}, 422)
    return rendering.error_page(request, 422, text)
