"""Series, trends and facets as a client of the API asks for them."""

from __future__ import annotations

import csv
import io
from datetime import timedelta

import pytest

from tests.server import factory, library
from tests.server.test_api_runs import pages

SERIES = "/api/v1/series"
NIGHTLY = f"branch=main&hard={library.HARD}"


def series(api, query):
    answer = api.get(f"{SERIES}?{query}")
    assert 200 == answer.status_code, answer.text
    return answer.json()


def test_series_of_a_case(api):
    """A case's series on one machine and branch has a point a night, with interval, outcome and run."""
    (found,) = series(api, f"model=resnet18&{NIGHTLY}")

    (points,) = found["points"]
    assert ("timm", "resnet18", "inference fp32", None, "main", 6) == tuple(
        found[name] for name in ("suite", "model", "label", "source", "branch", "results")
    )
    assert [pytest.approx(value) for value in library.SPEEDUPS] == points["value"]
    assert [pytest.approx(value * 0.985) for value in library.SPEEDUPS] == points["low"]
    assert [library.run_id(night) for night in range(library.NIGHTS)] == points["run"]
    started = factory.BEGIN + timedelta(seconds=10)
    assert [f"{started + timedelta(days=night):%Y-%m-%dT%H:%M:%SZ}" for night in range(library.NIGHTS)] == points["at"]
    assert ("speedup", 6, False, {"pass"}) == (
        points["metric"],
        points["total"],
        points["thinned"],
        set(points["outcome"]),
    )


def test_another_machine_branch_or_source_is_another_series(api):
    """One case has a series for each class of machine, branch and source."""
    found = series(api, "model=resnet18")

    assert 4 == len(found)
    assert 4 == len({(each["hard"], each["branch"], each["source"]) for each in found})
    assert [6, 1, 1, 1] == [each["results"] for each in found]


def test_failed_night_is_a_point_without_a_value(api):
    """A crash stays in the series: its outcome is there, its value is null."""
    found = series(api, f"model=resnet50&{NIGHTLY}")[0]["points"][0]

    assert "crash" == found["outcome"][library.CRASHED]
    assert [None] * 3 == [found[name][library.CRASHED] for name in ("value", "low", "high")]


def test_times_that_are_not_valid_are_null(api):
    """An emulated case has null for its times, and its other figures as they are."""
    asked = f"model=mlp&{NIGHTLY}&metric=speedup&metric=memory_ratio&metric=compile_wall_s"

    speedup, memory, wall = series(api, asked)[0]["points"]

    assert {None} == {*speedup["value"], *speedup["low"]}
    assert [pytest.approx(64 / 48)] * library.NIGHTS == memory["value"]
    assert ([27.3] * library.NIGHTS, [None] * library.NIGHTS) == (wall["value"], wall["low"])


def test_series_within_a_time(api):
    """`since` belongs to the time, `until` does not; heads speak of all time."""
    since, until = (f"{factory.BEGIN + timedelta(days=n, seconds=10):%Y-%m-%dT%H:%M:%S}" for n in (1, 3))

    found = series(api, f"model=resnet18&{NIGHTLY}&since={since}&until={until}")[0]

    assert [library.run_id(1), library.run_id(2)] == found["points"][0]["run"]
    assert 6 == found["results"]


def test_time_without_results(api):
    """A series without a result in that time has no points, and is there."""
    found = series(api, "model=resnet18&since=2030-01-01")

    assert [(0, [])] * 4 == [(each["points"][0]["total"], each["points"][0]["value"]) for each in found]


def test_thinned_series_keeps_what_stands_out(api):
    """Of more points than were asked for, the first, the last, the lowest and the highest stay."""
    points = series(api, f"model=resnet18&{NIGHTLY}&points=5")[0]["points"][0]

    assert (6, True) == (points["total"], points["thinned"])
    assert [pytest.approx(each) for each in (1.5, 1.1, 1.9, 1.51)] == points["value"]


def test_series_page_by_page(api):
    """Page after page each series comes once."""
    found = [each["id"] for page in pages(api, f"{SERIES}?limit=5") for each in page]

    assert sorted(set(found)) == found
    assert found == [each["id"] for each in series(api, "limit=200&points=100")]


