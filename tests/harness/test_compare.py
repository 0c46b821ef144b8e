"""Two sides in, one verdict per case out."""

from __future__ import annotations

import math
import time
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.compare import NO_INTERVALS, WITHIN_ONE_LAUNCH, Comparison, Machine, Refused, compare
from harness.compare_changes import Change, Note, Verdict
from harness.compare_judge import Judgement
from harness.compare_points import fingerprint, point_of, point_of_plan
from harness.compare_rules import Metric, Rules
from harness.record import Derived, Outcome, Stated
from harness.stats import STATED, Estimate
from tests.harness.points import make_failure, make_point
from tests.server.factory import make_case, make_compile, make_environment, make_record, make_run


def compared(base, head, **options) -> Comparison:
    found = compare(base, head, **options)
    assert isinstance(found, Comparison)
    return found


def one(base, head, **options) -> Change:
    (change,) = compared([base], [head], **options).changes
    return change


@pytest.mark.parametrize(
    ("speedup", "width", "verdict"),
    [
        (1.30, 0.01, Verdict.REGRESSED),
        (1.50, 0.01, Verdict.IMPROVED),
        (1.401, 0.002, Verdict.SAME),
        (1.401, 0.05, Verdict.INCONCLUSIVE),
        (1.385, 0.001, Verdict.SAME),
        (1.36, 0.05, Verdict.INCONCLUSIVE),
    ],
)
def test_speedup_decides(speedup, width, verdict):
    """A case follows its speedup: sure and large is a change, sure and small the same, unsure neither."""
    change = one(make_point(width=width), make_point(speedup=speedup, width=width))

    assert (verdict, Metric.SPEEDUP, verdict == Verdict.REGRESSED) == (change.verdict, change.by, change.against)


def test_graph_breaks_decide_where_the_speedup_did_not_change():
    """One break more is a regression of a case whose speedup is the same, but not of one that became faster."""
    base = make_point(width=0.002)
    same, faster = (make_point(speedup=value, width=0.002, graph_breaks=1) for value in (1.4, 1.6))

    assert (Verdict.REGRESSED, Metric.GRAPH_BREAKS) == (one(base, same).verdict, one(base, same).by)
    assert (Verdict.IMPROVED, Metric.SPEEDUP) == (one(base, faster).verdict, one(base, faster).by)


def test_one_figure_a_side_does_not_decide():
    """Compile time and memory are judged, but a case does not follow them unless it is asked to."""
    base = make_point(width=0.002)
    head = make_point(width=0.002, compile_wall_s=60.0, memory_ratio=0.9)
    change = one(base, head)

    assert Verdict.SAME == change.verdict
    assert [Judgement.WORSE] * 2 == [change.judgement(m) for m in (Metric.COMPILE_TIME, Metric.MEMORY_RATIO)]
    asked = one(base, head, rules=Rules(deciding=(Metric.SPEEDUP, Metric.COMPILE_TIME)))
    assert (Verdict.REGRESSED, Metric.COMPILE_TIME) == (asked.verdict, asked.by)


def test_both_sides_slower():
    """A flat ratio of two slower sides says so; one side alone does not."""
    base = make_point(width=0.002)
    both = one(base, make_point(width=0.002, eager_s=0.03))
    compiled_alone = one(base, make_point(speedup=1.2, width=0.002))

    assert (Verdict.SAME, (Note.BOTH_SLOWER,)) == (both.verdict, both.notes)
    assert (Verdict.REGRESSED, ()) == (compiled_alone.verdict, compiled_alone.notes)


PASS, FAIL, CRASH, SKIPPED, MISSING = (
    Outcome.PASS,
    Outcome.FAIL_ACCURACY,
    Outcome.CRASH,
    Outcome.SKIPPED,
    Outcome.MISSING,
)


@pytest.mark.parametrize(
    ("base", "head", "verdict", "outcome"),
    [
        (PASS, FAIL, Verdict.STATUS_CHANGED, Judgement.WORSE),
        (FAIL, PASS, Verdict.STATUS_CHANGED, Judgement.BETTER),
        (FAIL, CRASH, Verdict.STATUS_CHANGED, Judgement.INCONCLUSIVE),
        (PASS, SKIPPED, Verdict.STATUS_CHANGED, Judgement.ABSENT),
        (PASS, MISSING, Verdict.STATUS_CHANGED, Judgement.ABSENT),
        (MISSING, FAIL, Verdict.STATUS_CHANGED, Judgement.ABSENT),
        (FAIL, FAIL, Verdict.SAME, Judgement.SAME),
        (SKIPPED, SKIPPED, Verdict.SAME, Judgement.SAME),
        (MISSING, MISSING, Verdict.INCONCLUSIVE, Judgement.SAME),
    ],
)
def test_outcomes(base, head, verdict, outcome):
    """Pass is best; one failure is no worse than another; what was not run is no failure. Only worse counts against."""
    sides = [make_point() if each == PASS else make_failure(outcome=each) for each in (base, head)]
    change = one(*sides)

    assert (verdict, outcome) == (change.verdict, change.outcome)
    assert (outcome == Judgement.WORSE) == change.against


