"""The API: runs, their results, one record. Reads only."""

from __future__ import annotations

from importlib.metadata import version
from typing import Annotated

from fastapi import APIRouter, Depends, FastAPI, Query, Request
from fastapi.responses import JSONResponse

from harness.errors import BenchError
from harness.record import Record
from server import db, schemas
from server.guard import Guard
from server.queries import NotFound, Queries, Sort
from server.settings import Settings

router = APIRouter()


class Problem(schemas.Answer):
    """Why there is no answer, and what to do."""

    detail: str


_MISSING: dict[int | str, dict[str, object]] = {404: {"model": Problem, "description": "No run or record fits."}}


def create_app(settings: Settings) -> FastAPI:
    """Return the API on the database that the settings name, created or upgraded where needed.

    Raises:
        BenchError: the database cannot be opened.
    """
    app = FastAPI(
        title="compile-bench",
        summary="Does torch.compile work, and how much faster is it?",
        version=version("compile-bench"),
        openapi_url="/api/v1/openapi.json",
        # Their pages load scripts from elsewhere, which the policy forbids.
        docs_url=None,
        redoc_url=None,
    )
    app.state.queries = Queries(db.connect(settings.database, may_upgrade=settings.upgrade))
    app.include_router(router)
    app.add_exception_handler(BenchError, _explain)
    app.add_middleware(Guard, public=settings.public_read)
    return app


def queries(request: Request) -> Queries:
    found: Queries = request.app.state.queries
    return found


def status_of(error: BenchError) -> int:
    """Return the HTTP status of an error: what was asked for is not there, or the database is not."""
    return 404 if isinstance(error, NotFound) else 503


async def _explain(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, BenchError)
    return JSONResponse({"detail": str(error)}, status_of(error))


Asked = Annotated[Queries, Depends(queries)]


@router.get("/healthz", tags=["service"])
def health(asked: Asked) -> schemas.Health:
    """Whether the service and its database answer."""
    return schemas.Health(status="ok", version=version("compile-bench"), runs=asked.count())


@router.get("/api/v1/runs", tags=["runs"])
def runs(
    asked: Asked,
    limit: Annotated[int, Query(ge=1, le=500)] = 50,
    offset: Annotated[int, Query(ge=0, le=1_000_000_000)] = 0,
) -> list[schemas.Run]:
    """Runs, newest first, with their counts and their summaries per suite and configuration."""
    return asked.runs(limit, offset)


@router.get("/api/v1/runs/{run}", tags=["runs"], responses=_MISSING)
def run(asked: Asked, run: str) -> schemas.RunDetail:
    """One run by its id, a unique prefix of it, or `latest`; with what is in hand while it goes on."""
    return asked.run(run)


@router.get("/api/v1/runs/{run}/results", tags=["runs"], responses=_MISSING)
def results(
    asked: Asked,
    run: str,
    sort: Annotated[Sort, Query(description="Missing values come last in both directions.")] = Sort.PLAN,
    descending: bool = False,
) -> list[schemas.Result]:
    """Every planned case of a run with its newest result."""
    return asked.results(run, sort, descending)


@router.get("/api/v1/records/{record_id}", tags=["records"], responses=_MISSING)
def record(asked: Asked, record_id: str) -> Record:
    """Everything observed about one case in one run, every sample included."""
    return asked.record(record_id)
