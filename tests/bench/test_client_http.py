"""How a server is asked for rows: page by page, with a token, and what is said when it does not answer."""

from __future__ import annotations

import warnings
from datetime import UTC, datetime, timedelta

import httpx2
import pytest
from pandas.testing import assert_frame_equal

import bench
from bench.client_http import Server
from bench.serve import start_in_background
from harness.errors import BenchError
from harness.record import Outcome
from server.analysis import SAMPLE_COLUMNS, Asked, series_columns
from tests.server import factory

SERIES = {
    "id": 7,
    "case_id": "c0ffee",
    "suite": "toy",
    "model": "mlp",
    "label": "inference fp32",
    "device": "cpu",
    "mode": "inference",
    "precision": "fp32",
    "backend": "inductor",
    "batch_size": 4,
    "hard": "51106d941ae48500",
    "source": None,
    "branch": "main",
    "points": [
        {
            "total": 2,
            "thinned": False,
            "at": ["2026-08-12T01:00:00Z", "2026-08-13T01:00:00Z"],
            "value": [1.25, None],
            "low": [1.2, None],
            "high": [1.3, None],
            "outcome": ["pass", "crash"],
            "run": ["a", "b"],
        }
    ],
}


def server(answer, token=None) -> Server:
    return Server("https://bench.example.org/", token, httpx2.MockTransport(answer))


def test_pages_are_read_to_the_end():
    """A list goes on where the Link header says, and each point of each series is a row."""
    asked = []

    def answer(request):
        asked.append(request.url)
        links = {} if "cursor" in request.url.params else {"Link": '</api/v1/series?cursor=x>; rel="next"'}
        return httpx2.Response(200, json=[SERIES], headers=links)

    rows = [*server(answer).series("speedup", Asked(words={"suite": ("toy", "timm"), "branch": ("",)}))]

    assert 4 == len(rows)
    first, failed = (dict(zip(series_columns("speedup"), row, strict=True)) for row in rows[:2])
    assert (7, 1.25, 1.2, "a") == tuple(first[name] for name in ("series", "speedup", "speedup_low", "run_id"))
    assert datetime(2026, 8, 12, 1, tzinfo=UTC) == first["at"]
    assert ("crash", None, None) == (failed["outcome"], failed["speedup"], failed["speedup_high"])
    assert ["toy", "timm"] == asked[0].params.get_list("suite")
    assert [""] == asked[0].params.get_list("branch")
    assert "/api/v1/series?cursor=x" == asked[1].raw_path.decode()


def test_points_that_the_server_leaves_out_are_told():
    """A series of which the server gives a part is warned of, with the remedy."""
    thinned = SERIES | {"points": [SERIES["points"][0] | {"thinned": True, "total": 9000}]}

    with pytest.warns(UserWarning, match="series 7 has 9000 points, of which the server gives a part"):
        [*server(lambda _: httpx2.Response(200, json=[thinned])).series("speedup", Asked())]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        [*server(lambda _: httpx2.Response(200, json=[SERIES])).series("speedup", Asked())]


@pytest.mark.parametrize("given", ["argument", "variable", "file"])
def test_token(monkeypatch, tmp_path, given):
    """The token is an argument, `BENCH_TOKEN`, or what the file holds that `BENCH_TOKEN_FILE` names."""
    (tmp_path / "token").write_text("s3cret\n")
    if given == "variable":
        monkeypatch.setenv("BENCH_TOKEN", "s3cret")
    if given == "file":
        monkeypatch.setenv("BENCH_TOKEN_FILE", str(tmp_path / "token"))
    seen = []

    def answer(request):
        seen.append(request.headers.get("authorization"))
        return httpx2.Response(200, json={"eager_s": [0.2], "compiled_s": [0.1], "eager_first": [True]})

    (row,) = server(answer, "s3cret" if given == "argument" else None).samples("x")

    assert ["Bearer s3cret"] == seen
    assert {"pair": 0, "eager_s": 0.2, "compiled_s": 0.1, "eager_first": True} == dict(
        zip(SAMPLE_COLUMNS, row, strict=True)
    )


def refuse(request):
    raise httpx2.ConnectError("Connection refused")


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (lambda _: httpx2.Response(401, json={"detail": "no token"}), "wants a token: connect.*BENCH_TOKEN"),
        (lambda _: httpx2.Response(404, json={"detail": "There is no record 'x'."}), "404, There is no record 'x'."),
        (lambda _: httpx2.Response(502, text="<html>"), "502, Bad Gateway. Is this a server of bench"),
        (lambda _: httpx2.Response(200, text="<html>"), "the answer is no JSON. Is this a server of bench"),
        (
            lambda _: httpx2.Response(200, json={"eager_s": [], "compiled_s": [], "eager_first": []}),
            "has no samples: nothing was timed",
        ),
        (refuse, "Connection refused. Check the address, and that the server runs"),
    ],
)
def test_server_that_does_not_answer(answer, said):
    """What keeps a server from answering is a sentence with its address and what to do."""
    with pytest.raises(BenchError, match=said):
        [*server(answer).samples("x")]


@pytest.fixture
def both(store, url):
    """The same database asked directly, and through a server."""
    cases = [factory.make_case("mlp"), factory.make_case("conv", precision="amp"), factory.make_case("odd_one")]
    for night in range(2):
        id_, at = f"0194a3f2-1111-7000-8000-{night:012}", factory.BEGIN + timedelta(days=night)
        run = factory.make_run(
            cases, id=id_, at=at, skip={"odd_one": "no such device"}, branch="main" if night else None
        )
        store.open(run)
        minute = at + timedelta(minutes=1)
        store.record(factory.make_record(cases[0], speedup=1.25 + night / 4, run_id=id_, at=minute))
        store.record(factory.make_record(cases[1], Outcome.CRASH, run_id=id_, at=minute))
        store.close(factory.make_end(id_, at + timedelta(hours=1)))
    process, address = start_in_background(url, port=0)
    yield bench.connect(url), bench.connect(address)
    process.terminate()
    process.communicate()


def test_server_says_what_its_database_says(both):
    """Every question has the same answer from a server as from its database: rows, order and types."""
    for ask in (
        lambda data: data.runs(),
        lambda data: data.runs(branch="", since="2026-08-01"),
        lambda data: data.results(),
        lambda data: data.results(model="C*", branch="main"),
        lambda data: data.results("0194a3f2-1111-7000-8000-000000000001"),
        lambda data: data.series(),
        lambda data: data.series("graphs", model="mlp", until="2026-08-13"),
        lambda data: data.samples(data.results(model="mlp").record_id[0]),
    ):
        mine, theirs = map(ask, both)

        assert len(mine) > 0
        assert_frame_equal(mine, theirs)