def test_outcome_that_is_not_told():
    """Where a file does not say how a case ended, its numbers are judged, and the outcome is not."""
    told, untold = make_point(), make_point(speedup=1.3, outcome=Outcome.UNKNOWN)
    nothing = make_failure(outcome=Outcome.UNKNOWN)
    lost, found, neither = one(told, untold), one(untold, replace(told, outcome=Outcome.UNKNOWN)), one(nothing, nothing)

    assert (Verdict.REGRESSED, Judgement.ABSENT) == (lost.verdict, lost.outcome)
    assert (Verdict.IMPROVED, Judgement.SAME) == (found.verdict, found.outcome)
    assert (Verdict.INCONCLUSIVE, "no number is known of both") == (neither.verdict, neither.why)
    assert Judgement.ABSENT == one(nothing, make_failure()).outcome


def test_times_that_are_not_valid():
    """A pass whose times are not valid on one side or both is inconclusive, with the reason."""
    recompiled = make_point(valid=False, text="recompiled once while timed")
    for base, head in ((make_point(), recompiled), (recompiled, recompiled)):
        change = one(base, head)

        assert (Verdict.INCONCLUSIVE, Metric.SPEEDUP) == (change.verdict, change.by)
        assert "the head is not valid: recompiled once while timed" in change.metric(Metric.SPEEDUP).why


def test_nothing_was_timed():
    """Where neither side was timed, breaks and then the outcome are all there is; that is the same, and says so."""
    base = make_point(speedup=None)
    bare = make_point(speedup=None, graph_breaks=None)
    breaks, outcome = one(base, base), one(bare, bare)

    assert (Verdict.SAME, Metric.GRAPH_BREAKS) == (breaks.verdict, breaks.by)
    assert (Verdict.SAME, None) == (outcome.verdict, outcome.by)
    assert "both pass, and nothing else is known of either" == outcome.why
    assert Verdict.REGRESSED == one(base, make_point(speedup=None, graph_breaks=2)).verdict


def test_cases_of_one_side():
    """What one side alone has is listed as such, counts against nobody, and has no metrics."""
    found = compared([make_point("a"), make_point("b")], [make_point("c"), make_failure("a")])

    assert [("a", "status_changed"), ("b", "only_left"), ("c", "only_right")] == [
        (each.point.model, each.verdict) for each in found.changes
    ]
    assert ((), Judgement.ABSENT, False) == (
        found.changes[1].metrics,
        found.changes[1].judgement(Metric.SPEEDUP),
        found.changes[1].against,
    )
    with pytest.raises(ValueError, match="toy/c is on one side only"):
        found.changes[2].metric(Metric.SPEEDUP)


def test_counts():
    """Every case is in exactly one count, and zeros are counted; each metric counts what both sides have."""
    base = [make_point("a"), make_point("b"), make_point("c"), make_failure("d")]
    head = [make_point("a", 1.0), make_point("b", 2.0), make_point("d"), make_point("e")]
    found = compared(base, head)

    expected = {"regressed": 1, "improved": 1, "status_changed": 1, "only_left": 1, "only_right": 1}
    assert {**dict.fromkeys(Verdict, 0), **expected} == found.counts
    assert {"better": 1, "worse": 1, "same": 0, "inconclusive": 0, "absent": 1} == found.judgements[Metric.SPEEDUP]
    assert found.against
    assert not compared(head[1:], head[1:]).against


def test_same_case_twice():
    """A case that one side has twice is refused: which one is meant would be a guess."""
    with pytest.raises(ValueError, match=r"case of a \(toy/a\) is 2 times in the head"):
        compare([make_point("a")], [make_point("a"), make_point("b"), make_point("a")])


def test_caveat():
    """Every comparison says what its intervals do not cover, or that a side has none."""
    stated = make_point("b", speedup_low=None, speedup_high=None)

    assert WITHIN_ONE_LAUNCH == compared([make_point()], [make_point()]).caveat
    assert WITHIN_ONE_LAUNCH == compared([], []).caveat
    assert NO_INTERVALS == compared([stated], [stated]).caveat
    assert f"{WITHIN_ONE_LAUNCH} {NO_INTERVALS}" == compared([stated, make_point()], [stated, make_point()]).caveat


