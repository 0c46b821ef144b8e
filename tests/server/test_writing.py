"""Runs and their lines come in over the API: all of a batch or nothing, as often as anybody likes."""

from __future__ import annotations

import gzip
from datetime import timedelta

import pytest

from harness.record import Run, Stage, now
from harness.wire import SENT, StageLine
from server import bodies
from server.routes import examples
from tests.server import factory
from tests.server.doors import RECORDS, Door, bearer, packed
from tests.server.reading import everything, rows


@pytest.fixture
def door(url):
    return Door(url)


@pytest.fixture
def key(door):
    return door.key("write")


@pytest.fixture
def run():
    return factory.make_run(3)


@pytest.fixture
def opened(door, key, run):
    answer = door.client.post("/api/v1/runs", content=run.model_dump_json(), headers=key)
    assert 201 == answer.status_code, answer.text
    return run


def send(door, key, *lines, path=RECORDS):
    body = packed(*lines)
    return door.client.post(path, content=body["content"], headers=body["headers"] | key)


def without_notes(url):
    """What a database holds, but for when tokens were used and who sent what."""
    return {name: found for name, found in everything(url).items() if name not in ("token", "upload")}


def test_run_comes_in(door, key, run, url):
    """A run that is sent is there with its plan; sent again it is known, and nothing changes."""
    first = door.client.post("/api/v1/runs", content=run.model_dump_json(), headers=key)
    before = without_notes(url)
    second = door.client.post(
        "/api/v1/runs",
        content=gzip.compress(run.model_dump_json().encode()),
        headers=key | {"Content-Encoding": "gzip"},
    )

    assert (201, {"id": run.id, "new": True, "planned": 3}) == (first.status_code, first.json())
    assert (200, False) == (second.status_code, second.json()["new"])
    assert before == without_notes(url)
    assert 3 == door.client.get(f"/api/v1/runs/{run.id}").json()["planned"]


def test_other_run_under_the_same_id(door, key, opened):
    """An id is of one run: another one under it is refused."""
    other = opened.model_copy(update={"command": "bench run --suite timm"})

    answer = door.client.post("/api/v1/runs", content=other.model_dump_json(), headers=key)

    assert 409 == answer.status_code
    assert "is here already" in answer.json()["detail"]


def test_lines_come_in(door, key, opened, url):
    """A batch is stored and counted; sent again its records are known, and nothing changes but the notes of uploads."""
    cases = [planned.case for planned in opened.plan]
    lines = [
        factory.make_start(cases[0]),
        factory.make_record(cases[0], speedup=1.5),
        factory.make_start(cases[1], attempt=2),
        factory.make_record(cases[1], attempt=1),
    ]
    first = send(door, key, *lines)
    before = without_notes(url)
    second = send(door, key, *lines)

    assert {"lines": 4, "new": 1, "known": 0, "late": 1} == {
        name: value for name, value in first.json().items() if name != "upload"
    }
    assert (0, 1, 1) == tuple(second.json()[name] for name in ("new", "known", "late"))
    assert before == without_notes(url)
    assert [("api", "journal", 1, 0, 1), ("api", "journal", 0, 1, 1)] == rows(
        url, "SELECT source, format, new, known, late FROM upload ORDER BY id"
    )
    assert [(2, 2)] == rows(
        url, "SELECT count(*), count(t.id) FROM upload u JOIN token t ON t.id = u.token_id WHERE t.name = 'a-write'"
    )


def test_whole_run_as_the_store_would_have_it(door, key, opened, url, store):
    """A run that came in over the API equals one that was stored here, in every table that pages read."""
    other = factory.make_run(3, id="0194a3f2-1111-7000-8000-000000000002")
    lines = []
    for run in (opened, other):
        lines = []
        for planned in run.plan:
            lines += [factory.make_start(planned.case, run.id), factory.make_record(planned.case, run_id=run.id)]
        lines.append(factory.make_end(run.id))
        if run is opened:
            assert 3 == send(door, key, *lines).json()["new"]
    store.replay([other, *lines])

    columns = "planned, passed, missing, skipped, ended_at, end_reason, heartbeat_at, last_start_at"
    first, second = rows(url, f"SELECT {columns} FROM run ORDER BY id")
    assert first == second
    assert [(2, "pass")] * 3 == rows(url, "SELECT results, outcome FROM series")


