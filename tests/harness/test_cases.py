"""Faults from public bug reports, through the worker: each ends as its `expect.json` asks."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.journal import History, Journal
from harness.record import Case, Measure, Outcome, Planned, Protocol, Record, Side
from harness.runner import execute
from harness.workers import Stop, Workers
from suites import user
from suites.spec import Mode, Precision
from tests.harness.runs import Heard, make_run

CASES = Path(__file__).parents[1] / "data" / "cases"

WORDS = {"OOM": "oom", "eager_1st_run_OOM": "oom", "infra_error": "crash", "worker_fail": "crash"}
"""Words of the expectations that are not ours."""

BACKEND = "aot_eager"
"""Traces forward and backward as inductor does, and generates no code."""

TIME_LIMIT_S = 12.0

SPECIAL = {
    "s10-timing-microsecond-model",
    "s11-timing-periodic-spikes",
    "s19-memory-smaller-batch-is-recorded",
    "s20-state-leak-framework-flags",
}
"""Have tests of their own below."""


@pytest.fixture(scope="module")
def workers() -> Workers:
    workers = Workers([])
    workers.host(None)
    return workers


Measured = Callable[..., list[Record]]


@pytest.fixture
def measured(workers: Workers, tmp_path: Path) -> Measured:
    def run(
        folder: str,
        *names: str,
        mode: Mode = Mode.INFERENCE,
        precision: Precision = Precision.FP32,
        timing: bool = False,
        backend: str = BACKEND,
        batch_size: int | None = None,
        timeout_s: float = 60.0,
        max_seconds: float = 1.0,
    ) -> list[Record]:
        suite = user.suite([CASES / folder / name for name in names])
        plan = [
            Planned(
                case=Case(
                    suite="user",
                    model=spec.name,
                    device="cpu",
                    mode=mode,
                    precision=precision,
                    amp_dtype="bfloat16" if precision == Precision.AMP else None,
                    backend=backend,
                    batch_size=batch_size,
                ),
                spec=spec,
                module=suite.module,
                tolerance=suite.tolerance[mode],
                timeout_s=timeout_s,
            )
            for spec in suite.models
        ]
        protocol = Protocol(
            measure=Measure.ALL if timing else Measure.ACCURACY, max_seconds=max_seconds, memory_limit_bytes=8 << 30
        )
        asked = make_run(*plan).model_copy(update={"protocol": protocol})
        heard = Heard()
        with Journal(tmp_path / f"{asked.id}.jsonl") as journal:
            journal.write(asked)
            execute(History(asked), workers, journal, [heard], Stop())
        return [call for name, call in heard.calls if name == "record"]  # type: ignore[misc]

    return run


def expectations() -> Iterator[Any]:
    for folder in sorted(CASES.iterdir()):
        if not folder.is_dir() or folder.name in SPECIAL:
            continue
        expect = json.loads((folder / "expect.json").read_text())
        for key, wanted in expect.items():
            if isinstance(wanted, dict):
                yield pytest.param(folder.name, key.partition("#")[0], wanted, expect, id=f"{folder.name[:3]}-{key}")


@pytest.mark.parametrize(("folder", "name", "wanted", "expect"), list(expectations()))
def test_case(measured: Measured, folder: str, name: str, wanted: dict[str, Any], expect: dict[str, Any]) -> None:
    """A faulty model ends as a reader of the bug report would want it to."""
    record = measured(
        folder,
        name,
        mode=Mode(wanted["mode"]),
        precision=Precision.AMP if wanted["amp"] else Precision.FP32,
        timeout_s=min(TIME_LIMIT_S, expect["limit_s"]) if folder.startswith("s12") else 60.0,
    )[0]

    assert record.outcome in {WORDS.get(word, word) for word in wanted["status_any_of"]}, record.text
    assert record.outcome not in {WORDS.get(word, word) for word in wanted.get("status_none_of", [])}
    if record.outcome == Outcome.OOM:
        assert record.side == Side.EAGER
    if "graph_breaks_at_least" in wanted:
        assert record.compile is not None
        assert record.compile.graph_breaks >= wanted["graph_breaks_at_least"]
        assert record.compile.operators > 0
    if "output_dtype" in wanted:
        assert record.observed.output_dtypes == (wanted["output_dtype"],)
        assert record.case.amp_dtype == ("bfloat16" if wanted["amp"] else None)
    if "second_output" in wanted:
        assert record.observed.training is False


def _assert_times(record: Record, wanted: dict[str, Any]) -> None:
    derived = record.derived
    assert derived.compiled_s is not None
    assert derived.speedup is not None
    assert wanted["latency_ms"]["above"] < derived.compiled_s.value * 1e3 < wanted["latency_ms"]["below"]
    assert wanted["speedup"]["above"] < derived.speedup.value < wanted["speedup"].get("below", math.inf)


def test_names_the_leaf(measured: Measured) -> None:
    """A failure two levels down names the leaf, its error and what was allowed."""
    record = measured("s01-output-structure-nested-dict-leaf", "bad.py")[0]

    assert record.accuracy is not None
    leaf = record.accuracy.failed[0]
    assert leaf.name == "output.extra.inner.hidden"
    assert leaf.error is not None
    assert leaf.allowed is not None
    assert leaf.error > leaf.allowed


def test_names_both_shapes(measured: Measured) -> None:
    """Another number of rows when compiled is a failure with both shapes in the message."""
    record = measured("s07-shape-fewer-rows-when-compiled", "bad.py")[0]

    assert "36" in (record.text or "")
    assert "34" in (record.text or "")


def test_microsecond_model(measured: Measured) -> None:
    """A model of microseconds has a finite speedup, and five runs of it agree within a factor of two."""
    wanted = json.loads((CASES / "s10-timing-microsecond-model" / "expect.json").read_text())["tiny.py"]
    speedups = []
    for _ in range(5):
        record = measured("s10-timing-microsecond-model", "tiny.py", timing=True)[0]
        assert record.outcome == Outcome.PASS
        _assert_times(record, wanted)
        assert record.timing is not None
        assert record.timing.inner_loops > 1
        speedups.append(record.derived.speedup.value)  # type: ignore[union-attr]
    assert max(speedups) / min(speedups) < wanted["spread_of_5_runs_below"]


def test_spikes(measured: Measured) -> None:
    """Calls that stall now and then move neither the typical time nor the speedup, and the interval says how far."""
    wanted = json.loads((CASES / "s11-timing-periodic-spikes" / "expect.json").read_text())["spiky.py"]
    record = measured("s11-timing-periodic-spikes", "spiky.py", timing=True, max_seconds=8.0)[0]

    assert record.outcome == Outcome.PASS
    _assert_times(record, wanted)
    assert record.derived.speedup is not None
    assert record.derived.speedup.low < record.derived.speedup.value < record.derived.speedup.high


def test_input_written_in_place(measured: Measured) -> None:
    """A model that writes into its input sees the first values in every step, and is timed on them."""
    record = measured("s09-mutation-input-in-place", "good.py", timing=True)[0]

    assert record.observed.mutates_inputs
    assert record.derived.speedup is not None


@pytest.mark.parametrize(("batch_size", "outcome"), [(8, Outcome.OOM), (4, Outcome.PASS)])
def test_batch_is_the_one_asked_for(measured: Measured, batch_size: int, outcome: Outcome) -> None:
    """Out of memory at a batch of 8 is said so; nothing smaller is tried in its place."""
    record = measured("s19-memory-smaller-batch-is-recorded", "batch.py", batch_size=batch_size)[0]

    assert (record.outcome, record.case.batch_size, record.observed.batch_size) == (
        outcome,
        batch_size,
        batch_size if outcome == Outcome.PASS else None,
    )


@pytest.mark.parametrize("order", [("leaky.py", "victim.py"), ("victim.py", "leaky.py")])
def test_switches_do_not_leak(measured: Measured, order: tuple[str, str]) -> None:
    """What one model does to the framework's switches the next one does not see."""
    records = {r.case.model: r for r in measured("s20-state-leak-framework-flags", *order)}

    assert records["victim"].outcome == Outcome.PASS


def test_same_stream(measured: Measured) -> None:
    """Inductor draws eager's random numbers for a model that draws some, and the record says so."""
    record = measured("s03-rng-seedable-noise", "good.py", backend="inductor")[0]

    assert record.outcome == Outcome.PASS
    assert record.observed.draws_random_numbers
    assert record.compile is not None
    assert record.compile.random_numbers_from_eager


def test_missing_package(measured: Measured) -> None:
    """A model that cannot be loaded names what is missing, and the next one runs."""
    needs, after = measured("s17-load-fails-missing-package", "needs.py", "after.py")

    assert "a_package_that_is_not_installed_9d2" in (needs.text or "")
    assert after.outcome == Outcome.PASS


def test_own_exception_type(measured: Measured) -> None:
    """An exception that cannot be pickled arrives with its words, and nothing is compiled."""
    record = measured("s16-eager-fails-own-exception-type", "fails.py")[0]

    assert record.failure is not None
    assert (record.failure.kind, record.failure.text) == ("Trouble", "input of width 5 is not supported")
    assert record.compile is None
