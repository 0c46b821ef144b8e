"""Bodies of requests that write: what is wrong is said with its line, and nothing fills the memory."""

from __future__ import annotations

import gzip
import json
import zlib
from datetime import UTC, datetime, timedelta

import pytest

from harness.record import Outcome, now, record_id
from server import bodies
from server.bodies import Body, lines_of, run_of, unpacked
from server.routes.problems import Refused
from tests.server import factory
from tests.server.doors import text


def changed(**values):
    """A good start line, a line with some values changed, one more good line."""
    case = factory.make_case()
    record = json.loads(factory.make_record(case, Outcome.OOM).model_dump_json()) | values
    start = factory.make_start(case).model_dump_json()
    return Body("\n".join([start, json.dumps(record), start]).encode(), zipped=False)


def refusal(work, *args) -> tuple[int, str]:
    with pytest.raises(Refused) as caught:
        work(*args)
    return caught.value.status, str(caught.value)


@pytest.mark.parametrize("zipped", [False, True])
def test_lines(zipped):
    """Lines come plain or gzipped, also as several members; empty ones and the last line end do not matter."""
    run = factory.make_run(1)
    lines = [factory.make_start(run.plan[0].case), factory.make_record(run.plan[0].case), factory.make_end()]
    parts = [text(lines[:1]), b"\n" + text(lines[1:]).rstrip()]
    content = b"".join(gzip.compress(part) if zipped else part for part in parts)

    assert lines == lines_of(Body(content, zipped), run.id)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"not json", "line 1: not JSON (expected ident at line 1 column 2)."),
        (b'\n{"schema": 1, "type": "start"}', "line 2: start.run_id: Field required."),
        (b'{"schema": 1, "type": "run"}', "line 1: the line: Input tag 'run' found using 'type' does not match"),
        (b"[]", "line 1: the line: "),
        (b" \n\n", "There is no line in the body."),
        (b"\xff\xfe", "line 1: not JSON"),
    ],
)
def test_wrong_line_is_named(content, sentence):
    """A line that is none is refused with its number and the reason."""
    status, said = refusal(lines_of, Body(content, zipped=False), factory.RUN_ID)

    assert 422 == status
    assert said.startswith(sentence)


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"run_id": "other"}, f"line 2: it is of run other, and the address names {factory.RUN_ID}"),
        ({"id": "0194a3f2-2222-7000-8000-000000000001"}, "line 2: id: a record's id is derived from run, case and"),
        ({"attempt": 2}, "line 2: id: a record's id is derived"),
        ({"attempt": 0, "id": record_id(factory.RUN_ID, factory.make_case().id, 0)}, "line 2: attempt: must lie"),
        ({"colour": "blue"}, "line 2: record.colour: Extra inputs are not permitted"),
        ({"started_at": "2026-08-12T01:00:00"}, "line 2: started_at: has no time zone"),
        ({"finished_at": "9999-12-31T23:59:59-12:00"}, "line 2: finished_at: nothing was measured in the year 9999"),
        ({"finished_at": str(now() + timedelta(days=2))}, "line 2: finished_at: lies in the future"),
        ({"finished_at": "2026-08-12T00:00:00Z"}, "line 2: finished_at: lies before started_at"),
        ({"exit_code": float("nan")}, "line 2: not JSON (NaN is no number there)"),
    ],
)
def test_line_that_cannot_be(values, sentence):
    """A line that is well formed and cannot be true is refused: another run, a made-up id, a clock that is wrong."""
    status, said = refusal(lines_of, changed(**values), factory.RUN_ID)

    assert 422 == status
    assert said.startswith(sentence)


def test_nan_in_a_text_is_a_text():
    """The word NaN is refused as a number, not in what a worker printed."""
    (_, record, _) = lines_of(changed(text="loss is NaN, Infinity"), factory.RUN_ID)

    assert "loss is NaN, Infinity" == record.text


def test_truncated_gzip():
    """A gzip stream that ends in the middle is refused."""
    content = gzip.compress(text([factory.make_record(factory.make_case())]))

    assert (422, "The body ends in the middle of its gzip stream. Send it again.") == refusal(
        unpacked, Body(content[:-20], zipped=True)
    )
    assert 422 == refusal(unpacked, Body(b"", zipped=True))[0]
    assert "is not gzip" in refusal(unpacked, Body(b"{}", zipped=True))[1]


def test_bomb_is_refused_before_it_fills_the_memory(monkeypatch):
    """A gigabyte of zeros in a megabyte is refused by its ratio after a part of it."""
    unpacked_bytes = 0
    real = bodies._member

    def watched(reader, left, found, received):
        nonlocal unpacked_bytes
        try:
            return real(reader, left, found, received)
        finally:
            unpacked_bytes = len(found)

    monkeypatch.setattr(bodies, "_member", watched)
    packer = zlib.compressobj(9, wbits=31)
    bomb = b"".join(packer.compress(bytes(1 << 20)) for _ in range(64)) + packer.flush()

    status, said = refusal(unpacked, Body(bomb, zipped=True))

    assert (413, True) == (status, "unpacks to more than 200 times its size" in said)
    assert unpacked_bytes <= 200 * len(bomb) + (1 << 20)


@pytest.mark.parametrize(
    ("name", "limit", "sentence"),
    [
        ("UNPACKED_BYTES", 1000, "larger than 0 MiB unpacked"),
        ("LINE_BYTES", 100, "line 1: longer than"),
        ("LINES", 1, "line 2: a batch has at most 1 lines"),
    ],
)
def test_limits(monkeypatch, name, limit, sentence):
    """What is too large is refused with 413: unpacked, as one line, as too many lines."""
    monkeypatch.setattr(bodies, name, limit)
    content = gzip.compress(text([factory.make_record(factory.make_case())] * 2))

    status, said = refusal(lines_of, Body(content, zipped=True), factory.RUN_ID)

    assert (413, True) == (status, sentence in said)


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"id": "nightly-17"}, "not a run: id: a UUID in lower case is needed"),
        ({"started_at": datetime(2026, 8, 12)}, "not a run: started_at: has no time zone"),
        ({"started_at": datetime(1, 1, 1, tzinfo=UTC)}, "not a run: started_at: nothing was measured in the year 1"),
        ({"plan": factory.make_run(1).plan * 2}, "not a run: plan: toy/model_0 inference fp32 stands in it twice"),
    ],
)
def test_run_that_cannot_be(values, sentence):
    """A run needs an id that no other has, a moment, and a plan with each case once."""
    run = factory.make_run(1).model_copy(update=values)

    status, said = refusal(run_of, Body(run.model_dump_json().encode(), zipped=False))

    assert 422 == status
    assert said.startswith(sentence)


def test_run_with_a_nan():
    """NaN as a number of a plan is no JSON."""
    content = factory.make_run(1).model_dump_json().replace('"tolerance":0.01', '"tolerance":NaN')

    assert "NaN is no number" in refusal(run_of, Body(content.encode(), zipped=False))[1]