def test_stage_is_shown_and_a_late_one_passed_over(door, key, opened, url):
    """The newest stage of a case in hand is kept until its record is here."""
    case = opened.plan[0].case
    stages = [
        StageLine(run_id=opened.id, case_id=case.id, attempt=1, stage=stage, at=factory.BEGIN)
        for stage in (Stage.LOAD, Stage.COMPILE)
    ]
    send(door, key, factory.make_start(case), *stages)

    assert [("compile",)] == rows(url, "SELECT stage FROM progress")
    send(door, key, factory.make_record(case))
    assert 200 == send(door, key, stages[0]).status_code
    assert [] == rows(url, "SELECT stage FROM progress")


def test_batch_is_all_or_nothing(door, key, opened, url):
    """A batch with one line that does not fit is refused as a whole, with the number of the line."""
    good = factory.make_record(opened.plan[0].case)
    before = everything(url)
    answer = send(door, key, good, factory.make_record(factory.make_case("stranger")))

    assert 422 == answer.status_code
    assert answer.json()["detail"].startswith(f"line 2: run {opened.id} has no case")
    assert before["upload"] == []
    assert without_notes(url) == {name: found for name, found in before.items() if name not in ("token", "upload")}


def test_unknown_run(door, key):
    """Lines of a run that was never sent are refused with what to do first."""
    answer = send(door, key, factory.make_record(factory.make_case()))

    assert 404 == answer.status_code
    assert "send the run first" in answer.json()["detail"]
    assert 404 == door.client.get(RECORDS).status_code


def test_value_that_no_database_holds(door, key, opened):
    """A number of more than 64 bits is refused as a value, not as a fault of the database."""
    record = factory.make_record(opened.plan[0].case)
    report = record.compile.model_copy(update={"graphs": 1 << 70})

    answer = send(door, key, record.model_copy(update={"compile": report}))

    assert 422 == answer.status_code
    assert "that the database cannot hold" in answer.json()["detail"]


def test_null_character(door, key, opened, url):
    """A null character in what a worker said is kept as its symbol: one database would refuse the record for it."""
    record = factory.make_record(opened.plan[0].case, "crash", text="core dumped\0\0")

    assert 1 == send(door, key, record).json()["new"]
    assert [("core dumped\u2400\u2400",)] == rows(url, "SELECT text FROM result")


def test_known_records(door, key, opened):
    """A client that asks is told the ids of the records that are there."""
    record = factory.make_record(opened.plan[0].case)
    send(door, key, record)

    assert {"run": opened.id, "records": [record.id]} == door.client.get(RECORDS).json()


@pytest.mark.parametrize("method", ["run", "records", "patch"])
def test_no_token_no_writing(door, opened, url, method):
    """Without a token, with one that only reads, with one that is over: nothing is written, and it is said why."""
    old, revoked = door.key(name="old", lasts=timedelta(microseconds=1)), door.key(name="revoked")
    door.tokens.revoke("revoked")
    before = without_notes(url)
    path = "/api/v1/runs" if method == "run" else RECORDS if method == "records" else f"/api/v1/runs/{opened.id}"
    said = {}
    for name, header in {
        "none": {},
        "read": door.key("read"),
        "old": old,
        "revoked": revoked,
        "made up": bearer("bench_" + "x" * 43),
        "a browser's": {"Authorization": "Basic Omlub25l"},
    }.items():
        answer = door.client.request("PATCH" if method == "patch" else "POST", path, content=b"{}", headers=header)
        said[name] = (answer.status_code, answer.json()["detail"].split(". ")[0].split(",")[0])

    assert {
        "none": (401, "This needs a token with the scope write"),
        "read": (403, "The token 'a-read' has the scope read; this needs write."),
        "old": (401, f"The token 'old' expired on {now():%Y-%m-%d}"),
        "revoked": (401, "The token 'revoked' was revoked"),
        "made up": (401, "This token is not known here"),
        "a browser's": (401, "This needs a token with the scope write"),
    } == said
    assert before == without_notes(url)


