"""A limit of seconds is kept, spread over what there is, and what does not fit is named."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.budget import DEFAULT_S, Fitted, Past, Source, default_s, fit
from harness.errors import UsageError
from harness.record import Case, Outcome, Planned
from suites.spec import MODES, Mode, ModelSpec, Precision, Preset
from tests.server.factory import make_case

LEFT_OUT = "left out: does not fit into --limit-seconds 100"


def planned(name: str, seconds: float | None = None, *, skip: str | None = None, **fields: Any) -> Planned:
    """Return a case `suite/family/model`, or of a model without a family, that its entry says takes so long."""
    suite, *family, model = name.split("/")
    case = make_case(model, suite, **fields)
    if seconds is not None and case.mode == Mode.TRAINING:  # an entry speaks of inference
        seconds *= DEFAULT_S[Preset.FULL, "inductor"][Mode.INFERENCE] / DEFAULT_S[Preset.FULL, "inductor"][case.mode]
    spec = ModelSpec(name=model, family=family[0] if family else None, case_s=seconds)
    return Planned(case=case, spec=spec, module="suites.toy", tolerance=1e-3, timeout_s=1800.0, skip=skip)


def past(case: Case, seconds: float, outcome: Outcome = Outcome.PASS, **fields: Any) -> Past:
    return Past(case.model_copy(update=fields), seconds, outcome)


def chosen(fitted: Fitted) -> list[str]:
    return [each.case.model for each in fitted.plan if each.skip is None]


def expected(one: Planned, *before: Past) -> tuple[float, Source]:
    (found,) = fit([one], before, 1e6).expected
    assert found is not None
    return round(found.seconds, 6), found.source


def test_what_does_not_fit_is_left_out() -> None:
    """The plan stays whole and in its order; what does not fit is skipped and says why."""
    plan = [planned("a/large", 90.0), planned("a/small", 30.0), planned("a/medium", 40.0)]

    fitted = fit(plan, (), 100.0)

    assert [each.case for each in plan] == [each.case for each in fitted.plan]
    assert [LEFT_OUT, None, None] == [each.skip for each in fitted.plan]
    assert [30.0, 40.0] == [each.seconds for each in fitted.fitting]
    assert ["large"] == [each.case.model for each in fitted.left_out]


def test_the_limit_itself_fits() -> None:
    """Cases that take the limit together fit, however the sum rounds."""
    assert 10 == len(chosen(fit([planned(f"a/{i}", 0.1) for i in range(10)], (), 1.0)))


def test_suites_take_turns() -> None:
    """Every suite gets a model before any gets a second, whatever stands first in the plan."""
    plan = [
        *(planned(f"a/{i}", 20.0) for i in range(6)),
        *(planned(f"b/{i}", 20.0) for i in "xyz"),
        planned("c/z", 40.0),
    ]

    assert ["0", "1", "x", "z"] == chosen(fit(plan, (), 100.0))


def test_families_take_turns() -> None:
    """In a suite every family gets its cheapest model before any gets a second."""
    plan = [planned("a/vgg/vgg11", 20.0), planned("a/vgg/vgg13", 21.0), planned("a/resnet/r50", 40.0)]
    plan += [planned("a/resnet/r18", 30.0), planned("a/vit/vit_s", 49.0)]

    assert ["vgg11", "r18", "vit_s"] == chosen(fit(plan, (), 100.0))


def test_models_without_a_family_stand_alone() -> None:
    """Models without a family do not count as one family: the cheapest of them come first."""
    plan = [planned("a/x", 50.0), planned("a/y", 30.0), planned("a/vgg/vgg13", 60.0), planned("a/z", 40.0)]

    assert ["y", "z"] == chosen(fit(plan, (), 100.0))


def test_modes_of_a_model_go_together() -> None:
    """A model is chosen in both modes before the next one is, and in one where the other does not fit."""
    modes = [{"mode": mode} for mode in ("inference", "training")]
    plan = [planned(f"a/{model}", 30.0 + place, **mode) for place, model in enumerate("xyz") for mode in modes]

    assert ["x", "x", "y"] == chosen(fit(plan, (), 100.0))


def test_skipped_cases_cost_nothing() -> None:
    """A case that its entry skips takes no time, keeps its reason, and is not counted as left out."""
    fitted = fit([planned("a/x", 90.0, skip="too large"), planned("a/y", 90.0)], (), 100.0)

    assert ["too large", None] == [each.skip for each in fitted.plan]
    assert (None, ()) == (fitted.expected[0], fitted.left_out)
    assert fit([planned("a/x", skip="too large")], (), 1.0).plan[0].skip == "too large"


def test_of_the_case_itself() -> None:
    """A case is expected to take as long as it took last, however it ended, whatever else is known."""
    one = planned("a/x", 7.0)

    assert (50.0, Source.PAST) == expected(one, past(one.case, 50.0), past(one.case, 5.0, mode=Mode.TRAINING))
    assert (3.0, Source.PAST) == expected(one, past(one.case, 3.0, Outcome.CRASH))


def test_of_its_model() -> None:
    """Else as long as its model took: first in the same mode, the longest, and only where that went through."""
    one = planned("a/x", 7.0)
    amp, fp16 = past(one.case, 50.0, precision=Precision.AMP), past(one.case, 60.0, precision=Precision.FP16)
    other = past(one.case, 165.0, mode=Mode.TRAINING)

    assert (60.0, Source.MODEL) == expected(one, amp, fp16, other)
    assert (67.0, Source.MODEL) == expected(one, other)
    assert (7.0, Source.ENTRY) == expected(one, past(one.case, 5.0, Outcome.CRASH, precision=Precision.AMP))


@pytest.mark.parametrize(
    "other",
    [
        {"preset": Preset.SMALL},
        {"device": "gpu"},
        {"backend": "eager"},
        {"compile_mode": "max-autotune"},
        {"suite": "b"},
        {"model": "y"},
    ],
)
def test_what_says_nothing_of_a_case(other: dict[str, Any]) -> None:
    """Another preset, device, backend, compile mode or model is no measure of a case."""
    one = planned("a/x", 7.0)

    assert (7.0, Source.ENTRY) == expected(one, past(one.case, 50.0, **other))


def test_of_its_entry() -> None:
    """An entry speaks of inference with inductor: others are longer or shorter in proportion to the defaults."""
    entry = planned("a/x", 134.0)
    training = entry.model_copy(update={"case": make_case("x", "a", mode="training")})
    alone = entry.model_copy(update={"case": make_case("x", "a", backend="none")})

    assert (134.0, Source.ENTRY) == expected(entry)
    assert (330.0, Source.ENTRY) == expected(training)
    assert (2 * default_s(alone.case), Source.ENTRY) == expected(alone)


@pytest.mark.parametrize("preset", Preset)
@pytest.mark.parametrize("backend", ["inductor", "aot_eager", "none"])
@pytest.mark.parametrize("mode", MODES)
def test_of_nothing(preset: Preset, backend: str, mode: Mode) -> None:
    """Where nothing is known a default is said to be one: that of the preset, the backend and the mode."""
    one = planned("a/x", preset=preset, backend=backend, mode=mode)

    assert (default_s(one.case), Source.DEFAULT) == expected(one)


def test_defaults_are_in_order() -> None:
    """Small is shorter than full, eager alone shorter than compiled, and training no shorter than inference."""
    for mode in MODES:
        full, small = (
            [DEFAULT_S[preset, kind][mode] for kind in ("none", "compiled by others", "inductor")] for preset in Preset
        )
        assert sorted(full) == full
        assert sorted(small) == small
        assert all(less <= more for less, more in zip(small, full, strict=True))
    assert all(of[Mode.INFERENCE] <= of[Mode.TRAINING] for of in DEFAULT_S.values())


def test_no_longer_than_its_time_limit() -> None:
    """A case that took longer before than it may take now is expected to take what it may."""
    one = planned("a/x").model_copy(update={"timeout_s": 60.0})

    assert (60.0, Source.PAST) == expected(one, past(one.case, 1800.0, Outcome.TIMEOUT))
    assert (60.0, Source.DEFAULT) == expected(one)


@pytest.mark.parametrize("limit_s", [0.0, -1.0, float("nan"), float("inf")])
def test_no_limit(limit_s: float) -> None:
    """A limit is a positive number of seconds."""
    with pytest.raises(UsageError, match=r"--limit-seconds \S+: must be above 0, and finite\."):
        fit([planned("a/x")], (), limit_s)


def test_nothing_fits() -> None:
    """Where nothing fits that is wrong usage, and the cheapest case is named with its seconds."""
    message = r"--limit-seconds 5: nothing fits\. The cheapest case, a/y inference fp32, takes about 20 s \(entry\)\."

    with pytest.raises(UsageError, match=message):
        fit([planned("a/x", 30.0), planned("a/y", 20.0)], (), 5.0)


def suites(names: Iterable[tuple[str, float]]) -> list[Planned]:
    return [planned(f"{place[0]}/{place[1:]}/{i}", seconds) for i, (place, seconds) in enumerate(names)]


@given(
    names=st.lists(st.tuples(st.sampled_from(["ar", "av", "br", "bv"]), st.floats(1.0, 90.0)), min_size=1, max_size=12)
)
def test_kept_and_used(names: list[tuple[str, float]]) -> None:
    """What is chosen takes no longer than the limit, nothing left out would fit beside it, and it is so again."""
    plan = suites(names)

    fitted = fit(plan, (), 100.0)

    together_s = sum(each.seconds for each in fitted.fitting)
    assert together_s <= 100.0 + 1e-9
    assert all(each.spec.case_s + together_s > 100.0 - 1e-9 for each in fitted.left_out)
    assert [each.case for each in plan] == [each.case for each in fitted.plan]
    assert fitted == fit(plan, (), 100.0)
