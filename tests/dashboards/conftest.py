"""Runs in every state, and a client that asks for their pages."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from dashboards.app import create_app
from harness.record import DeviceProfile, Outcome, Stage, now
from server.settings import Settings
from server.store import Store
from suites.spec import ModelSpec
from tests.server import factory

CONFIGS = Path(__file__).parents[2] / "configs"


@pytest.fixture
def client(url: str) -> TestClient:
    return TestClient(create_app(Settings(database=url)))


@pytest.fixture
def finished(store: Store):
    """A run with a faster and a slower model, two failures of one cause, one skipped, in two configurations."""
    cases = [factory.make_case(name) for name in ("fast", "slow", "broken_a", "broken_b", "never")]
    cases.append(factory.make_case("fast", precision="amp"))
    run = factory.make_run(cases, skip={"never": "over the time limit"})
    store.open(run)
    store.record(factory.make_record(cases[0], speedup=1.5))
    store.record(factory.make_record(cases[1], speedup=0.8))
    store.record(factory.make_record(cases[2], Outcome.FAIL_TO_RUN, text="no operator aten::foo"))
    store.record(factory.make_record(cases[3], Outcome.FAIL_TO_RUN, text="no operator aten::foo"))
    store.record(factory.make_record(cases[4], Outcome.SKIPPED, text="over the time limit"))
    store.record(factory.make_record(cases[5], speedup=8.9, emulated=True))
    store.close(factory.make_end())
    return run


@pytest.fixture
def of_the_announcement(store: Store, tmp_path, monkeypatch):
    """A run of the announcement's configuration, but that the set is two models; in FP32 one is slower compiled."""
    text = (CONFIGS / "references" / "pytorch-2.0.toml").read_text()
    (tmp_path / "references").mkdir()
    small = re.sub(r"\[set\].*?\[rule\]", "[set]\ntoy = 2\n\n[rule]", text, flags=re.S)
    (tmp_path / "references" / "pytorch-2.0.toml").write_text(small)
    monkeypatch.setenv("BENCH_CONFIGS", str(tmp_path))
    same = {"device": "a100", "mode": "training", "compile_mode": "reduce-overhead", "attention": "eager"}
    cases = [factory.make_case(name, precision="fp32", tf32=True, **same) for name in ("a", "b")]
    cases += [factory.make_case(name, precision="amp", amp_dtype="float16", **same) for name in ("a", "b")]
    run = factory.make_run(
        cases,
        profile=DeviceProfile(name="a100", kind="cuda", tf32=True),
        environment=factory.make_environment(product="NVIDIA A100-SXM4-40GB"),
        reference="pytorch-2.0",
    )
    spec = {"spec": ModelSpec(name="a", batch={"training": 4})}
    run = run.model_copy(update={"plan": tuple(planned.model_copy(update=spec) for planned in run.plan)})
    store.open(run)
    for planned, speedup in zip(run.plan, (0.5, 4.0, 1.5, 1.5), strict=True):
        store.record(factory.make_record(planned.case, speedup=speedup))
    store.close(factory.make_end())
    return run


@pytest.fixture
def running(store: Store):
    """A run of three cases: one done, one compiling, one waiting."""
    run = factory.make_run(3, at=now() - timedelta(minutes=2))
    store.open(run)
    store.record(factory.make_record(run.plan[0].case, at=now() - timedelta(minutes=1)))
    start = factory.make_start(run.plan[1].case, at=now() - timedelta(seconds=20))
    store.start(start)
    store.stage(start, Stage.COMPILE)
    return run


@pytest.fixture
def all_emulated(store: Store):
    run = factory.make_run([factory.make_case(name, precision="amp") for name in "ab"])
    store.open(run)
    for planned in run.plan:
        store.record(factory.make_record(planned.case, speedup=8.9, emulated=True))
    store.close(factory.make_end())
    return run


@pytest.fixture
def all_failed(store: Store):
    run = factory.make_run(3)
    store.open(run)
    for planned in run.plan:
        store.record(factory.make_record(planned.case, Outcome.TIMEOUT, text="still compiling after 600 s"))
    store.close(factory.make_end())
    return run
