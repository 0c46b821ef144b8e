"""A run as it goes on: each thing once, from any process, until it ends or nobody listens."""

from __future__ import annotations

import json
from datetime import timedelta

import httpx2
import pytest

from harness.record import Outcome, Stage, now
from server import db
from server.live import Follower, place
from server.queries import Queries
from server.routes import events
from server.settings import Reading
from tests.server import factory
from tests.server.doors import Door
from tests.serving import free_port, serving, wait_for


@pytest.fixture(autouse=True)
def soon(monkeypatch):
    monkeypatch.setattr(events, "LOOK_EVERY_S", 0.02)


@pytest.fixture
def run(store):
    """A run that goes on: two of three cases are done."""
    run = factory.make_run(3, at=now() - timedelta(minutes=2))
    store.open(run)
    store.record(factory.make_record(run.plan[0].case, speedup=1.5, at=now() - timedelta(minutes=1)))
    store.record(factory.make_record(run.plan[1].case, Outcome.OOM, at=now()))
    return run


@pytest.fixture
def follow(url, run):
    engine = db.connect(url)
    yield lambda after=None: Follower(Queries(engine), engine, run.id, after)
    engine.dispose()


def told(news):
    return [(event.kind.value, getattr(event.data, "model", None)) for event in news]


def test_everything_is_told_once(follow, run, store):
    """A listener hears how the run stands and all of its results, then each stage and result as it comes."""
    follower = follow()
    assert [("planned", None), ("record", "model_0"), ("record", "model_1")] == told(follower.look())
    assert [] == follower.look()

    start = factory.make_start(run.plan[2].case, at=now())
    store.start(start)
    assert [("stage", "model_2")] == told(follower.look())
    store.stage(start, Stage.COMPILE)
    (event,) = follower.look()
    assert ("compile", None) == (event.data.stage, event.id)
    store.record(factory.make_record(run.plan[2].case, at=now()))
    assert [("record", "model_2")] == told(follower.look())
    assert not follower.over
    store.close(factory.make_end(at=now()))
    (event,) = follower.look()
    assert ("finished", "finished", 2) == (event.kind, event.data.state, event.data.passed)
    assert follower.over


def test_goes_on_after_the_last_that_was_heard(follow, run, store):
    """Who was cut off names the last event that came, and hears those after it."""
    heard = follow().look()[1]
    after, over = place(heard.id)

    assert not over
    assert [("record", "model_1")] == told(follow(after).look())


def test_figures_of_a_record(follow):
    """A result is told with its outcome and its interval."""
    _, passed, failed = (event.data for event in follow().look())

    assert ("pass", True, 1.5) == (passed.outcome, passed.valid, passed.speedup)
    assert passed.speedup_low < 1.5 < passed.speedup_high
    assert ("oom", None) == (failed.outcome, failed.speedup)


def test_lost_run_is_over(follow, url):
    """A run that has been silent for too long is told as lost, and the listener need not wait."""
    engine = db.connect(url)
    follower = follow()
    follower.queries = Queries(engine, clock=lambda: now() + timedelta(hours=1))

    assert "lost" == follower.look()[-1].data.state
    assert follower.over
    engine.dispose()


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (None, (None, False)),
        ("17", (17, False)),
        ("17-over", (17, True)),
        ("x", (None, False)),
        ("9" * 30, (None, False)),
    ],
)
def test_place(text, found):
    """An id leads to the place it names; one that is none of ours to the beginning."""
    assert found == place(text)


def stream(door, path, **headers):
    with door.client.stream("GET", path, headers=headers) as answer:
        return answer, answer.read().decode()


def test_stream_of_a_run_that_is_over(url, run, store):
    """The stream of a run that is over holds all of it and ends; a browser that comes back is told to stay away."""
    store.close(factory.make_end(at=now()))
    door = Door(url)
    answer, text = stream(door, "/api/v1/runs/latest/events")
    found = [block.split("\n") for block in text.strip().split("\n\n")]

    assert answer.headers["content-type"].startswith("text/event-stream")
    assert ["retry: 3000"] == found[0]
    assert ["planned", "record", "record", "finished"] == [block[0].removeprefix("event: ") for block in found[1:]]
    data = json.loads(found[1][1].removeprefix("data: "))
    assert (run.id, 3, 1) == (data["run"], data["planned"], data["passed"])
    last = found[-1][2].removeprefix("id: ")
    assert 204 == stream(door, "/api/v1/runs/latest/events", **{"Last-Event-ID": last})[0].status_code
    assert "model_0" not in stream(door, "/api/v1/runs/latest/events", **{"Last-Event-ID": last.split("-")[0]})[1]


def test_unknown_run(sqlite_url):
    """A run that is not there has no events."""
    assert 404 == Door(sqlite_url).client.get("/api/v1/runs/nope/events").status_code


def test_events_need_what_reading_needs(sqlite_url):
    """Where reading needs a token, listening does."""
    assert 401 == Door(sqlite_url, read=Reading.TOKEN).client.get("/api/v1/runs/latest/events").status_code


def test_listener_over_two_servers(url, run, store, monkeypatch):
    """What one server takes in, a listener at another hears; who leaves frees the place, and too many are refused."""
    monkeypatch.setattr(events, "HEARTBEAT_S", 0.1)
    listening, taking = Door(url), Door(url)
    listening.app.state.listeners.most = 1
    key = taking.key()
    with serving(listening.app, free_port()) as address, httpx2.Client(base_url=address, timeout=20) as client:
        with client.stream("GET", f"/api/v1/runs/{run.id}/events") as answer:
            lines = answer.iter_lines()
            assert next(line for line in lines if line == "event: planned")
            assert 503 == client.get(f"/api/v1/runs/{run.id}/events").status_code
            record = factory.make_record(run.plan[2].case, at=now())
            path = f"/api/v1/runs/{run.id}/records"
            assert 200 == taking.client.post(path, content=record.model_dump_json(), headers=key).status_code
            assert any('"model":"model_2"' in line for line in lines)
            assert next(line for line in lines if line == ": ping")

        assert wait_for(lambda: listening.app.state.listeners.count == 0)
