"""The description of the API, beyond what its routes say of themselves."""

from __future__ import annotations

import re
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exception_handlers import http_exception_handler
from pydantic import TypeAdapter
from starlette.exceptions import HTTPException

from harness.record import Run
from harness.wire import SENT
from server.routes.problems import Problem

SENT_PREFIX = "Sent"
"""Before the names of what is sent: a `Run` that comes in is not the `Run` that is answered."""

RUN_SCHEMA = {"$ref": f"#/components/schemas/{SENT_PREFIX}Run"}
LINE_SCHEMA = {"$ref": f"#/components/schemas/{SENT_PREFIX}Line"}


def install(app: FastAPI) -> None:
    """Have an app describe the bodies that its routes read themselves, and each refusal as what it is."""
    plain = app.openapi

    def complete() -> dict[str, Any]:
        if app.openapi_schema is None:
            components = plain()["components"]["schemas"]
            components |= _sent(f"{SENT_PREFIX}Run", TypeAdapter(Run)) | _sent(f"{SENT_PREFIX}Line", SENT)
            components["HTTPValidationError"] = Problem.model_json_schema()
            components.pop("ValidationError", None)
        assert app.openapi_schema is not None
        return app.openapi_schema

    app.add_exception_handler(HTTPException, refuse)
    app.openapi = complete  # type: ignore[method-assign]  # the way that FastAPI's documentation shows


async def refuse(request: Request, error: Exception) -> Response:
    """Answer what no route answers."""
    assert isinstance(error, HTTPException)
    if error.status_code == 405 and (known := methods(request.app, request.scope["path"])):
        error.headers = {"Allow": ", ".join(known)}
    return await http_exception_handler(request, error)


def methods(app: FastAPI, path: str) -> list[str]:
    """Return what an address can be asked: all of it, though several routes share the address."""
    found = [
        method.upper()
        for template, operations in app.openapi()["paths"].items()
        if re.fullmatch(re.sub(r"\\\{\w+\\\}", "[^/]+", re.escape(template)), path)
        for method in operations
    ]
    return sorted(found)


def _sent(name: str, adapter: TypeAdapter[Any]) -> dict[str, Any]:
    """Return the components that describe a type, by name."""
    found = adapter.json_schema(ref_template=f"#/components/schemas/{SENT_PREFIX}{{model}}")
    parts = {f"{SENT_PREFIX}{part}": schema for part, schema in found.pop("$defs", {}).items()}
    return {**parts, name: found}
