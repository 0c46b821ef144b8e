"""Who answers, and the parameters that several addresses share."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any

from fastapi import Depends, Path, Query, Request, params
from fastapi.dependencies.utils import get_flat_params
from pydantic import AfterValidator, StringConstraints

from harness.errors import close_to
from harness.record import Flag, Outcome
from server.queries import Queries
from server.reading.cursor import MOST
from server.reading.errors import BadQuestion
from server.reading.filters import CaseFilter, ResultFilter, RunFilter, SeriesFilter, Span
from server.schemas import Status

LONGEST = 200
"""Characters of a word in a filter."""

MANY = 100
"""Words of one filter."""

MOST_POINTS = 5000
"""Points of one series."""


def queries(request: Request) -> Queries:
    found: Queries = request.app.state.queries
    return found


def exact(request: Request) -> None:
    """Refuse parameters that an address does not know: a filter with a slip would else be no filter at all.

    Raises:
        BadQuestion: there is one; or a value holds a zero byte, which no text in a database can.
    """
    route = request.scope["route"]
    path = route.path_format
    # Of the route, not of the description: that takes a third of a second to make, which the first to ask would wait.
    taken = get_flat_params(route.dependant)
    known = sorted(each.alias for each in taken if isinstance(each.field_info, params.Query))
    for name, value in request.query_params.multi_items():
        if name not in known:
            knows = f"It knows {', '.join(known)}." if known else "It knows none."
            raise BadQuestion(f"query.{name}: {path} has no such parameter.{close_to(name, known)} {knows}")
        if "\0" in value:
            raise BadQuestion(f"query.{name}: it holds a zero byte. Leave that out.")


def _utc(value: datetime) -> datetime:
    """A moment without a zone is one of UTC."""
    try:
        return value.astimezone(UTC) if value.tzinfo else value.replace(tzinfo=UTC)
    except OverflowError:
        raise ValueError("is outside of the years 1 to 9999") from None


def words(about: str, *examples: str) -> Any:
    """A filter that may be given several times: any of its words will do."""
    return Query(max_length=MANY, description=about, examples=list(examples))


Word = Annotated[str, StringConstraints(max_length=LONGEST)]
Moment = Annotated[datetime, AfterValidator(_utc)]
Asked = Annotated[Queries, Depends(queries)]
Cursor = Annotated[
    str | None, Query(max_length=2000, description="Where the list goes on: from the Link header of the page before.")
]
Limit = Annotated[int, Query(ge=1, le=MOST, description="Rows of a page.")]
RunName = Annotated[
    str, Path(max_length=LONGEST, description="Its id, a unique prefix of it, or `latest`.", examples=["latest"])
]
RecordName = Annotated[str, Path(max_length=LONGEST, description="As results name it: record_id.")]

_UNNAMED = "An empty word: where none was named."
_MODEL = "A name, or a pattern with * and ?; in any case of letters."

Suites = Annotated[list[Word], words("Suite.", "timm")]
Models = Annotated[list[Word], words(_MODEL, "resnet*")]
Devices = Annotated[list[Word], words("Device profile.", "cpu-x86")]
Modes = Annotated[list[Word], words("Mode.", "inference")]
Precisions = Annotated[list[Word], words("Precision.", "amp")]
Backends = Annotated[list[Word], words("Backend.", "inductor")]
Presets = Annotated[list[Word], words("How large the models are.", "full")]
Branches = Annotated[list[Word], words(f"Branch of the code under test. {_UNNAMED}", "main")]
Sources = Annotated[list[Word], words("Foreign format. An empty word: what was measured by us.", "")]
Hards = Annotated[list[Word], words("Class of machine: the hard fingerprint of its environment.")]
Since = Annotated[Moment | None, Query(description="From this moment on, UTC where it names no zone.")]
Until = Annotated[Moment | None, Query(description="Up to and without this moment.")]
Points = Annotated[int, Query(ge=5, le=MOST_POINTS, description="Points of one series; more are thinned.")]


def run_filter(
    device: Devices = [],  # noqa: B006 - FastAPI copies it
    suite: Suites = [],  # noqa: B006
    branch: Branches = [],  # noqa: B006
    commit: Annotated[list[Word], words("Commit of the code under test, whole.")] = [],  # noqa: B006
    trigger: Annotated[list[Word], words(f"Why it ran. {_UNNAMED}", "nightly")] = [],  # noqa: B006
    source: Sources = [],  # noqa: B006
    host: Annotated[list[Word], words("Name of the machine.")] = [],  # noqa: B006
    since: Since = None,
    until: Until = None,
) -> RunFilter:
    return RunFilter(
        device=tuple(device),
        suite=tuple(suite),
        branch=tuple(branch),
        commit=tuple(commit),
        trigger=tuple(trigger),
        source=tuple(source),
        host=tuple(host),
        span=Span(since, until),
    )


def case_filter(
    suite: Suites = [],  # noqa: B006
    model: Models = [],  # noqa: B006
    device: Devices = [],  # noqa: B006
    mode: Modes = [],  # noqa: B006
    precision: Precisions = [],  # noqa: B006
    backend: Backends = [],  # noqa: B006
    preset: Presets = [],  # noqa: B006
) -> CaseFilter:
    return CaseFilter(*map(tuple, (suite, model, device, mode, precision, backend, preset)))


def result_filter(
    cases: Annotated[CaseFilter, Depends(case_filter)],
    status: Annotated[list[Status], Query(max_length=MANY, description="How the case stands.")] = [],  # noqa: B006
    flag: Annotated[list[Flag], Query(max_length=MANY, description="With one of these marks.")] = [],  # noqa: B006
    text: Annotated[str, Query(max_length=LONGEST, description="Part of the text, in any case of letters.")] = "",
) -> ResultFilter:
    return ResultFilter(cases, tuple(status), tuple(flag), text)


def summary_filter(
    cases: Annotated[CaseFilter, Depends(case_filter)],
    branch: Branches = [],  # noqa: B006
    source: Sources = [],  # noqa: B006
    hard: Hards = [],  # noqa: B006
) -> SeriesFilter:
    return SeriesFilter(cases, tuple(branch), tuple(source), tuple(hard))


Series = Annotated[
    list[Annotated[int, Query(ge=1, lt=1 << 63)]], Query(max_length=MANY, description="These alone, by id.")
]


def series_filter(
    summaries: Annotated[SeriesFilter, Depends(summary_filter)],
    status: Annotated[list[Outcome], Query(max_length=MANY, description="How the newest result ended.")] = [],  # noqa: B006
    series: Series = [],  # noqa: B006
    case: Annotated[list[Word], words("Case, by id.")] = [],  # noqa: B006
) -> SeriesFilter:
    of = summaries
    return SeriesFilter(of.cases, of.branch, of.source, of.hard, tuple(status), tuple(series), tuple(case))


def span(since: Since = None, until: Until = None) -> Span:
    return Span(since, until)
