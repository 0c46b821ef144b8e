"""`bench.connect`: results as typed frames, the same from a database and from a server."""

from __future__ import annotations

import subprocess
import sys
from datetime import timedelta

import pandas
import pytest
from pandas.api.types import is_string_dtype

import bench
from bench.client import Client
from harness.errors import BenchError, UsageError
from harness.record import Outcome
from server.store import Store
from tests.server import factory

NIGHTS = 3


def run_id(night: int) -> str:
    return f"0194a3f2-1111-7000-8000-{night:012}"


@pytest.fixture
def filled(store: Store) -> Store:
    """Three nights of three cases: one passes ever faster, one crashes, one is skipped; the last night broke off."""
    cases = [factory.make_case("mlp"), factory.make_case("conv", precision="amp"), factory.make_case("odd_one")]
    for night in range(NIGHTS):
        at = factory.BEGIN + timedelta(days=night)
        branch = "main" if night else None
        run = factory.make_run(cases, id=run_id(night), at=at, skip={"odd_one": "no such device"}, branch=branch)
        store.open(run)
        minute = at + timedelta(minutes=1)
        store.record(factory.make_record(cases[0], speedup=1.25 + night / 4, run_id=run.id, at=minute))
        if night < NIGHTS - 1:
            store.record(factory.make_record(cases[1], Outcome.CRASH, run_id=run.id, at=minute))
            store.close(factory.make_end(run.id, at + timedelta(hours=1)))
    return store


@pytest.fixture
def client(filled: Store, url: str) -> Client:
    return bench.connect(url)


def test_runs(client):
    """Runs are rows, newest first, with moments in UTC and whole counts; what is unknown is absent."""
    runs = client.runs()

    assert [run_id(2), run_id(1), run_id(0)] == runs.run_id.to_list()
    assert factory.BEGIN == runs.started_at[2]
    assert "UTC" == str(runs.started_at.dt.tz)
    assert [3, 1, 1, 0] == runs[["planned", "skipped", "passed", "crashed"]].iloc[0].to_list()
    assert [True, False, False] == runs.ended_at.isna().to_list()
    assert [run_id(1)] == client.runs(branch="main", until="2026-08-14").run_id.to_list()
    assert [run_id(0)] == client.runs(branch="").run_id.to_list()


def test_results(client):
    """Every planned case is a row: what failed, was skipped or is missing has its status, and no numbers."""
    results = client.results()

    assert 3 * NIGHTS == len(results)
    last = results[results.run_id == run_id(2)].set_index("model")
    assert {"mlp": "pass", "conv": "missing", "odd_one": "skipped"} == last.status.to_dict()
    assert "no such device" == last.text["odd_one"]
    assert (1.75, True) == (last.speedup["mlp"], last.valid["mlp"])
    assert last.loc[["conv", "odd_one"], ["speedup", "eager_s", "graphs", "valid", "emulated"]].isna().all(axis=None)
    assert ["conv"] == client.results(run_id(0), model="C*").model.to_list()
    assert {"mlp", "odd_one"} == set(client.results(precision="fp32").model)


def test_series(client):
    """A series is its nights in order, one without a value where the case failed; ratios keep their interval."""
    series = client.series("speedup", suite="toy")

    of_mlp = series[series.model == "mlp"]
    assert [1.25, 1.5, 1.75] == of_mlp.speedup.to_list()
    assert (of_mlp.speedup_low < of_mlp.speedup).all()
    assert of_mlp["at"].is_monotonic_increasing
    of_conv = series[series.model == "conv"]
    assert [("crash", True)] * 2 == list(zip(of_conv.outcome, of_conv.speedup.isna(), strict=True))
    assert [1, 1, 1] == client.series("graphs", model="mlp", since=factory.BEGIN).graphs.to_list()
    assert 2 == client.series(model="mlp", branch="main")["at"].count()


def test_samples(client):
    """A record's pairs come in the order in which they were taken."""
    record_id = client.results(run_id(0), model="mlp").record_id[0]
    samples = client.samples(record_id)

    timing = factory.make_timing(0.02, 1.25)
    assert [*timing.eager_s] == samples.eager_s.to_list()
    assert [*timing.compiled_s] == samples.compiled_s.to_list()
    assert [*timing.eager_first] == samples.eager_first.to_list()
    assert [*range(factory.PAIRS)] == samples.pair.to_list()


def test_types_do_not_hang_on_the_rows(client):
    """A frame without a row has the types of a full one, so that what is written for one night works for any."""
    for full, empty in (
        (client.runs(), client.runs(host="nowhere")),
        (client.results(), client.results(model="nothing")),
        (client.series(), client.series(suite="nothing")),
    ):
        kinds = [{name: type(dtype).__name__ for name, dtype in found.dtypes.items()} for found in (full, empty)]
        assert 0 == len(empty) < len(full)
        assert kinds[0] == kinds[1]
        assert "object" not in map(str, full.dtypes)
    results = client.results()
    assert ["Float64", "Int64", "boolean", "category", "datetime64[us, UTC]"] == [
        str(results[name].dtype) for name in ("speedup", "graphs", "valid", "status", "finished_at")
    ]
    assert is_string_dtype(results.text)


def test_question_that_cannot_be_meant(client):
    """A filter, a metric, a moment or a record that does not exist is a sentence that names what does."""
    with pytest.raises(UsageError, match=r"no filter 'modle'\. Close: mode, model"):
        client.results(modle="mlp")
    with pytest.raises(UsageError, match=r"metric 'sped' is none\. Close: speedup"):
        client.series("sped")
    with pytest.raises(UsageError, match="since='yesterday' is no moment"):
        client.runs(since="yesterday")
    with pytest.raises(BenchError, match="There is no record 'x'"):
        client.samples("x")
    record_id = client.results(run_id(0), model="conv").record_id[0]
    with pytest.raises(BenchError, match="has no samples: nothing was timed"):
        client.samples(record_id)


def test_database_that_is_not_there(tmp_path):
    """Asking a file that is not there does not make it."""
    with pytest.raises(BenchError, match="there is no such file"):
        bench.connect(tmp_path / "none.db")
    assert [] == [*tmp_path.iterdir()]


def test_path_is_a_database(filled, tmp_path):
    """The path of a SQLite file will do for its URL."""
    assert NIGHTS == len(bench.connect(tmp_path / "bench.db").runs())


def test_without_pandas(monkeypatch):
    """Without pandas the remedy is named."""
    monkeypatch.setitem(sys.modules, "pandas", None)

    with pytest.raises(BenchError, match=r"pip install 'compile-bench\[analysis\]'"):
        bench.connect("bench.db")


def test_command_needs_no_pandas():
    """`import bench` brings neither pandas nor a database library, and knows no other names."""
    code = "import sys, bench; print({'pandas', 'sqlalchemy', 'httpx2'} & set(sys.modules), hasattr(bench, 'conect'))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert "set() False\n" == done.stdout


def test_frame_of_a_night_is_what_pandas_makes_of_it(client):
    """The frames are plain pandas: group, pivot and join as usual."""
    speedups = client.series().pivot_table(index="at", columns="model", values="speedup", observed=True)

    assert isinstance(speedups, pandas.DataFrame)
    assert [1.25, 1.5, 1.75] == speedups["mlp"].to_list()
