"""Bodies of requests that write: received within limits, unpacked within limits, read line by line.

Everything is checked before anything is stored; what is wrong is said with the number of its line.
"""

from __future__ import annotations

import hashlib
import json
import uuid
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated, NoReturn

from fastapi import Request
from pydantic import AfterValidator, BeforeValidator, ValidationError

from harness.record import Record, Run, RunEnd, now, record_id
from harness.wire import SENT, SentLine
from server.routes.problems import Refused

RECEIVED_BYTES = 16 << 20
"""Most bytes of a body as they travel."""

UNPACKED_BYTES = 64 << 20
"""Most bytes of a body unpacked; a record with all its samples takes four to fifty kilobytes."""

RATIO = 200
"""Unpacked / received. Journals reach thirty; what reaches more is made to fill the memory."""

RATIO_FROM_BYTES = 1 << 20
"""Below this no ratio does harm."""

LINE_BYTES = 8 << 20
"""Most bytes of one line: the plan of 2,608 cases takes 2.5 million."""

LINES = 20_000

AHEAD = timedelta(days=1)
"""A moment further in the future comes from a clock that is wrong, and would keep a run alive until then."""

MOST_ATTEMPT = 1_000_000

_TYPES = ("application/json", "application/x-ndjson", "application/jsonl", "application/octet-stream", "text/plain")
_CHUNK = 1 << 20


@dataclass(frozen=True)
class Body:
    """A body as it came in."""

    content: bytes
    zipped: bool

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.content).hexdigest()


async def received(request: Request) -> Body:
    """Return the body of a request.

    Raises:
        Refused: it is too large, or of a type or an encoding that is not taken.
    """
    kind = request.headers.get("content-type", _TYPES[0]).partition(";")[0].strip().lower()
    if kind not in _TYPES:
        raise Refused(415, f"Content-Type {kind!r} is not taken. Send application/json or application/x-ndjson.")
    encoding = request.headers.get("content-encoding", "identity").strip().lower()
    if encoding not in ("gzip", "identity"):
        raise Refused(415, f"Content-Encoding {encoding!r} is not taken. Send gzip, or the text as it is.")
    content = bytearray()
    async for part in request.stream():
        content += part
        if len(content) > RECEIVED_BYTES:
            raise Refused(413, f"The body is larger than {_mebibytes(RECEIVED_BYTES)}. Send it in several batches.")
    return Body(bytes(content), encoding == "gzip")


def unpacked(body: Body) -> bytes:
    """Return a body as text.

    Raises:
        Refused: it is no gzip, ends in the middle, or grows beyond all measure.
    """
    if not body.zipped:
        return body.content
    found, left = bytearray(), body.content
    while True:
        reader = zlib.decompressobj(wbits=31)
        try:
            left = _member(reader, left, found, len(body.content))
        except zlib.error as error:
            raise Refused(422, f"The body is not gzip, as its Content-Encoding says ({error}).") from None
        if not left:
            return bytes(found)


def _member(reader: zlib._Decompress, left: bytes, found: bytearray, received_bytes: int) -> bytes:
    """Unpack one member of a gzip file in steps that cannot fill the memory, and return what follows it."""
    while not reader.eof:
        part = reader.decompress(left, _CHUNK)
        left = reader.unconsumed_tail
        if not part and not left and not reader.eof:
            raise Refused(422, "The body ends in the middle of its gzip stream. Send it again.")
        found += part
        if len(found) > UNPACKED_BYTES:
            raise Refused(
                413, f"The body is larger than {_mebibytes(UNPACKED_BYTES)} unpacked. Send it in several batches."
            )
        if len(found) > max(RATIO_FROM_BYTES, RATIO * received_bytes):
            raise Refused(413, f"The body unpacks to more than {RATIO} times its size. No journal does.")
    return reader.unused_data


def run_of(body: Body) -> Run:
    """Return the run that a body is.

    Raises:
        Refused: it is none, or a field of it cannot be.
    """
    text = unpacked(body)
    if len(text) > LINE_BYTES:
        raise Refused(413, f"The run is larger than {_mebibytes(LINE_BYTES)}. Split its plan.")
    try:
        _strict(text)
        run = Run.model_validate_json(text)
    except (ValidationError, ValueError) as error:
        raise Refused(422, f"not a run: {_reason(error)}") from None
    for wrong in _wrong_with_run(run):
        raise Refused(422, f"not a run: {wrong}")
    return run


