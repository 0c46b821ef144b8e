"""One record as a client of the API asks for it: its samples, its log."""

from __future__ import annotations

import csv
import io

import pytest

from tests.server import library


@pytest.fixture
def records(api):
    """Record ids of the night with the crash, by model."""
    found = api.get(f"/api/v1/runs/{library.run_id(library.CRASHED)}/results").json()
    return {each["model"]: each["record_id"] for each in found}


def test_samples_are_those_of_the_record(api, records):
    """Samples come in pairs, as the record has them."""
    timing = api.get(f"/api/v1/records/{records['resnet18']}").json()["timing"]

    found = api.get(f"/api/v1/records/{records['resnet18']}/samples").json()

    assert {"record_id": records["resnet18"]} | {
        name: timing[name] for name in ("eager_s", "compiled_s", "eager_first")
    } == found


def test_samples_as_csv(api, records):
    """As CSV each pair is a row; numbers are as they were stored."""
    path = f"/api/v1/records/{records['resnet18']}/samples"
    found = api.get(path).json()

    rows = list(csv.DictReader(io.StringIO(api.get(f"{path}?format=csv").text)))

    assert found["eager_s"] == [float(row["eager_s"]) for row in rows]
    assert found["eager_first"] == [row["eager_first"] == "True" for row in rows]


def test_record_that_was_not_timed_has_no_samples(api, records):
    """Where nothing was timed there are no samples, and the answer says so."""
    answer = api.get(f"/api/v1/records/{records['resnet50']}/samples")

    assert 404 == answer.status_code
    assert "has no samples" in answer.json()["detail"]


def test_log_cannot_steer_a_terminal(api, records):
    """A log is plain text: escapes and control characters are shown as signs, and what was cut is counted."""
    answer = api.get(f"/api/v1/records/{records['resnet18']}/log")

    assert "text/plain; charset=utf-8" == answer.headers["content-type"]
    assert "=cmd|'/c calc'!A0 ␛[31mred␛[0m\ndone\n" in answer.text
    assert answer.text.endswith(" bytes were left out ...\nbye\\u009b")
    assert "\x1b" not in answer.text


@pytest.mark.parametrize("part", ["", "/samples", "/log"])
@pytest.mark.parametrize("name", ["nope", "00000000-0000-0000-0000-000000000000", "a%00b"])
def test_record_that_is_not_there(api, part, name):
    """A name of no record is answered with a sentence."""
    answer = api.get(f"/api/v1/records/{name}{part}")

    assert 404 == answer.status_code
    assert answer.json()["detail"].startswith("There is no record ")


def test_samples_have_no_other_form(api, records):
    """Samples are numbers: they come as JSON or CSV, and as nothing that runs code when it is read."""
    answer = api.get(f"/api/v1/records/{records['resnet18']}/samples?format=pickle")

    assert (422, "query.format: Input should be 'json' or 'csv'.") == (answer.status_code, answer.json()["detail"])
