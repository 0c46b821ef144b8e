"""Remarks: about a run or a series, by name, taken back by who made them."""

from __future__ import annotations

import pytest

from tests.server import factory
from tests.server.doors import Door
from tests.server.reading import rows

PATH = "/api/v1/annotations"


@pytest.fixture
def door(url):
    return Door(url)


@pytest.fixture
def run(store):
    run = factory.make_run(1)
    store.replay([run, factory.make_record(run.plan[0].case)])
    return run


def test_remark_about_a_run(door, run):
    """A remark has its author, and without a moment of its own the run's."""
    remark = {"run": run.id, "kind": "change", "text": "driver 580"}
    answer = door.client.post(PATH, json=remark, headers=door.key())

    assert 201 == answer.status_code
    expected = remark | {"author": "a-write", "series": None, "at": "2026-08-12T01:00:00Z"}
    assert expected == {name: answer.json()[name] for name in expected}
    assert [answer.json()] == door.client.get(PATH, params={"run": run.id}).json()


def test_remark_about_a_series(door, run, url):
    """A remark can be about a series, at a moment."""
    ((series,),) = rows(url, "SELECT key FROM series")
    at = "2026-08-11T00:00:00Z"
    door.client.post(PATH, json={"series": series, "at": at, "text": "noisy"}, headers=door.key())

    (found,) = door.client.get(PATH, params={"series": series}).json()
    assert (series, None, at, "note") == tuple(found[name] for name in ("series", "run", "at", "kind"))
    assert [] == door.client.get(PATH, params={"run": run.id}).json()


def test_pages(door, run):
    """Remarks come newest first; the header Link leads through all of them, each once."""
    key = door.key()
    for number in range(5):
        door.client.post(PATH, json={"run": run.id, "text": str(number)}, headers=key)
    found, path = [], f"{PATH}?run={run.id}&limit=2"
    while path:
        answer = door.client.get(path)
        found.append([remark["text"] for remark in answer.json()])
        path = answer.links.get("next", {}).get("url")

    assert [["4", "3"], ["2", "1"], ["0"]] == found


def test_taking_back(door, run):
    """One takes back one's own remark; another's needs the scope admin."""
    own, other = door.key(name="own"), door.key(name="other")
    remarks = [door.client.post(PATH, json={"run": run.id, "text": "x"}, headers=own).json()["id"] for _ in range(2)]

    answer = door.client.delete(f"{PATH}/{remarks[0]}", headers=other)
    assert (403, True) == (answer.status_code, "author of this remark is 'own'" in answer.json()["detail"])
    assert 204 == door.client.delete(f"{PATH}/{remarks[0]}", headers=own).status_code
    assert 404 == door.client.delete(f"{PATH}/{remarks[0]}", headers=own).status_code
    assert 204 == door.client.delete(f"{PATH}/{remarks[1]}", headers=door.key("admin")).status_code
    assert [] == door.client.get(PATH).json()


def test_what_is_no_remark(door, run):
    """A remark is about one thing that exists, has a text, and needs a token that writes."""
    key = door.key()
    answers = [
        door.client.post(PATH, json=remark, headers=key).status_code
        for remark in (
            {"text": "about nothing"},
            {"text": "about both", "run": run.id, "series": 1},
            {"text": " ", "run": run.id},
            {"text": "x", "run": run.id, "at": "2026-08-12T01:00:00"},
            {"text": "x", "run": "nope"},
            {"text": "x", "series": 10**9},
            {"text": "x\0", "run": run.id},
        )
    ]

    assert [422, 422, 422, 422, 404, 404, 422] == answers
    assert 401 == door.client.post(PATH, json={"text": "x", "run": run.id}).status_code
    assert 401 == door.client.delete(f"{PATH}/x").status_code
    assert 422 == door.client.delete(f"{PATH}/x", headers=key).status_code
    assert 422 == door.client.get(PATH, params={"cursor": "x"}).status_code