def lines_of(body: Body, run_id: str) -> list[SentLine]:
    """Return the lines of a body, all of them of one run.

    Raises:
        Refused: a line is too long, is none, or cannot be; the sentence names its number.
    """
    found: list[SentLine] = []
    for number, text in enumerate(unpacked(body).split(b"\n"), 1):
        if not text.strip():
            continue
        if len(text) > LINE_BYTES:
            raise Refused(413, f"line {number}: longer than {_mebibytes(LINE_BYTES)}.")
        if len(found) == LINES:
            raise Refused(413, f"line {number}: a batch has at most {LINES:,} lines. Send several.")
        try:
            _strict(text)
            line = SENT.validate_json(text)
        except (ValidationError, ValueError) as error:
            raise Refused(422, f"line {number}: {_reason(error)}") from None
        for wrong in _wrong_with_line(line, run_id):
            raise Refused(422, f"line {number}: {wrong}")
        found.append(line)
    if not found:
        raise Refused(422, "There is no line in the body. Send starts, stages, records or ends, one a line.")
    return found


def number_of(lines: list[SentLine], case_id: str | None) -> int | None:
    """Return the place of the first line about a case, from 1 and without empty lines."""
    about = (each.case.id if isinstance(each, Record) else getattr(each, "case_id", None) for each in lines)
    return next((number for number, found in enumerate(about, 1) if case_id is not None and found == case_id), None)


def _wrong_with_run(run: Run) -> Iterator[str]:
    if not _is_id(run.id):
        yield "id: a UUID in lower case is needed, 36 characters."
    yield from _wrong_moments(started_at=run.started_at)
    ids = [planned.case.id for planned in run.plan]
    if len(set(ids)) < len(ids):
        twice = next(planned.case for place, planned in enumerate(run.plan) if planned.case.id in ids[:place])
        yield f"plan: {twice} stands in it twice."


def _wrong_with_line(line: SentLine, run_id: str) -> Iterator[str]:
    if line.run_id != run_id:
        yield f"it is of run {line.run_id}, and the address names {run_id}. Send each run's lines to its own address."
    if isinstance(line, RunEnd):
        yield from _wrong_moments(at=line.at)
        return
    if not 1 <= line.attempt <= MOST_ATTEMPT:
        yield f"attempt: must lie between 1 and {MOST_ATTEMPT:,}."
    if not isinstance(line, Record):
        yield from _wrong_moments(at=line.at)
        return
    yield from _wrong_moments(started_at=line.started_at, finished_at=line.finished_at)
    if line.finished_at < line.started_at:
        yield "finished_at: lies before started_at."
    derived = record_id(line.run_id, line.case.id, line.attempt)
    if line.id != derived:
        yield f"id: a record's id is derived from run, case and attempt; of these it is {derived}."


def _wrong_moments(**moments: datetime) -> Iterator[str]:
    for name, moment in moments.items():
        if moment.utcoffset() is None:
            yield f"{name}: has no time zone. Write e.g. 2026-08-12T01:00:00Z."
            return
        if not 1970 < moment.year < 9999:
            yield f"{name}: nothing was measured in the year {moment.year}."
            return
        if moment > now() + AHEAD:
            yield f"{name}: lies in the future. Check the clock of the machine that measured."


def _moment(value: object) -> object:
    if not isinstance(value, str):
        raise ValueError("write a moment as text, e.g. 2026-08-12T01:00:00Z")
    return value


def _can_be(moment: datetime) -> datetime:
    for wrong in _wrong_moments(it=moment):
        raise ValueError(wrong.removeprefix("it: "))
    return moment


Moment = Annotated[datetime, BeforeValidator(_moment, json_schema_input_type=datetime), AfterValidator(_can_be)]
"""A moment in a body: text with a time zone, and not in the future."""


def _is_id(text: str) -> bool:
    try:
        return str(uuid.UUID(text)) == text
    except ValueError:
        return False


def _strict(text: bytes) -> None:
    """Refuse the words NaN and Infinity, which are no JSON, and which the models' own parser takes."""
    if b"NaN" in text or b"Infinity" in text:
        json.loads(text, parse_constant=_refuse_constant)


def _refuse_constant(word: str) -> NoReturn:
    raise ValueError(f"not JSON ({word} is no number there). Absent is null.")


def _reason(error: ValueError) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"not JSON ({error.msg})."
    if not isinstance(error, ValidationError):
        return str(error)
    first = error.errors(include_url=False, include_input=False)[0]
    if first["type"] == "json_invalid":
        return f"not JSON ({first['ctx']['error']})."
    where = ".".join(str(part) for part in first["loc"]) or "the line"
    return f"{where}: {first['msg']}. Was it written by another version of bench?"


def _mebibytes(count: int) -> str:
    return f"{count >> 20} MiB"