# -- machines ---------------------------------------------------------------------------------


def test_refused_across_machines():
    """Different hard fingerprints are refused, with what differs; `across` compares them, and says so."""
    base, head = make_point(hard="x"), make_point(hard="y")
    environments = make_environment(), make_environment(cpu="Arm Neoverse-V1", kernel="6.2.0")
    refused = compare([base], [head], environments=environments)
    found = compared([base], [head], environments=environments, across=True)

    assert isinstance(refused, Refused)
    assert (("x",), ("y",)) == (refused.base, refused.head)
    assert [("cpu", True), ("kernel", False)] == [(each.field, each.hard) for each in refused.differences]
    assert ["cpu"] == [each.field for each in refused.hard]
    assert (Machine.DIFFERENT, refused.differences) == (found.machine, found.differences)


@pytest.mark.parametrize(("hard", "machine"), [("machine", Machine.SAME), (None, Machine.UNKNOWN)])
def test_machine(hard, machine):
    """A side that does not say where it was measured is compared, and marked."""
    assert machine == compared([make_point()], [make_point(hard=hard)]).machine


def test_refused_where_nothing_is_common():
    """Sides without a common case are refused too, when their machines differ."""
    assert isinstance(compare([make_point("a", hard="x")], [make_point("b", hard="y")]), Refused)
    assert Machine.SAME == compared([make_point("a")], [make_point("b")]).machine


def test_across_devices():
    """Across, a case with another device or batch size is matched by model and configuration, and marked; unless
    several fit."""
    base = [make_point("a"), make_point("b"), make_point("c")]
    head = [
        make_point("c", case_id="c2"),
        make_point("a", 1.0, case_id="a2"),
        make_point("b", case_id="b2"),
        make_point("b", case_id="b3"),
    ]
    plain, across = compared(base, head), compared(base, head, across=True)

    assert {3: "only_left", 4: "only_right"} == {plain.counts[v]: v for v in (Verdict.ONLY_LEFT, Verdict.ONLY_RIGHT)}
    assert [("a", "a2"), ("c", "c2")] == [
        (change.base.model, change.head.case_id) for change in across.changes if Note.ANOTHER_CASE in change.notes
    ]
    assert (1, 2) == (across.counts[Verdict.ONLY_LEFT], across.counts[Verdict.ONLY_RIGHT])


# -- points -----------------------------------------------------------------------------------


def test_point_of_a_record():
    """A point has the record's figures with their intervals, and the reason where it is no plain pass."""
    record = make_record(make_case("mlp"), speedup=1.25)
    point, derived = point_of(record, "machine"), record.derived
    failed = point_of(make_record(make_case("mlp"), Outcome.CRASH))

    assert (record.case.id, "toy", "mlp", "inference fp32") == (point.case_id, *point.key)
    assert (Outcome.PASS, True, None, "machine") == (point.outcome, point.valid, point.text, point.hard)
    assert derived.speedup is not None
    assert (derived.speedup.value, derived.speedup.low) == (point.speedup, point.speedup_low)
    assert derived.compiled_s is not None
    assert (derived.compiled_s.value, derived.compiled_s.high) == (point.compiled_s, point.compiled_s_high)
    assert (27.3, 64 << 20, 48 << 20, 64 / 48, 0) == (
        point.compile_wall_s,
        point.eager_peak_bytes,
        point.compiled_peak_bytes,
        point.memory_ratio,
        point.graph_breaks,
    )
    assert (Outcome.CRASH, False, "crash while compiling", None, None) == (
        failed.outcome,
        failed.valid,
        failed.text,
        failed.speedup,
        failed.graph_breaks,
    )


def test_point_of_what_others_state():
    """A stated figure has no interval, and its bytes count only where they may be compared."""
    estimate = Estimate(1.5, None, None, None, STATED)
    stated = Stated(eager_s=0.03, compiled_s=0.02, compile_wall_s=40.0, compiled_peak_bytes=1, memory_comparable=False)
    fields = {"timing": None, "compile": None, "memory": None, "stated": stated}
    point = point_of(make_record(make_case(), derived=Derived(valid=True, speedup=estimate), **fields))

    assert (1.5, None, 0.03, None, 0.02, None) == (
        point.speedup,
        point.speedup_low,
        point.eager_s,
        point.eager_s_high,
        point.compiled_s,
        point.compiled_s_low,
    )
    assert (40.0, None, None) == (point.compile_wall_s, point.compiled_peak_bytes, point.graph_breaks)


