"""What every answer of the API gets: its tag, its compression, its description."""

from __future__ import annotations

import json

import pytest
from pydantic import TypeAdapter

from harness.record import Record
from server import schemas, schemas_comparison, schemas_series
from server.answering import SMALLEST
from server.routes import reading_examples as examples
from tests.server import library

PLAIN = {"Accept-Encoding": "identity"}
PATHS = (
    "/api/v1/runs",
    f"/api/v1/runs/{library.run_id(0)}",
    f"/api/v1/runs/{library.run_id(0)}/results",
    "/api/v1/series",
    "/api/v1/summary",
    "/api/v1/facets",
    f"/api/v1/compare?base={library.run_id(0)}&head={library.run_id(1)}&all=true",
)


@pytest.mark.parametrize("path", PATHS)
def test_unchanged_answer_is_not_sent_again(api, path):
    """Who has an answer is told so: its tag is strong and stays while nothing changes."""
    first = api.get(path)

    again = api.get(path, headers={"If-None-Match": first.headers["etag"]})

    assert first.headers["etag"].startswith('"')
    assert (304, b"", first.headers["etag"]) == (again.status_code, again.content, again.headers["etag"])
    assert 200 == api.get(path, headers={"If-None-Match": '"other"'}).status_code


def test_tag_belongs_to_one_encoding(api):
    """A compressed answer and a plain one have different tags, since their bytes differ."""
    path = PATHS[0]

    zipped, plain = api.get(path, headers={"Accept-Encoding": "gzip"}), api.get(path, headers=PLAIN)

    assert ("gzip", None) == (zipped.headers.get("content-encoding"), plain.headers.get("content-encoding"))
    assert zipped.content == plain.content
    assert zipped.headers["etag"] != plain.headers["etag"]
    assert "Accept-Encoding" in zipped.headers["vary"]


def test_weak_copy_of_a_tag_fits(api):
    """A tag that a proxy marked as weak, in a list, fits too."""
    tag = api.get(PATHS[0]).headers["etag"]

    assert 304 == api.get(PATHS[0], headers={"If-None-Match": f'"a", W/{tag}'}).status_code


def test_small_answers_are_not_compressed(api):
    """A body below a kilobyte is sent as it is."""
    answer = api.get("/api/v1/runs?limit=1&summaries=false&branch=fix", headers={"Accept-Encoding": "gzip"})

    assert len(answer.content) < SMALLEST
    assert "content-encoding" not in answer.headers


def test_errors_have_no_tag(api):
    """What is no answer is not kept."""
    assert "etag" not in api.get("/api/v1/runs/nope").headers


def test_parquet_without_its_library_is_a_sentence(api, monkeypatch):
    """Without pyarrow, Parquet is answered with what to install."""
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)

    answer = api.get("/api/v1/series?format=parquet")

    assert 501 == answer.status_code
    assert "pip install compile-bench[export]" in answer.json()["detail"]


MODELS = {
    "HEALTH": schemas.Health,
    "RUNS": list[schemas.Run],
    "RUN": schemas.RunDetail,
    "RESULTS": list[schemas.Result],
    "SUMMARIES": list[schemas.Summary],
    "SERIES": list[schemas_series.Series],
    "TRENDS": list[schemas_series.Trend],
    "FACETS": schemas_series.Facets,
    "COMPARISON": schemas_comparison.RunComparison,
    "RECORD": Record,
    "SAMPLES": schemas.RecordSamples,
    "LOG": str,
}


def within(part, whole):
    """Say whether all that one value holds stands in the other."""
    if isinstance(part, dict):
        return isinstance(whole, dict) and all(name in whole and within(part[name], whole[name]) for name in part)
    if isinstance(part, list):
        return isinstance(whole, list) and len(part) == len(whole) and all(map(within, part, whole))
    return part == whole


@pytest.mark.parametrize("name", sorted(MODELS))
def test_examples_are_answers(name):
    """Each example of the description is what the API would answer; fields that came later may be absent."""
    kind = TypeAdapter(MODELS[name])
    example = getattr(examples, name)

    read = kind.validate_python(example) if name == "LOG" else kind.validate_json(json.dumps(example))

    assert within(example, json.loads(kind.dump_json(read)))


def test_description_is_complete(api):
    """Each address has a summary, a description, an example, and a sentence for each status it may have."""
    description = api.get("/api/v1/openapi.json").json()
    for path in library.ADDRESSES:
        asked = description["paths"][path]["get"]
        assert asked["summary"], path
        assert asked["description"], path
        assert any("example" in form for form in asked["responses"]["200"]["content"].values()), path
        assert {"304", "421", "422", "503"} <= set(asked["responses"]), path
        assert ("404" in asked["responses"]) == ("{" in path or path.endswith("/compare")), path
        for parameter in asked.get("parameters", ()):
            assert parameter["description"], (path, parameter["name"])
