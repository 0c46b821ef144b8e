"""Two runs as a client of the API compares them."""

from __future__ import annotations

import pytest

from harness.compare import compare as judged
from harness.compare_changes import Verdict
from server.queries import Queries
from tests.server import library


def compare(api, base, head, **query):
    return api.get("/api/v1/compare", params={"base": base, "head": head, **query})


def test_only_what_changed_is_listed(api):
    """A case that crashes and passed before counts against the head; what stayed the same is counted, not listed."""
    found = compare(api, library.run_id(0), library.run_id(library.CRASHED)).json()

    (change,) = [each for each in found["changes"] if each["model"] == "resnet50"]
    assert ("status_changed", "worse", "pass", "crash") == (
        change["verdict"],
        change["outcome"],
        change["base"]["outcome"],
        change["head"]["outcome"],
    )
    assert found["against"]
    assert "conv" not in [each["model"] for each in found["changes"]]
    assert 4 == sum(found["counts"].values())


def test_slower_case_regressed(api):
    """A case whose speedup fell by more than intervals and floor regressed; the change has an interval."""
    found = compare(api, library.run_id(1), library.run_id(2)).json()

    first = found["changes"][0]
    speedup = first["metrics"]["speedup"]
    assert ("resnet18", "regressed", "speedup") == (first["model"], first["verdict"], first["by"])
    assert ("worse", "interval", pytest.approx(1.1 / 1.52 - 1)) == tuple(
        speedup[name] for name in ("judgement", "ground", "change")
    )
    assert speedup["low"] < speedup["change"] < speedup["high"] < 0


def test_every_row(api):
    """With `all=true` each case of either side is listed once."""
    found = compare(api, library.run_id(0), library.run_id(1), all=True).json()

    assert sum(found["counts"].values()) == len(found["changes"])
    assert {"resnet18", "resnet50", "mlp", "conv"} == {each["model"] for each in found["changes"]}


def test_api_says_what_the_harness_says(api):
    """Verdicts and counts are those of `harness.compare` on the points of both runs."""
    queries: Queries = api.app.state.queries
    names = [library.run_id(number) for number in (1, 2)]

    expected = judged(*[queries.points(name) for name in names])

    found = compare(api, *names, all=True).json()
    assert {verdict.value: count for verdict, count in expected.counts.items()} == found["counts"]
    assert {each.point.model: each.verdict.value for each in expected.changes} == {
        each["model"]: each["verdict"] for each in found["changes"]
    }
    assert 1 == found["counts"][Verdict.REGRESSED]


def test_means_of_the_models_that_both_have(api):
    """A cohort has the means of the models that are valid on both sides, and says who is left out and why."""
    found = compare(api, library.run_id(0), library.run_id(library.CRASHED)).json()["cohorts"]

    timm = next(each for each in found if each["suite"] == "timm")
    assert (1, pytest.approx(1.5)) == (timm["models"], timm["these_models"]["base"]["value"])
    assert [{"model": "resnet50", "why": "crash in the head"}] == timm["left_out"]
    assert timm["models_like_these"] is None


def test_means_of_models_like_these_on_request(api):
    """The interval by families is drawn only when asked for; too few families are said to be too few."""
    names = library.run_id(0), library.run_id(1)
    timm = next(each for each in compare(api, *names, like_these=True).json()["cohorts"] if each["suite"] == "timm")

    assert timm["models_like_these"]["ratio"]["reason"].startswith("2 families")


def test_machines_that_differ_are_refused(api):
    """Runs of two machines are not compared: 409 says what differs; `across` compares them and says so too."""
    names = library.run_id(0), library.ELSEWHERE

    refused, across = compare(api, *names), compare(api, *names, across=True).json()

    assert 409 == refused.status_code
    assert "cpu AMD EPYC 7R13 -> Intel Xeon 8488C" in refused.json()["detail"]
    assert "across=true" in refused.json()["detail"]
    assert "different" == across["machine"]
    assert {"field": "cpu", "base": "AMD EPYC 7R13", "head": "Intel Xeon 8488C", "hard": True} in across["differences"]


def test_unknown_side_is_404(api):
    """A side that fits no run is named."""
    answer = compare(api, "latest", "nope")

    assert 404 == answer.status_code
    assert "'nope'" in answer.json()["detail"]


def test_both_sides_are_required(api):
    """A comparison without a head is refused."""
    answer = api.get("/api/v1/compare?base=latest")

    assert (422, "query.head: Field required.") == (answer.status_code, answer.json()["detail"])
