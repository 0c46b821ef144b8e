"""The app: which database, which routes, and what stands around them."""

from __future__ import annotations

from importlib.metadata import version

from fastapi import FastAPI

from server import db
from server.answering import Answering
from server.guard import Guard
from server.queries import Queries
from server.routes import comparison, problems, records, runs, series, service
from server.routes.asked import queries as queries
from server.routes.problems import sentence as sentence
from server.routes.problems import status_of as status_of
from server.settings import Settings


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
    for module in (service, runs, series, comparison, records):
        app.include_router(module.router)
    problems.install(app)
    app.add_middleware(Answering)
    app.add_middleware(Guard, public=settings.public_read)
    return app
