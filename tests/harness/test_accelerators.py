"""Accelerators through the whole worker path, from a profile that names their class to the marks on a record."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from harness.errors import BenchError
from harness.host import nvml
from harness.host.clocks import Lock, held
from harness.journal import History, Journal
from harness.record import ClockLock, DeviceProfile, Flag, Outcome, Protocol, Record, Stage
from harness.runner import execute
from harness.workers import Stop, Workers
from suites.spec import ModelSpec
from tests.fakes import Driver
from tests.harness.runs import Heard, make_planned, make_run

HELD = Lock(clock_mhz=1410)


@pytest.fixture(scope="module")
def workers() -> Workers:
    workers = Workers(["suites.toy"])
    workers.host(None)
    return workers


@dataclass
class Bench:
    """Measures a model on an accelerator of `tests.fakes`."""

    workers: Workers
    folder: Path

    def __call__(self, kind: str, lock: Lock | None = None, **profile: object) -> Record:
        protocol = Protocol(max_seconds=0.8, precision_target=1e-6, max_pairs=1_000_000)
        planned = make_planned().model_copy(update={"spec": ModelSpec(name="mlp", input_size=(64,))})
        asked = make_run(planned).model_copy(
            update={
                "profile": DeviceProfile(name="fake", kind=f"tests.fakes:{kind}", **profile),
                "protocol": protocol,
            }
        )
        heard = Heard()
        with Journal(self.folder / f"{asked.id}.jsonl") as journal:
            journal.write(asked)
            execute(History(asked), self.workers, journal, [heard], Stop(), lock=lock)
        (record,) = [call for name, call in heard.calls if name == "record"]
        assert isinstance(record, Record)
        return record


@pytest.fixture
def bench(workers: Workers, tmp_path: Path) -> Bench:
    return Bench(workers, tmp_path)


def marks(record: Record) -> set[Flag]:
    return {Flag.THROTTLED, Flag.UNLOCKED, Flag.SHARED} & set(record.derived.flags)


def test_plain(bench: Bench) -> None:
    """An accelerator that works has a time by its own events for each sample, and conditions without any mark."""
    record = bench("Accelerator")
    timing, conditions = record.timing, record.conditions

    assert Outcome.PASS == record.outcome, record.text
    assert timing is not None
    assert conditions is not None
    assert len(timing.eager_s) == len(timing.eager_events_s) == len(timing.compiled_events_s) > 0
    assert all(event <= clock for event, clock in zip(timing.eager_events_s, timing.eager_s, strict=True))
    assert (1410.0, 1410.0, 50.0, 200.0) == (
        conditions.clock_wanted_mhz,
        conditions.clock_median_mhz,
        conditions.temperature_c,
        conditions.power_w,
    )
    assert conditions.readings > 2
    assert conditions.lock is None
    assert set() == marks(record) - {Flag.SHARED}  # time may really be stolen on this machine


def test_throttling(bench: Bench) -> None:
    """One that runs hot is marked, and its record says why and by how much."""
    record = bench("Throttling")
    conditions = record.conditions

    assert conditions is not None
    assert ((("thermal",), 1.0, 93.0)) == (conditions.throttle_reasons, conditions.slow_share, conditions.temperature_c)
    assert Flag.THROTTLED in marks(record)


def test_lost_lock(bench: Bench) -> None:
    """One whose clock leaves the place where it is held is marked as unlocked; where nothing is held it is not."""
    assert Flag.UNLOCKED in marks(bench("Unlocked", HELD))
    assert Flag.UNLOCKED not in marks(bench("Unlocked"))


def test_held_lock(bench: Bench) -> None:
    """One that stays where it is held says so."""
    record = bench("Accelerator", HELD)

    assert record.conditions is not None
    assert ClockLock.HELD == record.conditions.lock
    assert Flag.UNLOCKED not in marks(record)


def test_shared(bench: Bench) -> None:
    """One that somebody else uses is marked, with the program's name."""
    record = bench("Shared")

    assert record.conditions is not None
    assert ("blender",) == record.conditions.foreign_processes
    assert Flag.SHARED in marks(record)


def test_refused_lock(bench: Bench, driver: Driver) -> None:
    """A driver that does not hold the clock costs nothing but a word in the record."""
    driver.change(refuses={"nvmlDeviceSetGpuLockedClocks": 4})
    with held(DeviceProfile(name="p", kind="cuda", lock_clocks=True), nvml.gpus()[0]) as lock:
        record = bench("Accelerator", lock)

    assert record.conditions is not None
    assert (Outcome.PASS, ClockLock.REFUSED) == (record.outcome, record.conditions.lock)


def test_killed_guard(bench: Bench, driver: Driver) -> None:
    """A guard that died during a case leaves a record that is marked as unlocked."""
    with held(DeviceProfile(name="p", kind="cuda", lock_clocks=True, clock_mhz=1410), nvml.gpus()[0]) as lock:
        assert lock is not None
        assert lock.guard is not None
        lock.guard.kill()
        record = bench("Accelerator", lock)

    assert Flag.UNLOCKED in marks(record)


def test_wrong_product(bench: Bench) -> None:
    """Another product than the profile's ends the run: no record can be trusted, and no model is to blame."""
    with pytest.raises(BenchError, match="Profile fake is for A100, and the device here is Fakesoft F100"):
        bench("Accelerator", product="A100")


def test_absent(bench: Bench) -> None:
    """So does a device that does not answer, in its own words."""
    with pytest.raises(BenchError, match="does not answer. Plug it in"):
        bench("Absent")


def test_poisoned(bench: Bench) -> None:
    """An error that spoils the device for its process ends one case, at its stage; the next one is measured."""
    compiling, timing = bench("PoisonedByCompiled"), bench("Poisoned")

    assert (Outcome.FAIL_TO_RUN, Stage.COMPILE) == (compiling.outcome, compiling.stage)
    assert "device-side assert" in (compiling.text or "")
    assert (Outcome.FAIL_TO_RUN, Stage.TIME) == (timing.outcome, timing.stage)
    assert "illegal memory access" in (timing.text or "")
    assert timing.conditions is not None
    assert Outcome.PASS == bench("Accelerator").outcome
