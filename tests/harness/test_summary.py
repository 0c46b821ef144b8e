"""Summaries: every planned case is counted once, nothing is imputed, and whoever is left out is named."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from harness.record import Flag, Outcome, Record
from harness.stats import geometric_mean
from harness.summary import Summary, summarise
from tests.server.factory import make_case, make_record, make_run


def keyed(*records: Record) -> dict[str, Record]:
    return {record.case.id: record for record in records}


def test_counts() -> None:
    """Passed is out of planned less skipped; missing and skipped are counted by themselves."""
    run = make_run(4, skip={"model_3": "too large"})
    first, second, *_ = (planned.case for planned in run.plan)
    (summary,) = summarise(run.plan, keyed(make_record(first), make_record(second, Outcome.CRASH)))

    assert (summary.planned, summary.passed) == (4, 1)
    assert summary.outcomes == {Outcome.PASS: 1, Outcome.CRASH: 1, Outcome.MISSING: 1, Outcome.SKIPPED: 1}
    assert summary.pass_rate is not None
    assert abs(summary.pass_rate.value - 1 / 3) < 1e-12


def test_left_out_are_named() -> None:
    """A model without a valid speedup is named with its reason, and does not move the mean of the others."""
    run = make_run(3)
    a, b, c = (planned.case for planned in run.plan)
    whole = keyed(make_record(a, speedup=2.0), make_record(b, Outcome.FAIL_ACCURACY))
    (summary,) = summarise(run.plan, whole)

    assert summary.speedup is not None
    assert (summary.speedup.n, round(summary.speedup.value, 9)) == (1, 2.0)
    assert [(left.model, left.why) for left in summary.left_out] == [
        (b.model, "fail_accuracy"),
        (c.model, "missing"),
    ]


def test_mean_is_that_of_the_valid() -> None:
    """The geometric mean is that of the valid cases, unclipped: one below 1 counts as it is."""
    run = make_run(2)
    records = [make_record(planned.case, speedup=value) for planned, value in zip(run.plan, (0.5, 2.0), strict=True)]
    (summary,) = summarise(run.plan, keyed(*records))

    assert summary.speedup == geometric_mean([r.derived.speedup for r in records if r.derived.speedup])
    assert summary.speedup is not None
    assert abs(summary.speedup.value - 1.0) < 1e-12
    assert summary.rule == "unclipped"


def test_presets_are_never_mixed() -> None:
    """Small and full cases of one plan are summed up apart, each with its own mean."""
    full, small = make_case("a"), make_case("a", preset="small")
    run = make_run([full, small])
    of_full, of_small = summarise(run.plan, keyed(make_record(full, speedup=2.0), make_record(small, speedup=4.0)))

    assert [each.configuration.preset for each in (of_full, of_small)] == ["full", "small"]
    assert of_full.speedup is not None
    assert of_small.speedup is not None
    assert [round(each.speedup.value, 9) for each in (of_full, of_small) if each.speedup] == [2.0, 4.0]


def test_rule_of_an_older_line() -> None:
    """A summary written before rules were named is one of the same rule."""
    (summary,) = summarise(make_run(1).plan, {})
    older = summary.model_dump(mode="json", exclude={"rule"})

    assert Summary.model_validate(older) == summary


def test_emulated_are_left_out() -> None:
    """Where all are emulated there is no mean, and their number is the reason."""
    run = make_run([make_case("a", precision="amp")])
    (summary,) = summarise(run.plan, keyed(make_record(run.plan[0].case, emulated=True)))

    assert (summary.speedup, summary.no_speedup, summary.emulated) == (None, "1 emulated", 1)


def test_unchecked_is_not_passed() -> None:
    """A case that was held against nothing is counted apart and is no pass."""
    run = make_run(1)
    record = make_record(run.plan[0].case)
    derived = record.derived.model_copy(update={"flags": (Flag.NO_REFERENCE,)})
    (summary,) = summarise(run.plan, keyed(record.model_copy(update={"derived": derived})))

    assert (summary.passed, summary.unchecked) == (0, 1)


def test_all_skipped_has_no_rate() -> None:
    """When everything was skipped there is no pass rate, rather than one of zero or one."""
    run = make_run(1, skip={"model_0": "no"})
    (summary,) = summarise(run.plan, {})

    assert summary.pass_rate is None


@given(st.lists(st.sampled_from([o for o in Outcome if o not in (Outcome.MISSING, Outcome.SKIPPED)]), max_size=8))
def test_every_case_is_counted_once(outcomes: list[Outcome]) -> None:
    """Whatever happened, the counts of the outcomes add up to what was planned."""
    run = make_run(8)
    records = [make_record(p.case, outcome) for p, outcome in zip(run.plan, outcomes, strict=False)]
    (summary,) = summarise(run.plan, keyed(*records))

    assert sum(summary.outcomes.values()) == summary.planned == 8
