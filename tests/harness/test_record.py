"""The schema: ids, fingerprints, and lines that are what they say."""

from __future__ import annotations

import json
import uuid

import pytest
from pydantic import ValidationError

from harness.record import (
    LINE,
    Case,
    Configuration,
    Derived,
    Environment,
    Mode,
    Planned,
    Precision,
    Stated,
    new_run_id,
    record_id,
)
from harness.stats import STATED, Estimate
from suites.spec import Attention, ModelSpec, Preset
from tests.server.factory import make_case, make_environment, make_record, make_run


def test_case_id_is_its_content() -> None:
    """Equal cases have equal ids, and every field of a case is part of its id."""
    case = make_case()
    assert case.id == make_case().id
    other = {
        **dict.fromkeys(("suite", "model", "device", "backend", "compile_mode", "amp_dtype", "variant"), "other"),
        **dict.fromkeys(("tf32", "dynamic", "deterministic"), True),
        "mode": Mode.TRAINING,
        "precision": Precision.BF16,
        "compile_scope": "step",
        "optimizer": "sgd",
        "attention": "eager",
        "preset": "small",
        "batch_size": 5,
    }
    assert set(other) == set(Case.model_fields)
    ids = {Case.model_validate({**case.model_dump(), name: value}).id for name, value in other.items()}
    assert len(ids | {case.id}) == len(other) + 1


def test_case_id_is_stable() -> None:
    """The id of a case never changes: series hang on it."""
    case = Case(suite="toy", model="mlp", device="cpu", mode=Mode.INFERENCE, precision=Precision.FP32, batch_size=2)
    assert case.id == "4e7f8e92611a1293"


def test_later_fields_leave_ids_as_they_were() -> None:
    """A field that came later, with its default, is no part of an id: older journals keep theirs."""
    case = make_case()
    older = case.model_dump(mode="json", exclude={"attention", "preset"})
    assert (Case.model_validate(older).attention, Case.model_validate(older).preset) == ("fused", "full")
    plain = case.model_copy(update={"attention": Attention.FUSED, "preset": Preset.FULL})
    assert Case.model_validate(older).id == case.id == plain.id
    assert (
        case.configuration.id
        == Configuration.model_validate(
            {name: value for name, value in older.items() if name in Configuration.model_fields}
        ).id
    )
    eager = case.model_copy(update={"attention": Attention.EAGER})
    small = case.model_copy(update={"preset": Preset.SMALL})
    foreign = case.model_copy(update={"variant": "with_cudagraphs"})
    assert len({case.id, eager.id, small.id, foreign.id}) == 4
    assert len({each.configuration.id for each in (case, eager, small, foreign)}) == 4
    assert foreign.label == f"{case.label} with_cudagraphs"
    assert eager.label == f"{case.label} eager attention"
    assert small.label == f"small {case.label}"


def test_numbers_of_what_was_measured() -> None:
    """The figures of a measured case are those of its parts; memory of one that never ran is absent, not zero."""
    record = make_record(make_case())
    failed = make_record(make_case(), "fail_to_run").numbers

    assert record.numbers.speedup == record.derived.speedup
    assert (record.derived.eager_s, record.compile.wall_s) == (
        record.numbers.eager_s,
        record.numbers.compile_wall_s,
    )
    assert (record.memory.eager_peak_bytes, 0) == (record.numbers.eager_peak_bytes, record.numbers.graph_breaks)
    assert (None, None, None) == (failed.speedup, failed.eager_peak_bytes, failed.compile_wall_s)


@pytest.mark.parametrize("comparable", [True, False])
def test_numbers_of_what_is_stated(comparable: bool) -> None:
    """Stated figures are the figures of a case; peaks known to be wrong are left out, their ratio is not."""
    derived = Derived(valid=True, speedup=Estimate(1.5, None, None, None, STATED), memory_ratio=1.25)
    stated = Stated(
        eager_s=0.3, compiled_s=0.2, compiler_s=9.0, eager_peak_bytes=500, graph_breaks=0, memory_comparable=comparable
    )
    numbers = make_record(make_case(), compile=None, memory=None, derived=derived, stated=stated).numbers

    assert (1.5, None) == (numbers.speedup.value, numbers.speedup.bounds)
    assert (0.3, 0.2, None) == (numbers.eager_s.value, numbers.compiled_s.value, numbers.eager_s.bounds)
    assert (None, 0) == (numbers.compile_wall_s, numbers.graph_breaks)
    assert (1.25, 500 if comparable else None) == (numbers.memory_ratio, numbers.eager_peak_bytes)


def test_measured_elsewhere() -> None:
    """A plan of others says how a case ended there, and not how it is run here."""
    case = make_case()
    elsewhere = Planned(case=case, spec=ModelSpec(name=case.model))

    with pytest.raises(ValueError, match="measured elsewhere"):
        _ = elsewhere.orders
    assert 600.0 == make_run([case]).plan[0].orders.timeout_s


def test_environment_of_others() -> None:
    """Nothing need be known of the machine that others measured on; what is known tells it from another."""
    nothing = Environment()

    assert (None, None) == (nothing.host, nothing.cores_usable)
    assert nothing.hard != Environment(product="H100").hard


def test_run_ids_sort_by_time() -> None:
    """Run ids are UUIDs of version 7 and sort by creation to the millisecond."""
    first, second = new_run_id(), new_run_id()
    assert uuid.UUID(first).version == 7
    assert first[:13] <= second[:13]
    assert first != second


def test_record_id_is_derived() -> None:
    """A record's id follows from run, case and attempt, and differs with each."""
    ids = {record_id(*key) for key in (("r", "c", 1), ("r", "c", 2), ("r", "d", 1), ("s", "c", 1))}
    assert len(ids) == 4
    assert record_id("r", "c", 1) in ids


def test_fingerprints() -> None:
    """Another machine or thread count changes the hard fingerprint, another version only the soft one; load neither."""
    here = make_environment()
    assert make_environment(threads=1).hard != here.hard
    newer = make_environment(versions={**here.versions, "torch": "2.15.0"})
    assert (newer.hard, newer.soft != here.soft) == (here.hard, True)
    busy = make_environment(load_average=5.0)
    assert (busy.hard, busy.soft) == (here.hard, here.soft)


def test_lines_say_what_they_are() -> None:
    """Each line carries schema and type, and is read back as what it was."""
    run = make_run(1)
    for line in (run, make_record(run.plan[0].case)):
        text = line.model_dump_json()
        assert json.loads(text)["schema"] == 1
        assert LINE.validate_json(text) == line


def test_unknown_fields_are_refused() -> None:
    """A field that the schema does not know is no silent loss."""
    values = json.loads(make_record(make_case()).model_dump_json()) | {"colour": "red"}
    with pytest.raises(ValidationError, match="colour"):
        LINE.validate_python(values)


def test_no_nan_in_json() -> None:
    """A number that is not finite is null in JSON."""
    text = make_environment(load_average=float("nan")).model_dump_json()
    assert json.loads(text)["load_average"] is None
