"""A small database with some of everything: what the reading half of the API is asked about.

six nights on main, of four cases on one machine; in the fourth resnet50 crashes
one run of a branch, one of another machine, one from a file of another runner
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from harness.record import DeviceProfile, Environment, Flag, Log, Outcome, Record, Run, record_id
from server.store import Store
from tests.server import factory

ADDRESSES = (
    "/api/v1/runs",
    "/api/v1/runs/{run}",
    "/api/v1/runs/{run}/results",
    "/api/v1/runs/{run}/summary",
    "/api/v1/series",
    "/api/v1/summary",
    "/api/v1/facets",
    "/api/v1/compare",
    "/api/v1/records/{record_id}",
    "/api/v1/records/{record_id}/samples",
    "/api/v1/records/{record_id}/log",
)
"""What answers about runs, and ends."""

NIGHTS = 6
CRASHED = 3
"""The night in which resnet50 crashed."""

SPEEDUPS = (1.5, 1.52, 1.1, 1.49, 1.9, 1.51)
"""Of resnet18, night by night: the lowest in the third, the highest in the fifth."""

HARD = factory.make_environment().hard
"""The class of the machine on which the nights ran."""

SPITEFUL = "=cmd|'/c calc'!A0 \x1b[31mred\x1b[0m"
"""A text that a spreadsheet or a terminal would obey."""

CASES = (
    factory.make_case("resnet18", "timm"),
    factory.make_case("resnet50", "timm"),
    factory.make_case("mlp", "toy", "amp", mode="training"),
    factory.make_case("conv", "toy", preset="small"),
)


def run_id(number: int) -> str:
    return f"0194a3f{number:x}-1111-7000-8000-00000000000{number:x}"


BRANCH, ELSEWHERE, FOREIGN = (run_id(number) for number in (10, 11, 12))


def record_ids(night: int = 0) -> list[str]:
    """Of a night's records, in the order of the plan."""
    return [record_id(run_id(night), case.id, 1) for case in CASES[:3]]


def fill(url: str) -> None:
    """Store all of it."""
    store = Store.connect(url)
    for night in range(NIGHTS):
        _store(store, night, branch="main", trigger="nightly", commit=f"c{night}")
    _store(store, 10, branch="fix", commit="f0", trigger=None)
    other = factory.make_environment(host="bench-2", cpu="Intel Xeon 8488C")
    _store(store, 11, branch="main", environment=other, profile=DeviceProfile(name="cpu-x86", kind="cpu"))
    _store(store, 12, source="pytorch_csv", environment=Environment())
    store.dispose()


def _store(store: Store, number: int, **fields: Any) -> None:
    at = factory.BEGIN + timedelta(days=number)
    run = factory.make_run(CASES, id=run_id(number), at=at, skip={"conv": "too large"}, **fields)
    store.open(run)
    store.save(_records(run, number))
    store.close(factory.make_end(run.id, at + timedelta(hours=1)))


def _records(run: Run, number: int) -> list[Record]:
    first, second, third, _ = (planned.case for planned in run.plan)
    same: dict[str, Any] = {"run_id": run.id, "at": run.started_at + timedelta(minutes=1)}
    log = Log(head=f"{SPITEFUL}\r\ndone\n", tail="bye\x9b", bytes=5000)
    ended = Outcome.CRASH if number == CRASHED else Outcome.PASS
    return [
        factory.make_record(first, speedup=SPEEDUPS[number % NIGHTS], log=log, **same),
        factory.make_record(second, ended, speedup=2.0, text=SPITEFUL if number == CRASHED else None, **same),
        factory.make_record(third, speedup=3.0, emulated=True, flags=[Flag.IMPRECISE], **same),
    ]
