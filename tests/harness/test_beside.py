"""A run beside published figures: compared only where it is of their configuration, else told in which points not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from harness import beside
from harness.beside import Facts, compare, differences
from harness.record import DeviceProfile, Measure, Outcome, Protocol, Record, Run
from suites.spec import ModelSpec
from tests.server.factory import make_case, make_environment, make_record, make_run

(PYTORCH,) = beside.known()
SMALL = PYTORCH.model_copy(update={"models": {"timm": 3}})
"""The same configuration with a set of three models."""

GPU = "NVIDIA A100-SXM4-40GB"
SAME: dict[str, Any] = {
    "device": "a100",
    "mode": "training",
    "compile_mode": "reduce-overhead",
    "attention": "eager",
    "batch_size": 128,
}
NAMES = ("a", "b", "c")


def run_of(
    names: tuple[str, ...] = NAMES,
    suite: str = "timm",
    precisions: tuple[str, ...] = ("fp32", "amp"),
    product: str | None = GPU,
    kind: str = "cuda",
    protocol: Protocol | None = None,
    skip: dict[str, str] | None = None,
    listed: Mapping[str, int] | None = None,
    reference: str | None = None,
    **fields: Any,
) -> Run:
    """Return a run of the configuration, but for what is given."""
    cases = []
    for precision in precisions:
        formats = {"tf32": True} if precision == "fp32" else {"amp_dtype": "float16"}
        cases += [make_case(name, suite, precision, **{**SAME, **formats, **fields}) for name in names]
    run = make_run(
        cases,
        skip=skip,
        profile=DeviceProfile(name="a100", kind=kind, tf32=True),
        environment=make_environment(product=product),
        protocol=protocol or Protocol(),
        reference=reference,
    )
    batch = {"training": 128, "inference": 128} if listed is None else listed
    plan = [p.model_copy(update={"spec": ModelSpec(name=p.case.model, batch=batch)}) for p in run.plan]
    return run.model_copy(update={"plan": tuple(plan)})


def records_of(
    run: Run, speedups: Mapping[str, float] | None = None, failed: tuple[str, ...] = ()
) -> dict[str, Record]:
    found = {}
    for planned in run.plan:
        case = planned.case
        outcome = Outcome.FAIL_ACCURACY if case.model in failed else Outcome.PASS
        speedup = (speedups or {}).get(f"{case.model} {case.precision}", 1.5)
        if planned.skip is None:
            found[case.id] = make_record(case, outcome, speedup)
    return found


def points(run: Run, records: Mapping[str, Record] | None = None) -> tuple[str, ...]:
    return differences(SMALL, Facts.of(run, records_of(run) if records is None else records))


def test_same_configuration() -> None:
    """A run of the configuration differs in nothing."""
    assert () == points(run_of())


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"product": "NVIDIA H200"}, "device: NVIDIA H200, not A100"),
        ({"product": None}, "device: unknown, not known to be A100"),
        ({"product": None, "kind": "cpu"}, "device: AMD EPYC 7R13, not A100"),
        ({"mode": "inference"}, "mode: inference, not training"),
        ({"tf32": False}, "TF32 in FP32: off, not on"),
        ({"amp_dtype": "bfloat16"}, "format of AMP: bfloat16, not float16"),
        ({"backend": "aot_eager"}, "backend: aot_eager, not inductor"),
        ({"compile_mode": "default"}, "compile mode: default, not reduce-overhead"),
        ({"compile_scope": "step"}, "compile scope: step, not module"),
        ({"optimizer": "adam"}, "optimizer: adam, not none"),
        ({"attention": "fused"}, "attention: fused, not spelled out"),
        ({"preset": "small"}, "preset: small, not full"),
        ({"dynamic": True}, "dynamic shapes: on, not off"),
        ({"deterministic": True}, "deterministic kernels: on, not off"),
        ({"batch_size": 64}, "batch size: 6 of 6 cases have another than the list's"),
        ({"listed": {}}, "batch size: 6 of 6 cases have another than the list's"),
        ({"names": ("a",)}, "models: 1 of 3 of timm"),
        ({"skip": {"b": "too large"}}, "models: 2 of 3 of timm"),
        ({"protocol": Protocol(measure=Measure.PERFORMANCE)}, "accuracy: not checked"),
        ({"protocol": Protocol(measure=Measure.ACCURACY)}, "time: not measured"),
    ],
)
def test_one_point(changes: dict[str, Any], expected: str) -> None:
    """Each point in which a run differs is said by itself, and no other is."""
    assert (expected,) == points(run_of(**changes))


def test_one_precision() -> None:
    """A run in one of the precisions says which are meant; its set is counted in that one."""
    assert ("precision: fp32, not fp32 and amp",) == points(run_of(precisions=("fp32",)))


def test_a_precision_with_fewer_models() -> None:
    """A model counts where both precisions run it."""
    whole = run_of()
    run = whole.model_copy(update={"plan": whole.plan[:-1]})

    assert ("models: 2 of 3 of timm in fp32 and amp",) == points(run)


def test_another_suite() -> None:
    """A suite that is not of the set is named; what the set holds is missing."""
    assert ("models: none of 3 of timm", "models: those of toy, which are not in its set") == points(
        run_of(suite="toy")
    )


def test_half_a_run() -> None:
    """While results are missing nothing is compared."""
    run = run_of()
    some = dict(list(records_of(run).items())[:-1])

    assert ("not complete: some of its cases have no result",) == points(run, some)


def test_a_plain_run_on_a_cpu() -> None:
    """A run as most are differs in many points; each is said once, in the order of a reader's questions."""
    run = run_of(product=None, kind="cpu", precisions=("fp32",), mode="inference", attention="fused", tf32=False)

    assert ["device", "mode", "precision", "TF32 in FP32", "attention"] == [
        each.partition(":")[0] for each in points(run)
    ]


