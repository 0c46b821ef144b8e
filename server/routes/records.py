"""One record: all of it, its samples, what its worker printed."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Response
from fastapi.responses import PlainTextResponse

from harness.record import Record
from server import answers, schemas
from server.routes import forms
from server.routes import reading_examples as examples
from server.routes.asked import Asked, RecordName, exact
from server.routes.forms import CSV, TEXT, Form, Plain
from server.routes.problems import responses

router = APIRouter(prefix="/api/v1/records/{record_id}", tags=["records"], dependencies=[Depends(exact)])

SAMPLE_COLUMNS: dict[str, type] = {"eager_s": float, "compiled_s": float, "eager_first": bool}


@router.get("", summary="One record", responses=responses(404, example=examples.RECORD))
def record(asked: Asked, record_id: RecordName) -> Record:
    """Everything observed about one case in one run, every sample included."""
    return asked.record(record_id)


@router.get(
    "/samples",
    summary="A record's samples",
    response_model=schemas.RecordSamples,
    responses=responses(404, example=examples.SAMPLES, forms=(CSV,)),
)
def samples(
    asked: Asked,
    response: Response,
    record_id: RecordName,
    form: Annotated[Plain, Query(alias="format", description="CSV has one row a pair.")] = Plain.JSON,
) -> Any:
    """Every pair of samples in the order in which they were taken, in seconds per step."""
    found = asked.samples(record_id)
    if form == Plain.JSON:
        return found
    pairs = zip(found.eager_s, found.compiled_s, found.eager_first, strict=True)
    rows = (dict(zip(SAMPLE_COLUMNS, pair, strict=True)) for pair in pairs)
    return forms.table(Form.CSV, "samples", SAMPLE_COLUMNS, rows, response)


@router.get(
    "/log",
    summary="What its worker printed",
    response_class=PlainTextResponse,
    responses=responses(404, form=TEXT, example=examples.LOG),
)
def log(asked: Asked, record_id: RecordName) -> str:
    """The head and the tail of what the worker printed, as plain text.

    What could steer a terminal is shown as a sign in its place: an escape as ␛.
    """
    return answers.log_text(asked.log(record_id))