def test_series_by_id_and_case(api):
    """Single series are asked for by their ids, or by the id of their case."""
    first, second = (each["id"] for each in series(api, "limit=2"))

    assert [second] == [each["id"] for each in series(api, f"series={second}")]
    assert [first, second] == [each["id"] for each in series(api, f"series={second}&series={first}")]
    assert {"mlp"} == {each["model"] for each in series(api, f"case={library.CASES[2].id}")}


def test_too_many_points_are_refused(api):
    """An answer that would be too long is refused with what to do."""
    answer = api.get(SERIES, params={"limit": 200, "points": 5000})

    assert 422 == answer.status_code
    assert "Ask for fewer points" in answer.json()["detail"]


def test_csv_of_series(api):
    """As CSV each point is a row."""
    answer = api.get(f"{SERIES}?model=resnet50&format=csv&{NIGHTLY}")

    rows = list(csv.DictReader(io.StringIO(answer.text)))
    assert library.NIGHTS == len(rows)
    assert ("resnet50", "speedup", "crash", "") == tuple(
        rows[library.CRASHED][name] for name in ("model", "metric", "outcome", "value")
    )


def test_trend_of_a_suite(api):
    """A suite in a configuration has a point a run: its counts and its geometric mean."""
    found = api.get(f"/api/v1/summary?suite=timm&{NIGHTLY}").json()[0]

    passed = [2] * library.NIGHTS
    passed[library.CRASHED] = 1
    assert ("timm", "inference fp32", 6, False) == tuple(found[name] for name in ("suite", "label", "total", "thinned"))
    assert passed == found["passed"]
    assert [library.run_id(night) for night in range(library.NIGHTS)] == found["run"]
    assert pytest.approx((1.5 * 2.0) ** 0.5) == found["speedup"][0]
    assert (1, pytest.approx(1.49)) == (found["n"][library.CRASHED], found["speedup"][library.CRASHED])


def test_trend_agrees_with_the_runs(api):
    """A point of a trend is the summary of its run."""
    for trend in api.get("/api/v1/summary?limit=100").json():
        for place, run in enumerate(trend["run"]):
            summary = next(
                each
                for each in api.get(f"/api/v1/runs/{run}/summary").json()
                if (each["suite"], each["configuration_id"]) == (trend["suite"], trend["configuration_id"])
            )
            mean = summary["speedup"] and summary["speedup"]["value"]
            assert (summary["passed"], summary["planned"], mean) == (
                trend["passed"][place],
                trend["planned"][place],
                trend["speedup"][place],
            )


def test_trends_page_by_page(api):
    """Page after page each trend comes once."""

    def names(found):
        return [tuple(each[name] for name in ("suite", "label", "hard", "source", "branch")) for each in found]

    paged = [name for page in pages(api, "/api/v1/summary?limit=3") for name in names(page)]
    assert paged == names(api.get("/api/v1/summary?limit=100").json())
    assert 8 == len(set(paged))


def test_facets_count_series(api):
    """Facets say which values have data, with how many series; null is what has none."""
    found = api.get("/api/v1/facets").json()

    assert [{"value": "timm", "series": 8}, {"value": "toy", "series": 4}] == found["suite"]
    assert {("main", 6), ("fix", 3), (None, 3)} == {(each["value"], each["series"]) for each in found["branch"]}
    assert {("pytorch_csv", 3), (None, 9)} == {(each["value"], each["series"]) for each in found["source"]}
    assert [{"value": "full", "series": 12}] == found["preset"]
    assert [{"value": "pass", "series": 12}] == found["status"]


def test_facet_is_not_narrowed_by_itself(api):
    """A filter narrows every facet but its own, so that another value can be chosen."""
    found = api.get("/api/v1/facets", params={"suite": "toy", "model": "r*"}).json()

    assert [{"value": "timm", "series": 8}] == found["suite"]
    assert [{"value": "mlp", "series": 4}] == found["model"]
    assert [] == found["mode"]


def test_values_of_facets_are_filters(api):
    """Each value that a facet names leaves as many series as it says."""
    for name, values in api.get("/api/v1/facets").json().items():
        for each in values:
            found = api.get(SERIES, params={name: each["value"] or "", "limit": 200, "points": 5}).json()
            assert each["series"] == len(found), (name, each)