def test_figures_stand_beside_ours() -> None:
    """By the rule: slow-downs raised, failures dropped, averages of the set weighted; pass rate in both precisions."""
    run = run_of()
    speedups = {"a fp32": 0.5, "b fp32": 4.0, "a amp": 2.0, "b amp": 8.0}

    found = compare(SMALL, Facts.of(run, records_of(run, speedups, failed=("c",))))

    assert () == found.differences
    assert ["93 %", "1.21x", "1.51x", "1.43x"] == [each.published.printed for each in found.figures]
    assert [2 / 3, 2.0, 4.0, 3.5] == pytest.approx([each.ours for each in found.figures])
    assert [3, 2, 2, 2] == [each.of for each in found.figures]


def test_nothing_passed() -> None:
    """Where nothing passes there is a pass rate of 0, and no speedup, with the reason."""
    run = run_of()

    rate, *speedups = compare(SMALL, Facts.of(run, records_of(run, failed=NAMES))).figures

    assert (0.0, 3) == (rate.ours, rate.of)
    assert {(None, None)} == {(each.ours, each.of) for each in speedups}
    assert ["no model passes", "no model passes", "amp: no model passes"] == [each.why_not for each in speedups]


def test_no_figures_with_a_difference() -> None:
    """With one difference no figure of ours is given: another GPU has no published figures."""
    run = run_of(product="NVIDIA H200", reference="pytorch-2.0")

    found = compare(SMALL, Facts.of(run, records_of(run)))

    assert (("device: NVIDIA H200, not A100",), ()) == (found.differences, found.figures)


@pytest.mark.parametrize(
    ("changes", "count"),
    [
        ({}, 1),
        ({"mode": "inference"}, 0),
        ({"kind": "cpu", "product": None}, 0),
        ({"kind": "cpu", "product": None, "reference": "pytorch-2.0"}, 1),
        ({"reference": "pytorch-3.0"}, 0),
    ],
)
def test_last_words(changes: dict[str, Any], count: int) -> None:
    """The terminal speaks of the figures after training on CUDA and after `--as`, and not after any other run."""
    run = run_of(**changes)

    assert count == len(beside.comparisons_of(run, records_of(run)))
