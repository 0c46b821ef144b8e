"""The service says of itself whether it is up, whether it is ready, and what it did."""

from __future__ import annotations

import re

import pytest
from sqlalchemy import create_engine

from server.migrations import HEAD
from tests.server import factory
from tests.server.doors import RECORDS, Door, packed


@pytest.fixture
def door(url):
    return Door(url)


def counted(door, name: str) -> float | None:
    """Return a sample of `/metrics`."""
    found = re.search(rf"^{re.escape(name)} (\S+)$", door.client.get("/metrics").text, re.M)
    return float(found[1]) if found else None


def test_ready(door):
    """A server whose database answers with this version's schema is ready."""
    assert {"status": "ready", "database_schema": HEAD} == door.client.get("/readyz").json()


def test_not_ready(door, url):
    """A server whose database is of another version, or away, is up and not ready."""
    engine = create_engine(url)
    with engine.begin() as other:
        other.exec_driver_sql("UPDATE alembic_version SET version_num = '0001'")
    engine.dispose()

    answer = door.client.get("/readyz")
    assert (503, True) == (answer.status_code, f"this version needs {HEAD}" in answer.json()["detail"])
    assert 200 == door.client.get("/healthz").status_code


def test_requests_are_counted(door):
    """Requests are counted by route and status, those of strangers and of nobody's route as well."""
    door.client.get("/api/v1/runs/nope")
    door.client.get("/api/v1/runs/none")
    door.client.get("/some/where")
    door.client.get("/healthz", headers={"host": "evil.example"})

    assert 2 == counted(door, 'bench_requests_total{method="GET",route="/api/v1/runs/{run}",status="404"}')
    assert 1 == counted(door, 'bench_requests_total{method="GET",route="none",status="404"}')
    assert 1 == counted(door, 'bench_requests_total{method="GET",route="none",status="421"}')
    assert 2 == counted(door, 'bench_request_seconds_count{method="GET",route="/api/v1/runs/{run}"}')


def test_records_and_runs_are_counted(door):
    """Records that come in are counted by what became of them, and runs as the database has them."""
    run, key = factory.make_run(1), door.key()
    assert (0, 0) == (counted(door, 'bench_records_received_total{became="new"}'), counted(door, "bench_runs"))
    door.client.post("/api/v1/runs", content=run.model_dump_json(), headers=key)
    body = packed(factory.make_record(run.plan[0].case))
    for _ in range(2):
        door.client.post(RECORDS, content=body["content"], headers=body["headers"] | key)

    assert 1 == counted(door, "bench_runs")
    assert [1, 1, 0] == [
        counted(door, f'bench_records_received_total{{became="{became}"}}') for became in ("new", "known", "late")
    ]


def test_whose_token(door):
    """A client can ask what its token opens; without one it is told to bring one."""
    found = door.client.get("/api/v1/token", headers=door.key("read")).json()

    assert {"name": "a-read", "scope": "read", "expires_at": None} == found
    assert 401 == door.client.get("/api/v1/token").status_code
