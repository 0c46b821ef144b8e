"""The API as a client sees it."""

from __future__ import annotations

import json
import re

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import create_engine

from harness.record import Outcome, Record
from server.app import create_app
from server.settings import Settings
from tests.server import factory


@pytest.fixture
def client(url):
    return TestClient(create_app(Settings(database=url)))


@pytest.fixture
def run(store):
    run = factory.make_run(3)
    store.open(run)
    store.record(factory.make_record(run.plan[0].case, speedup=1.5))
    store.record(factory.make_record(run.plan[1].case, Outcome.OOM))
    store.close(factory.make_end())
    return run


def test_health(client, run):
    """The service says that it answers."""
    assert "ok" == client.get("/healthz").json()["status"]


def test_runs(client, run):
    """The list of runs has counts, and summaries where they are asked for."""
    (found,) = client.get("/api/v1/runs?summaries=true").json()

    assert (run.id, "finished", 3, 1, 1) == tuple(
        found[name] for name in ("id", "state", "planned", "passed", "missing")
    )
    assert 1.5 == pytest.approx(found["summaries"][0]["speedup"]["value"])


@pytest.mark.parametrize("name", ["latest", "0194a3f2", factory.RUN_ID])
def test_run(client, run, name):
    """A run is found by id, prefix and `latest`."""
    assert run.id == client.get(f"/api/v1/runs/{name}").json()["id"]


@pytest.mark.parametrize("path", ["/api/v1/runs/nope", "/api/v1/runs/nope/results", "/api/v1/records/nope"])
def test_unknown_is_404_with_a_sentence(client, run, path):
    """What is not there is answered with a sentence."""
    answer = client.get(path)

    assert 404 == answer.status_code
    assert answer.json()["detail"].startswith("There is no ")


def test_results_sort_missing_last(client, run):
    """Results can be sorted; absent numbers are null and come last."""
    found = client.get("/api/v1/runs/latest/results", params={"sort": "speedup", "descending": True}).json()

    assert ["pass", "oom", "missing"] == [result["status"] for result in found]
    assert [None, None] == [result["speedup"] for result in found[1:]]


def test_unknown_sort_is_refused(client, run):
    """A column that does not exist is refused, and those that do are named."""
    answer = client.get("/api/v1/runs/latest/results", params={"sort": "beauty"})

    assert 422 == answer.status_code
    assert "'speedup'" in answer.text


def test_record_is_whole(client, run, store):
    """A record comes with every sample, and reads back as the record that was stored."""
    stored = factory.make_record(run.plan[0].case, speedup=1.5)

    assert stored == Record.model_validate(client.get(f"/api/v1/records/{stored.id}").json())


def test_json_has_no_nan(client, run, store):
    """Numbers that are none are null: every answer is strict JSON."""
    record = factory.make_record(run.plan[2].case)
    derived = record.derived.model_copy(update={"break_even_steps": float("inf"), "memory_ratio": float("nan")})
    store.record(record.model_copy(update={"derived": derived}))

    def refuse(word):
        raise AssertionError(word)

    for path in ("runs", "runs/latest", "runs/latest/results", f"records/{record.id}"):
        json.loads(client.get(f"/api/v1/{path}").text, parse_constant=refuse)


def test_database_that_broke_is_503(client, run, url):
    """When the database fails the answer is a sentence with status 503, not a traceback."""
    engine = create_engine(url)
    with engine.begin() as other:
        other.exec_driver_sql("ALTER TABLE summary RENAME TO gone")
    engine.dispose()

    answer = client.get("/api/v1/runs?summaries=true")

    assert 503 == answer.status_code
    assert "database" in answer.json()["detail"]


def test_what_an_address_can_be_asked(client):
    """A method that no route takes is answered with all that some route does, though they share the address."""
    answer = client.delete("/api/v1/runs")

    assert (405, "GET, POST") == (answer.status_code, answer.headers["allow"])


def test_what_is_sent_is_described(client):
    """The bodies that are read line by line are described as the lines of a journal, in words that lead somewhere."""
    schema = client.get("/api/v1/openapi.json").json()
    known, text = schema["components"]["schemas"], json.dumps(schema)

    assert {"started_at", "plan", "environment"} <= set(known["SentRun"]["required"])
    assert {"start", "stage", "record", "end"} == set(known["SentLine"]["discriminator"]["mapping"])
    assert set(re.findall(r'"#/components/schemas/(\w+)"', text)) <= set(known)


def test_every_route_is_documented(client):
    """Each route has a description in the schema, and each with a name in its path its 404."""
    paths = client.get("/api/v1/openapi.json").json()["paths"]

    assert {"/healthz", "/api/v1/runs", "/api/v1/runs/{run}", "/api/v1/runs/{run}/results"} <= set(paths)
    for path, methods in paths.items():
        for method in methods.values():
            assert method["description"]
            assert "{" not in path or "404" in method["responses"]
