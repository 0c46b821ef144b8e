"""Faults from public bug reports, through `bench run --model`: each ends as its `expect.json` asks.

Cases that are asked for in the same way are models of one command, as a person would name them.
"""

from __future__ import annotations

import contextlib
import io
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bench import main
from harness.record import Outcome, Record, Run, Side

CASES = Path(__file__).parents[1] / "data" / "cases"

WORDS = {"OOM": "oom", "eager_1st_run_OOM": "oom", "infra_error": "crash", "worker_fail": "crash"}
"""Words of the expectations that are not ours."""

EXPECTED: dict[str, dict[str, Any]] = {
    each.parent.name: json.loads(each.read_text()) for each in sorted(CASES.glob("*/expect.json"))
}
LIMIT_S = {"s12-hang-stuck-when-compiled": 12}
"""Below its own 20 s: the model that hangs takes all of it, the one after it a second."""

USUAL_LIMIT_S = 60
"""What other folders ask for, where they ask."""

TINY = "s10-timing-microsecond-model/tiny.py"
IN_PLACE = "s09-mutation-input-in-place/good.py"
BATCH = "s19-memory-smaller-batch-is-recorded/batch.py"
RANDOM = "s03-rng-seedable-noise/good.py"
LEAKY, VICTIM = (f"s20-state-leak-framework-flags/{name}.py" for name in ("leaky", "victim"))


class Bench:
    """Runs `bench run` over files of the cases, each command once, and keeps what it said of each file."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._said: dict[tuple[str, ...], dict[str, Record]] = {}

    def __call__(self, *options: str, models: list[str]) -> dict[str, Record]:
        """Return the records by file, as `folder/name.py`, in the order in which they ran."""
        named = [word for model in models for word in ("--model", str(CASES / model))]
        backend = () if "--backend" in options else ("--backend", "aot_eager")
        command = ("run", *named, "--device", "cpu", *backend, *options, "--json")
        if command not in self._said:
            self._said[command] = self._run(command)
        return self._said[command]

    def _run(self, command: tuple[str, ...]) -> dict[str, Record]:
        out = io.StringIO()
        with contextlib.chdir(self._folder), contextlib.redirect_stdout(out):
            code = main.run(command)
        lines = [json.loads(line) for line in out.getvalue().splitlines()]
        (run,) = (Run.model_validate(line) for line in lines if line["type"] == "run")
        records = [Record.model_validate(line) for line in lines if line["type"] == "record"]
        files = {each.case.id: str(Path(each.spec.build_name).relative_to(CASES)) for each in run.plan}
        assert len(records) == len(run.plan)
        assert code == (0 if any(record.outcome == Outcome.PASS for record in records) else 4)
        return {files[record.case.id]: record for record in records}


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    return Bench(tmp_path_factory.mktemp("cases"))


def options(folder: str, wanted: dict[str, Any]) -> tuple[str, ...]:
    """Return the options that an expectation asks for."""
    timed = ("--max-seconds", "8") if "latency_ms" in wanted else ("--only-accuracy",)
    precision = "--amp" if wanted["amp"] else "--fp32"
    return ("--mode", wanted["mode"], precision, *timed, "--timeout", str(LIMIT_S.get(folder, USUAL_LIMIT_S)))


def expectations() -> Iterator[tuple[str, str, dict[str, Any]]]:
    for folder, expect in EXPECTED.items():
        for key, wanted in expect.items():
            if isinstance(wanted, dict) and "status_any_of" in wanted:
                yield folder, key, wanted


CHECKED = options("", {"mode": "inference", "amp": False})
TIMED = options("", {"mode": "inference", "amp": False, "latency_ms": {}})

MODELS: dict[tuple[str, ...], list[str]] = {CHECKED: [LEAKY], TIMED: [IN_PLACE]}
"""Options -> all files that are run with them, in one command."""
for _folder, _key, _wanted in expectations():
    MODELS.setdefault(options(_folder, _wanted), []).append(f"{_folder}/{_key.partition('#')[0]}")


@pytest.mark.parametrize(
    ("folder", "key", "wanted"), [pytest.param(*each, id=f"{each[0][:3]}-{each[1]}") for each in expectations()]
)
def test_case(bench: Bench, folder: str, key: str, wanted: dict[str, Any]) -> None:
    """A faulty model ends as a reader of the bug report would want it to."""
    asked = options(folder, wanted)
    record = bench(*asked, models=MODELS[asked])[f"{folder}/{key.partition('#')[0]}"]

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
    if "latency_ms" in wanted:
        _assert_times(record, wanted)


def _assert_times(record: Record, wanted: dict[str, Any]) -> None:
    derived = record.derived
    assert derived.compiled_s is not None
    assert derived.speedup is not None
    assert wanted["latency_ms"]["above"] < derived.compiled_s.value * 1e3 < wanted["latency_ms"]["below"]
    assert wanted["speedup"]["above"] < derived.speedup.value < wanted["speedup"].get("below", math.inf)
    assert derived.speedup.low < derived.speedup.value < derived.speedup.high


def test_every_case_is_run() -> None:
    """No model file of a case is left out; the one with a batch size has a test of its own."""
    run = {file for files in MODELS.values() for file in files}

    assert {str(path.relative_to(CASES)) for path in CASES.glob("*/*.py")} == run | {BATCH}


@pytest.fixture
def checked(bench: Bench) -> dict[str, Record]:
    """The records of all that is checked in inference and FP32."""
    return bench(*CHECKED, models=MODELS[CHECKED])


def test_names_the_leaf(checked: dict[str, Record]) -> None:
    """A failure two levels down names the leaf, its error and what was allowed."""
    record = checked["s01-output-structure-nested-dict-leaf/bad.py"]

    assert record.accuracy is not None
    leaf = record.accuracy.failed[0]
    assert leaf.name == "output.extra.inner.hidden"
    assert leaf.error is not None
    assert leaf.allowed is not None
    assert leaf.error > leaf.allowed


def test_names_both_shapes(checked: dict[str, Record]) -> None:
    """Another number of rows when compiled is a failure with both shapes in the message."""
    record = checked["s07-shape-fewer-rows-when-compiled/bad.py"]

    assert "36" in (record.text or "")
    assert "34" in (record.text or "")


def test_missing_package(checked: dict[str, Record]) -> None:
    """A model that cannot be loaded names what is missing."""
    record = checked["s17-load-fails-missing-package/needs.py"]

    assert "a_package_that_is_not_installed_9d2" in (record.text or "")


def test_own_exception_type(checked: dict[str, Record]) -> None:
    """An exception that cannot be pickled arrives with its words, and nothing is compiled."""
    record = checked["s16-eager-fails-own-exception-type/fails.py"]

    assert record.failure is not None
    assert (record.failure.kind, record.failure.text) == ("Trouble", "input of width 5 is not supported")
    assert record.compile is None


def test_models_run_in_the_order_named(checked: dict[str, Record]) -> None:
    """Models of one's own are run in the order in which they were named."""
    assert [*checked] == MODELS[CHECKED]


