"""Runs and their results as a client of the API asks for them: filters, orders, pages."""

from __future__ import annotations

import csv
import io
from urllib.parse import quote

import pytest

from tests.server import library

RUNS = "/api/v1/runs"


def pages(api, path):
    """Follow the Link headers from page to page."""
    while path:
        answer = api.get(path)
        assert 200 == answer.status_code, answer.text
        yield answer.json()
        path = answer.links.get("next", {}).get("url")


def ids(answer):
    return [run["id"] for run in answer.json()]


@pytest.mark.parametrize(
    ("query", "numbers"),
    [
        ("device=cpu-x86", [11]),
        ("host=bench-2", [11]),
        ("host=", [12]),
        ("branch=fix", [10]),
        ("branch=fix&branch=", [12, 10]),
        ("commit=c2", [2]),
        ("commit=c2&commit=c4", [4, 2]),
        ("trigger=nightly&limit=2", [5, 4]),
        ("source=pytorch_csv", [12]),
        ("suite=huggingface", []),
        ("suite=timm&branch=fix", [10]),
        ("since=2026-08-15&until=2026-08-17T01:00:00", [4, 3]),
    ],
)
def test_runs_are_filtered(api, query, numbers):
    """Runs fit all filters, and of each filter any of its words; an empty word is what has none."""
    assert [library.run_id(number) for number in numbers] == ids(api.get(f"{RUNS}?{query}"))


def test_runs_page_by_page(api):
    """Page after page each run comes once, newest first, and the last page has no next."""
    found = [run["id"] for page in pages(api, f"{RUNS}?limit=4&summaries=false") for run in page]

    assert found == ids(api.get(f"{RUNS}?limit=500"))
    assert 9 == len(set(found))


def test_filters_hold_on_every_page(api):
    """The next page keeps the filters of the first."""
    found = list(pages(api, f"{RUNS}?branch=main&limit=3"))

    assert [3, 3, 1] == [len(page) for page in found]
    assert {"main"} == {run["branch"] for page in found for run in page}


def test_run_says_whose_code_it_is_of(api):
    """A run has its branch, commit, trigger and source; what a file does not say is null."""
    newest, *_, first = api.get(RUNS, params={"summaries": False}).json()

    assert ("main", "c0", "nightly", None, "bench-1") == tuple(
        first[name] for name in ("branch", "commit", "trigger", "source", "host")
    )
    assert ("pytorch_csv", None, None) == (newest["source"], newest["host"], newest["cpu"])
    assert [] == newest["summaries"]


def test_counts_are_the_same_with_and_without_summaries(api):
    """The counts of a run do not depend on whether its summaries are asked for."""
    with_them, without = (api.get(RUNS, params={"summaries": flag}).json() for flag in (True, False))

    assert [{**run, "summaries": []} for run in with_them] == without
    assert {4} == {sum(summary["planned"] for summary in run["summaries"]) for run in with_them}


def test_summary_of_a_run(api):
    """A run's summaries are those that it comes with."""
    name = library.run_id(0)

    assert api.get(f"{RUNS}/{name}").json()["summaries"] == api.get(f"{RUNS}/{name}/summary").json()


def results(api, query, number=library.CRASHED):
    answer = api.get(f"{RUNS}/{library.run_id(number)}/results?{query}")
    assert 200 == answer.status_code, answer.text
    return [result["model"] for result in answer.json()]


@pytest.mark.parametrize(
    ("query", "models"),
    [
        ("suite=timm", ["resnet18", "resnet50"]),
        ("model=ResNet*", ["resnet18", "resnet50"]),
        ("model=resnet?8", ["resnet18"]),
        ("model=resnet", []),
        ("model=%25", []),
        ("status=pass", ["resnet18", "mlp"]),
        ("status=crash&status=skipped", ["resnet50", "conv"]),
        ("mode=training", ["mlp"]),
        ("precision=fp32&suite=toy", ["conv"]),
        ("backend=aot_eager", []),
        ("device=cpu&preset=small", ["conv"]),
        ("preset=full", ["resnet18", "resnet50", "mlp"]),
        ("flag=imprecise", ["mlp"]),
        ("flag=emulated&flag=drifting", ["mlp"]),
        ("text=TOO+L", ["conv"]),
        ("text=calc", ["resnet50"]),
        ("text=%25", []),
    ],
)
def test_results_are_filtered(api, query, models):
    """Of a run's planned cases those are answered that fit all filters; a skipped one has its reason as text."""
    assert models == results(api, query)