def test_point_of_what_is_not_comparable():
    """Seconds that a cache shortened are none of compiling; a pass that is not valid says why."""
    warm = make_record(make_case(), compile=make_compile().model_copy(update={"cold": False}))
    emulated = make_record(make_case(), emulated=True)

    assert point_of(warm).compile_wall_s is None
    assert (False, "bfloat16 is emulated on this machine") == (point_of(emulated).valid, point_of(emulated).text)


def test_point_of_a_plan():
    """A planned case without a record is skipped with its reason, or missing."""
    skipped, missing = map(point_of_plan, make_run(2, skip={"model_0": "too large"}).plan)

    assert (Outcome.SKIPPED, "too large") == (skipped.outcome, skipped.text)
    assert (Outcome.MISSING, None) == (missing.outcome, missing.text)


def test_fingerprint_of_an_unknown_machine():
    """An environment that names neither host nor processor nor device has no fingerprint to be compared."""
    known = make_environment()
    unknown = known.model_copy(update={"host": None, "cpu": None})

    assert (known.hard, None) == (fingerprint(known), fingerprint(unknown))


# -- symmetry ---------------------------------------------------------------------------------

ODD = (0.0, -1.0, math.nan, math.inf, 5e-324, 1.7e308)
NUMBERS = st.one_of(st.none(), st.floats(0.5, 2.0), st.sampled_from(ODD))


@st.composite
def sides(draw):
    """Up to eight cases on each side, of all outcomes, with numbers that may be anything."""

    def point(model):
        fields = {metric.value: draw(NUMBERS) for metric in (Metric.COMPILE_TIME, Metric.MEMORY_RATIO)}
        fields |= {"graph_breaks": draw(st.one_of(st.none(), st.integers(0, 3)))}
        fields |= {"outcome": draw(st.sampled_from(Outcome)), "valid": draw(st.booleans())}
        if draw(st.booleans()):
            fields |= {"speedup": draw(NUMBERS), "speedup_low": draw(NUMBERS), "eager_s": draw(st.floats(0.01, 0.1))}
            return replace(make_point(model), **fields)
        return make_point(model, draw(st.floats(0.9, 1.1)), draw(st.floats(0.0, 0.03)), **{**fields, "outcome": PASS})

    names = [f"m{number}" for number in range(8)]
    return [[point(name) for name in draw(st.lists(st.sampled_from(names), unique=True))] for _ in range(2)]


def of_models(comparison):
    return {each.point.model: each for each in comparison.changes}


@given(sides())
@settings(max_examples=80, deadline=None)
def test_changing_sides(both):
    """Changing sides mirrors every verdict and judgement and inverts every ratio; no number is NaN or infinite."""
    there, back = (of_models(compared(*order)) for order in (both, both[::-1]))

    assert there.keys() == back.keys()
    for model, change in there.items():
        other = back[model]
        assert (change.verdict.mirrored, change.outcome.mirrored) == (other.verdict, other.outcome)
        assert change.by == other.by
        for one_way, other_way in zip(change.metrics, other.metrics, strict=True):
            assert one_way.judgement.mirrored == other_way.judgement
            assert (one_way.base, one_way.head) == (other_way.head, other_way.base)
            ends = (one_way.change, one_way.low, one_way.high), (other_way.change, other_way.high, other_way.low)
            for here, mirrored in zip(*ends, strict=True):
                assert (here is None) == (mirrored is None)
                if here is not None and mirrored is not None:
                    assert 1.0 == pytest.approx((1 + here) * (1 + mirrored), rel=1e-9)


@given(sides(), st.data())
@settings(max_examples=50, deadline=None)
def test_removing_a_model(both, data):
    """Removing a model from one side changes nothing of the others."""
    base, head = both
    gone = data.draw(st.sampled_from([point.model for point in head] or ["none"]))
    whole, less = of_models(compared(base, head)), of_models(compared(base, [p for p in head if p.model != gone]))

    for model, change in whole.items():
        if model != gone:
            assert (change.verdict, change.by, change.metrics) == (
                less[model].verdict,
                less[model].by,
                less[model].metrics,
            )


def test_many_cases():
    """163 models in 16 configurations are compared well within half a second."""
    cases = [(f"m{n}", f"configuration {c}") for n in range(163) for c in range(16)]
    base, head = (
        [make_point(m, speedup, case_id=f"{m} {c}", label=c, configuration_id=c) for m, c in cases]
        for speedup in (1.4, 1.3)
    )
    start = time.process_time()
    found = compared(base, head)

    assert time.process_time() - start < 0.5
    assert 2608 == found.counts[Verdict.REGRESSED]
