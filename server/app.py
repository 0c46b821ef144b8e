"""The app: which database, which routes, and what stands around them."""

from __future__ import annotations

from importlib.metadata import version

from fastapi import FastAPI, Security

from server import db, description
from server.answering import Answering
from server.auth import Tokens
from server.guard import Guard
from server.metrics import Counting, Metrics
from server.queries import Queries
from server.remarks import Remarks
from server.routes import comparison, events, problems, records, remarks, runs, series, service, writing
from server.routes.access import BEARER
from server.routes.asked import queries as queries
from server.routes.problems import answer as answer
from server.routes.problems import sentence as sentence
from server.routes.problems import status_of as status_of
from server.settings import Reading, Settings
from server.store import Store


def create_app(settings: Settings) -> FastAPI:
    """Return the API on the database that the settings name, created or upgraded where needed.

    Raises:
        BenchError: the database cannot be opened.
    """
    app = FastAPI(
        title="compile-bench",
        summary="Does torch.compile work, and how much faster is it?",
        version=version("compile-bench"),
        responses=problems.refusals(*problems.EVERYWHERE),
        openapi_url="/api/v1/openapi.json",
        # Their pages load scripts from elsewhere, which the policy forbids.
        docs_url=None,
        redoc_url=None,
    )
    engine = db.connect(settings.database, may_upgrade=settings.upgrade)
    app.state.engine = engine
    app.state.queries = Queries(engine)
    app.state.store = Store(engine)
    app.state.remarks = Remarks(engine)
    app.state.listeners = events.Listeners()
    app.state.metrics = Metrics(app.state.queries)
    # The guard asks for the token; this says in the description where one is needed.
    locked = [Security(BEARER)] if settings.read == Reading.TOKEN else []
    for module in (runs, series, comparison, records, writing, remarks, events, service):
        app.include_router(module.router, dependencies=locked)
    app.include_router(service.probes)
    problems.install(app)
    description.install(app)
    app.add_middleware(Answering)
    app.add_middleware(Guard, settings=settings, tokens=Tokens(engine))
    app.add_middleware(Counting, metrics=app.state.metrics)  # the outermost: it counts those who were not let in, too
    return app


refuse = description.refuse
