"""Every address that only reads, asked whatever its description allows, and what it does not."""

from __future__ import annotations

from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.checks import (
    content_type_conformance,
    not_a_server_error,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.server import library

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
QUESTIONS = {"sqlite": 6, "postgresql": 2}
"""To each address, of either kind."""

RUNS = ("latest", library.run_id(0), library.run_id(library.CRASHED), library.ELSEWHERE[:8], library.FOREIGN)


@pytest.fixture(scope="session")
def names(api) -> dict[str, Any]:
    """For parameters that name something: names of what is there."""
    found = api.get(f"/api/v1/runs/{library.run_id(library.CRASHED)}/results").json()
    records = [each["record_id"] for each in found if each["record_id"]]
    runs = st.sampled_from(RUNS)
    return {"run": runs, "base": runs, "head": runs, "record_id": st.sampled_from(records)}


def sensible(case: Any, names: dict[str, Any], draw: Any) -> None:
    """Have a question name what is there, and go on from nowhere: else nearly all would end at the first refusal."""
    for values in (case.path_parameters, case.query):
        for name in set(values or ()) & set(names):
            values[name] = draw(names[name])
    (case.query or {}).pop("cursor", None)


def statuses(operation: Any, mode: GenerationMode, number: int, names: dict[str, Any] | None) -> set[int]:
    """Ask so many questions, hold each answer against the description, and return the statuses there were."""
    seen: set[int] = set()

    @settings(
        max_examples=number,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=mode), data=st.data())
    def ask(case, data):
        if names:
            sensible(case, names, data.draw)
        response = case.call()
        case.validate_response(response, checks=CHECKS)
        seen.add(response.status_code)

    ask()
    return seen


@pytest.mark.parametrize(
    ("mode", "sense"),
    [(GenerationMode.POSITIVE, True), (GenerationMode.POSITIVE, False), (GenerationMode.NEGATIVE, True)],
)
def test_answers_are_as_described(api, names, request, mode, sense):
    """No question breaks the server, and each answer is one that the description knows, in the form it says."""
    schema = schemathesis.openapi.from_asgi("/api/v1/openapi.json", api.app)
    number = QUESTIONS[request.node.callspec.params["api"]]
    found = [each.ok() for each in schema.include(method="GET", path=list(library.ADDRESSES)).get_all_operations()]

    seen = {each.path: statuses(each, mode, number, names if sense else None) for each in found}

    assert {*library.ADDRESSES} == {*seen}
    if sense and mode == GenerationMode.POSITIVE:
        assert all(200 in found for found in seen.values()), seen