def test_microsecond_model(bench: Bench) -> None:
    """A model of microseconds has a finite speedup, and five runs of it agree within a factor of two."""
    wanted = EXPECTED["s10-timing-microsecond-model"]["tiny.py"]
    records = [bench(*TIMED, models=MODELS[TIMED])[TINY]]
    records += [bench("--mode", "inference", "--max-seconds", f"0.{n}", models=[TINY])[TINY] for n in (5, 6, 7, 8)]
    speedups = []
    for record in records:
        _assert_times(record, wanted)
        assert record.timing is not None
        assert record.timing.inner_loops > 1
        speedups.append(record.derived.speedup.value)  # type: ignore[union-attr]

    assert max(speedups) / min(speedups) < wanted["spread_of_5_runs_below"]


def test_input_written_in_place(bench: Bench) -> None:
    """A model that writes into its input sees the first values in every step, and is timed on them."""
    record = bench(*TIMED, models=MODELS[TIMED])[IN_PLACE]

    assert record.observed.mutates_inputs
    assert record.derived.speedup is not None


@pytest.mark.parametrize(("batch_size", "outcome"), [(8, Outcome.OOM), (4, Outcome.PASS)])
def test_batch_is_the_one_asked_for(bench: Bench, batch_size: int, outcome: Outcome) -> None:
    """Out of memory at a batch of 8 is said so; nothing smaller is tried in its place."""
    asked = ("--mode", "inference", "--only-accuracy", "--batch-size", str(batch_size))
    record = bench(*asked, models=[BATCH])[BATCH]

    assert (record.outcome, record.case.batch_size, record.observed.batch_size) == (
        outcome,
        batch_size,
        batch_size if outcome == Outcome.PASS else None,
    )


def test_switches_do_not_leak(bench: Bench, checked: dict[str, Record]) -> None:
    """What one model does to the framework's switches the next one does not see, whichever comes first."""
    reverse = bench("--mode", "inference", "--only-accuracy", models=[VICTIM, LEAKY])
    ran = [[Path(file).name for file in records if file in (LEAKY, VICTIM)] for records in (checked, reverse)]

    assert ran == EXPECTED["s20-state-leak-framework-flags"]["orders"]
    assert {records[VICTIM].outcome for records in (checked, reverse)} == {Outcome.PASS}


@pytest.mark.inductor
def test_same_stream(bench: Bench) -> None:
    """Inductor draws eager's random numbers for a model that draws some, and the record says so."""
    record = bench("--mode", "inference", "--only-accuracy", "--backend", "inductor", models=[RANDOM])[RANDOM]

    assert record.outcome == Outcome.PASS
    assert record.observed.draws_random_numbers
    assert record.compile is not None
    assert record.compile.random_numbers_from_eager