def test_body_that_is_none(door, key, opened):
    """A body in a form that is not taken is refused with the form that is."""
    said = {}
    for header in ("Content-Type: image/png", "Content-Encoding: br", "Content-Encoding: gzip", "Accept: */*"):
        answer = door.client.post(RECORDS, content=b"nothing", headers=dict([header.split(": ")]) | key)
        said[header] = (answer.status_code, answer.json()["detail"].split(" (")[0].split(". ")[0])

    assert {
        "Content-Type: image/png": (415, "Content-Type 'image/png' is not taken"),
        "Content-Encoding: br": (415, "Content-Encoding 'br' is not taken"),
        "Content-Encoding: gzip": (422, "The body is not gzip, as its Content-Encoding says"),
        "Accept: */*": (422, "line 1: not JSON"),
    } == said


def test_body_that_is_too_long_is_not_read_to_its_end(door, key, opened, monkeypatch):
    """A body beyond the limit is refused when the limit is reached."""
    monkeypatch.setattr(bodies, "RECEIVED_BYTES", 1 << 20)

    answer = door.client.post(RECORDS, content=iter([bytes(1 << 19)] * 4), headers=key)

    assert (413, True) == (answer.status_code, "larger than 1 MiB" in answer.json()["detail"])


def test_run_says_more_of_itself_later(door, key, opened, url):
    """What a run did not say can be said once; what it said is not changed, and its end is kept."""
    path = f"/api/v1/runs/{opened.id}"
    said = {"branch": "main", "commit": "4f2a91c", "trigger": "nightly", "fork_point": "aa11"}
    end = {"ended_at": str(factory.BEGIN + timedelta(hours=1)), "end_reason": "interrupted"}

    assert 204 == door.client.patch(path, json=said | end, headers=key).status_code
    assert 204 == door.client.patch(path, json=said, headers=key).status_code
    answer = door.client.patch(path, json={"commit": "other"}, headers=key)
    assert (409, True) == (answer.status_code, "has the commit '4f2a91c'" in answer.json()["detail"])
    assert [("main", "4f2a91c", "nightly", "aa11", "interrupted")] == rows(
        url, 'SELECT branch, "commit", "trigger", fork_point, end_reason FROM run'
    )


def test_branch_is_named_before_the_first_result(door, key, opened):
    """A branch cannot be named when results lie in the series of no branch; a commit can."""
    send(door, key, factory.make_record(opened.plan[0].case))
    path = f"/api/v1/runs/{opened.id}"

    answer = door.client.patch(path, json={"branch": "main"}, headers=key)
    assert (409, True) == (answer.status_code, "belong to the series of no branch" in answer.json()["detail"])
    assert 204 == door.client.patch(path, json={"commit": "4f2a91c"}, headers=key).status_code


def test_amendment_that_says_nothing(door, key, opened):
    """What cannot be kept of a run is refused."""
    for said, sentence in (
        ({}, "nothing is said"),
        ({"ended_at": "2026-08-12T01:00:00Z"}, "ended_at and end_reason go together"),
        ({"ended_at": "2026-08-12T01:00:00", "end_reason": "finished"}, "body.ended_at: Value error, has no time zone"),
        ({"ended_at": 0, "end_reason": "finished"}, "write a moment as text"),
        ({"ended_at": "2126-08-12T01:00:00Z", "end_reason": "finished"}, "lies in the future"),
        ({"commit": "a\0b"}, "a null character is no text"),
        ({"state": "finished"}, "body.state: Extra inputs are not permitted"),
    ):
        answer = door.client.patch(f"/api/v1/runs/{opened.id}", json=said, headers=key)

        assert (422, True) == (answer.status_code, sentence in answer.json()["detail"]), answer.text


def test_examples_can_be_sent(door, key):
    """The bodies that the description shows are taken as they stand there."""
    described = door.client.get("/api/v1/openapi.json").json()["paths"]
    bodies_ = [
        described[path]["post"]["requestBody"]["content"] for path in ("/api/v1/runs", "/api/v1/runs/{run}/records")
    ]
    run, lines = (next(iter(body.values()))["example"] for body in bodies_)

    assert Run.model_validate(run).plan[0].case.id == examples.CASE_ID
    assert 201 == door.client.post("/api/v1/runs", json=run, headers=key).status_code
    assert {"start", "stage", "record", "end"} == {SENT.validate_json(line).type for line in lines.splitlines()}
    assert 1 == door.client.post(RECORDS, content=lines, headers=key).json()["new"]
    assert "oom" == door.client.get(f"/api/v1/runs/{factory.RUN_ID}/results").json()[0]["status"]