@pytest.mark.parametrize("sort", ["speedup", "eager_s", "compile_wall_s", "graph_breaks", "compiled_peak_bytes"])
@pytest.mark.parametrize("descending", ["true", "false"])
def test_pages_of_any_order_are_the_whole(api, sort, descending):
    """Row by row, the pages of an order are the whole list, with missing values last in both directions."""
    path = f"{RUNS}/{library.run_id(library.CRASHED)}/results?sort={sort}&descending={descending}"

    whole = [result["model"] for result in api.get(path).json()]

    assert whole == [result["model"] for page in pages(api, f"{path}&limit=1") for result in page]
    assert ["resnet50", "conv"] == whole[2:]


@pytest.mark.parametrize(
    ("sort", "models"),
    [
        ("model", ["conv", "mlp", "resnet18", "resnet50"]),
        ("status", ["resnet50", "resnet18", "mlp", "conv"]),
        ("position", ["resnet18", "resnet50", "mlp", "conv"]),
    ],
)
def test_orders_by_words(api, sort, models):
    """By model, by status and in the order of the plan; ties in the order of the plan."""
    assert models == results(api, f"sort={sort}")
    path = f"{RUNS}/{library.run_id(library.CRASHED)}/results?sort={sort}&limit=3"
    assert models == [result["model"] for page in pages(api, path) for result in page]


@pytest.mark.parametrize(
    "cursor", ["x", "W10", "bnVsbA", "WyJtb2RlbCIsZmFsc2UsMSwxXQ", "WyJwb3NpdGlvbiIsZmFsc2UsTmFOLDFd"]
)
def test_strange_cursor_is_refused(api, cursor):
    """A cursor that is none, of another list or of another order is refused with a sentence."""
    for path in (RUNS, f"{RUNS}/latest/results"):
        answer = api.get(path, params={"cursor": cursor})

        assert 422 == answer.status_code
        assert "cursor" in answer.json()["detail"]


def test_csv_of_results_is_data(api):
    """As CSV each planned case is a row with the columns of the JSON; no cell is a formula, absent is empty."""
    path = f"{RUNS}/{library.run_id(library.CRASHED)}/results"

    answer = api.get(path, params={"format": "csv"})

    rows = list(csv.DictReader(io.StringIO(answer.text)))
    json_rows = api.get(path).json()
    assert "text/csv; charset=utf-8" == answer.headers["content-type"]
    assert [each["model"] for each in json_rows] == [row["model"] for row in rows]
    assert repr(json_rows[0]["speedup"]["low"]) == rows[0]["speedup_low"]
    assert (f"'{library.SPITEFUL}", "", "") == (rows[1]["text"], rows[1]["speedup"], rows[1]["eager_s"])
    assert "imprecise emulated" == rows[2]["flags"]


def test_unknown_parameter_is_refused(api):
    """A parameter with a slip is no filter: the answer names the close one and all that are known."""
    answer = api.get(RUNS, params={"brunch": "main"})

    assert 422 == answer.status_code
    assert answer.json()["detail"].startswith(
        "query.brunch: /api/v1/runs has no such parameter. Close: branch. It knows "
    )


@pytest.mark.parametrize(
    ("query", "where"),
    [
        ("limit=501", "query.limit: Input should be less than or equal to 500."),
        ("since=yesterday", "query.since: "),
        ("since=0001-01-01T00:00:00%2B14:00", "query.since: "),
        ("branch=a%00b", "query.branch: it holds a zero byte."),
        ("offset=1&branch=main", "query.offset: "),
        ("branch=" + "x" * 201, "query.branch.0: "),
    ],
)
def test_values_that_do_not_fit(api, query, where):
    """What is too much, no moment, or no text is refused with where and why."""
    answer = api.get(f"{RUNS}?{query}")

    assert 422 == answer.status_code
    assert answer.json()["detail"].startswith(where)


@pytest.mark.parametrize("name", ["nope", "a\0b", "%", "0194a3f0-1111-7000-8000-00000000000f"])
def test_run_that_is_not_there(api, name):
    """A name that fits no run is answered with a sentence, whatever letters it has."""
    for path in ("", "/results", "/summary"):
        answer = api.get(f"{RUNS}/{quote(name)}{path}")

        assert 404 == answer.status_code
        assert answer.json()["detail"].startswith("There is no run ")
