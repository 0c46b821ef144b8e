"""What the only reader answers."""

from __future__ import annotations

from datetime import timedelta

import pytest

from harness import beside
from harness.compare_changes import Verdict
from harness.compare_points import fingerprint, point_of, point_of_plan
from harness.record import Finding, Flag, Level, Measure, Outcome, Protocol, Stage
from harness.stats import wilson
from server.queries import NotFound, Queries, Sort
from server.schemas import RunState, Status
from suites.spec import ModelSpec
from tests.server import factory

OTHER_ID = "0194a3f2-2222-7000-8000-000000000002"


@pytest.fixture
def queries(store):
    """A reader whose clock stands ten minutes after the beginning of the runs."""
    return Queries(store._engine, clock=lambda: factory.BEGIN + timedelta(minutes=2))


def silent_for(store, **span) -> Queries:
    return Queries(store._engine, clock=lambda: factory.BEGIN + timedelta(**span))


def test_no_run_yet(queries):
    """Without any run the answer says how to start one."""
    assert (0, []) == (queries.count(), queries.runs())
    with pytest.raises(NotFound, match="Start one: bench run"):
        queries.run()


def test_run_by_prefix_and_latest(store, queries):
    """A run is found by its id, by any unique prefix, and as `latest`; an ambiguous prefix names what fits."""
    store.open(factory.make_run(1))
    store.open(factory.make_run(1, id=OTHER_ID, at=factory.BEGIN + timedelta(seconds=5)))

    assert OTHER_ID == queries.run("latest").id
    assert factory.RUN_ID == queries.run("0194a3f2-11").id
    with pytest.raises(NotFound, match=f"fits several runs: {OTHER_ID}, {factory.RUN_ID}"):
        queries.run("0194")
    with pytest.raises(NotFound, match="There is no run 'zz'"):
        queries.run("zz")
    with pytest.raises(NotFound):
        queries.run("%")


def test_pass_rate_leaves_skipped_out(store, queries):
    """Pass rate is passed / (planned - skipped) with Wilson's interval; missing and crashed stay in it."""
    run = factory.make_run(5, skip={"model_4": "no such device"})
    store.open(run)
    store.record(factory.make_record(run.plan[0].case))
    store.record(factory.make_record(run.plan[1].case, Outcome.CRASH))
    store.close(factory.make_end())

    found = queries.run()

    expected = wilson(1, 4)
    rate = found.pass_rate
    assert (1, 4, 0.25, expected.low, expected.high) == (rate.passed, rate.judged, rate.share, rate.low, rate.high)
    assert (5, 1, 2, 0, 1) == (found.planned, found.skipped, found.missing, found.waiting, found.crashed)


def test_waiting_becomes_missing(store):
    """A planned case without a result is waiting while its run goes on, and missing after."""
    run = factory.make_run(2)
    start = factory.make_start(run.plan[0].case)
    store.open(run)
    store.start(start)

    going_on = silent_for(store, minutes=1)
    assert [Status.RUNNING, Status.WAITING] == [result.status for result in going_on.results()]
    assert (2, 0) == (going_on.run().waiting, going_on.run().missing)

    store.close(factory.make_end(reason="interrupted"))
    assert [Status.MISSING, Status.MISSING] == [result.status for result in going_on.results()]
    assert (0, 2) == (going_on.run().waiting, going_on.run().missing)


def test_silent_run_is_lost(store):
    """A run without an end is lost once it was silent for longer than its case in hand may take."""
    run = factory.make_run(1)
    store.open(run)
    store.start(factory.make_start(run.plan[0].case))

    assert RunState.RUNNING == silent_for(store, minutes=14).run().state
    assert RunState.LOST == silent_for(store, minutes=16).run().state


def test_pulse_tells_what_changed(store):
    """A stage changes the pulse behind its slash, a start, a record or the end what stands before it."""
    run = factory.make_run(1)
    start = factory.make_start(run.plan[0].case)
    reader = silent_for(store, minutes=1)
    store.open(run)
    pulses = [reader.pulse(run.id)]
    for step in (
        lambda: store.start(start),
        lambda: store.stage(start, Stage.CHECK),
        lambda: store.record(factory.make_record(run.plan[0].case)),
        lambda: store.close(factory.make_end()),
    ):
        step()
        pulses.append(reader.pulse(run.id))

    rows = [pulse.partition("/")[0] for pulse in pulses]
    assert 5 == len(set(pulses))
    assert rows[1] == rows[2]
    assert 4 == len(set(rows))


def test_case_in_hand(store):
    """While a run goes on it says what is in hand and in which stage."""
    run = factory.make_run(1)
    start = factory.make_start(run.plan[0].case)
    store.open(run)
    store.start(start)
    store.stage(start, Stage.CHECK)

    (in_hand,) = silent_for(store, minutes=1).run().in_hand
    assert ("model_0", Stage.CHECK, 600.0) == (in_hand.model, in_hand.stage, in_hand.timeout_s)


@pytest.mark.parametrize("descending", [False, True])
def test_missing_values_sort_last(store, queries, descending):
    """Results without a value come last in both directions."""
    run = factory.make_run(4)
    store.open(run)
    store.record(factory.make_record(run.plan[1].case, speedup=1.5))
    store.record(factory.make_record(run.plan[2].case, speedup=0.8))
    store.record(factory.make_record(run.plan[3].case, Outcome.TIMEOUT))

    order = [result.model for result in queries.results(sort=Sort.SPEEDUP, descending=descending)]

    fast_and_slow = ["model_1", "model_2"] if descending else ["model_2", "model_1"]
    assert [*fast_and_slow, "model_0", "model_3"] == order


def test_result_of_a_failure_has_no_numbers(store, queries):
    """A failure has its outcome, stage and text, and null for its numbers."""
    run = factory.make_run(1)
    store.open(run)
    store.record(factory.make_record(run.plan[0].case, Outcome.FAIL_TO_RUN, text="no such operator"))

    (result,) = queries.results()
    assert (Status.FAIL_TO_RUN, Stage.COMPILE, "no such operator") == (result.status, result.stage, result.text)
    assert [None] * 4 == [result.speedup, result.eager_s, result.compile_wall_s, result.graph_breaks]


def test_failures_are_grouped_by_cause(store, queries):
    """Failures with the same first line are one group, the largest first."""
    run = factory.make_run(4)
    store.open(run)
    for planned, text in zip(run.plan, ("disk", "no operator\nat 0x1", "no operator\nat 0x2", None), strict=True):
        outcome = Outcome.FAIL_TO_RUN if text else Outcome.PASS
        store.record(factory.make_record(planned.case, outcome, text=text))

    groups = queries.run().failures
    assert [("no operator", 2), ("disk", 1)] == [(group.cause, len(group.cases)) for group in groups]


def test_published_figures_stand_beside_a_run(store, queries):
    """A run says what it was asked to be, and in which points it is not of the configuration of published figures."""
    same = {"mode": "training", "attention": "eager"}
    cases = [factory.make_case("a", "timm", "fp32", tf32=True, **same), factory.make_case("a", "timm", "amp", **same)]
    run = factory.make_run(cases, reference="pytorch-2.0", environment=factory.make_environment(product="NVIDIA H200"))
    specs = ({"training": 4}, {"training": 8})
    plan = [p.model_copy(update={"spec": ModelSpec(name="a", batch=b)}) for p, b in zip(run.plan, specs, strict=True)]
    store.open(run.model_copy(update={"plan": tuple(plan)}))
    store.record(factory.make_record(cases[0]))

    found = queries.run()

    (beside,) = found.comparisons
    assert ("pytorch-2.0", "pytorch-2.0", ()) == (found.reference, beside.reference, beside.figures)
    assert (
        "device: NVIDIA H200, not A100",
        "format of AMP: bfloat16, not float16",
        "compile mode: default, not reduce-overhead",
        "batch size: 1 of 2 cases have another than the list's",
        "models: 1 of 61 of timm",
        "models: none of 46 of huggingface",
        "models: none of 56 of torchbench",
        "not complete: some of its cases have no result",
    ) == beside.differences


def test_server_and_terminal_agree(store, queries):
    """From the stored rows the same facts come out as from the records themselves."""
    run = factory.make_run(4, skip={"model_3": "no"})
    records = {}
    store.open(run)
    for planned, outcome in zip(run.plan, (Outcome.PASS, Outcome.CRASH), strict=False):
        records[planned.case.id] = factory.make_record(planned.case, outcome)
        store.record(records[planned.case.id])

    whole = beside.Facts.of(run, records)

    assert [beside.compare(each, whole) for each in beside.known()] == [*queries.run().comparisons]


def test_runs_come_newest_first(store, queries):
    """The list of runs begins with the newest and can be paged."""
    store.open(factory.make_run(1, id=OTHER_ID, at=factory.BEGIN + timedelta(seconds=5)))
    store.open(factory.make_run(1))

    assert [OTHER_ID, factory.RUN_ID] == [run.id for run in queries.runs()]
    assert [factory.RUN_ID] == [run.id for run in queries.runs(limit=1, offset=1)]


def test_summaries_come_in_the_order_of_the_plan(store, queries):
    """A run's configurations are listed as planned, with their geometric means."""
    cases = [factory.make_case(mode=mode, precision=p) for p in ("fp32", "amp") for mode in ("training", "inference")]
    store.open(factory.make_run(cases))
    store.record(factory.make_record(cases[0], speedup=1.5))

    summaries = queries.run().summaries
    assert ["training fp32", "inference fp32", "training amp(bfloat16)", "inference amp(bfloat16)"] == [
        summary.label for summary in summaries
    ]
    assert {"unclipped"} == {summary.rule for summary in summaries}
    assert [1.5, None, None, None] == [summary.speedup and round(summary.speedup.value, 9) for summary in summaries]


def test_presets_are_never_mixed(store, queries):
    """A model's small and full cases are results of their own, in summaries of their own."""
    full, small = factory.make_case("mlp"), factory.make_case("mlp", preset="small")
    store.open(factory.make_run([full, small]))
    store.record(factory.make_record(full, speedup=2.0))
    store.record(factory.make_record(small, speedup=4.0))

    means = {each.label: round(each.speedup.value, 9) for each in queries.run().summaries}

    assert {"inference fp32": 2.0, "small inference fp32": 4.0} == means
    assert [full.id, small.id] == [each.case_id for each in queries.results()]


def test_durations(store, queries):
    """Each case of a device and a backend has the duration of its newest result, of runs that measured the same."""
    case = factory.make_case("mlp")
    others = [factory.make_case("mlp", **other) for other in ({"device": "gpu"}, {"backend": "eager"})]
    skipped, crashed = factory.make_case("skipped"), factory.make_case("crashed")
    for number, (seconds, measure) in enumerate([(40, "all"), (50, "all"), (5, "accuracy")]):
        run = factory.make_run(
            [case, *others, skipped, crashed],
            id=f"0194a3f2-1111-7000-8000-00000000000{number}",
            protocol=Protocol(measure=measure),
        )
        store.open(run)
        began = factory.BEGIN + timedelta(days=number)
        took = {"run_id": run.id, "started_at": began, "finished_at": began + timedelta(seconds=seconds)}
        for each in (case, *others):
            store.record(factory.make_record(each, **took))
        store.record(factory.make_record(skipped, Outcome.SKIPPED, **took))
        store.record(factory.make_record(crashed, Outcome.CRASH, **took))

    found = queries.durations("cpu", "inductor", Measure.ALL)

    assert 2 == len(found)
    assert {case: (50.0, Outcome.PASS), crashed: (50.0, Outcome.CRASH)} == {
        each.case: (each.seconds, each.outcome) for each in found
    }
    assert [5.0, 5.0] == [each.seconds for each in queries.durations("cpu", "inductor", Measure.ACCURACY)]
    assert [] == queries.durations("tpu", "inductor", Measure.ALL)


def test_run_says_how_fit_its_host_was(store, queries):
    """A run comes with what was found of its host, in the order it was found; an older one with nothing."""
    found = (
        Finding(check="load", level=Level.BAD, value="1.9 of 2", sentence="Others compute.", remedy="end them"),
        Finding(check="governor", level=Level.UNKNOWN, sentence="Not told."),
    )
    store.open(factory.make_run(1, doctor=found))
    store.open(factory.make_run(1, id=OTHER_ID, at=factory.BEGIN + timedelta(seconds=5)))

    assert found == queries.run(factory.RUN_ID).doctor
    assert () == queries.run(OTHER_ID).doctor


def test_points(store, queries):
    """A run's points are those of its records and its plan, whether from columns or from the records themselves."""
    run = factory.make_run(6, skip={"model_4": "too large"})
    store.open(run)
    warm = factory.make_compile().model_copy(update={"cold": False})
    records = [
        factory.make_record(run.plan[0].case),
        factory.make_record(run.plan[1].case, Outcome.CRASH),
        factory.make_record(run.plan[2].case, emulated=True),
        factory.make_record(run.plan[3].case, compile=warm, flags=(Flag.NOT_COLD,)),
    ]
    for record in records:
        store.record(record)
    hard = fingerprint(run.environment)

    found = queries.points(run.id[:10])

    assert [*(point_of(each, hard) for each in records), *(point_of_plan(each, hard) for each in run.plan[4:])] == found
    with pytest.raises(NotFound):
        queries.points("zz")


def test_head_and_records(store, queries):
    """A whole run comes back: its first line without the plan, and the newest record of each case with its samples."""
    run = factory.make_run(3, source="pytorch-csv", commit="abc1234", dated=False)
    first, second, _ = (planned.case for planned in run.plan)
    old, new = (factory.make_record(first, attempt=attempt) for attempt in (1, 2))
    other = factory.make_record(second, "timeout")
    store.open(run)
    for record in (old, other, new):
        store.record(record)

    assert run.model_copy(update={"plan": ()}) == queries.head(run.id[:8])
    assert [new, other] == [*queries.records(run.id)]
    assert [new, other] == [*queries.records(run.id, at_once=1)]


def test_runs_of_others_have_no_durations(store, queries):
    """A case of an imported run took no time here: plans do not learn from it."""
    case = factory.make_case()
    asked = (case.device, case.backend, Measure.ALL)
    store.open(factory.make_run([case], source="pytorch-csv"))
    store.record(factory.make_record(case))

    assert [] == queries.durations(*asked)
    store.open(factory.make_run([case], id=factory.RUN_ID.replace("1", "2")))
    store.record(factory.make_record(case, run_id=factory.RUN_ID.replace("1", "2")))
    assert 1 == len(queries.durations(*asked))


def test_comparison_follows_the_results(store, queries):
    """A newer attempt changes the comparison, though the sides were read before."""
    run = factory.make_run(1)
    other = factory.make_run(1, id=OTHER_ID, at=factory.BEGIN + timedelta(seconds=5))
    for each in (run, other):
        store.open(each)
        store.record(factory.make_record(each.plan[0].case, run_id=each.id))
    assert [Verdict.SAME] == [v for v, n in queries.compare(run.id, other.id).counts.items() if n]

    store.record(factory.make_record(run.plan[0].case, Outcome.CRASH, run_id=other.id, attempt=2))

    assert [Verdict.STATUS_CHANGED] == [v for v, n in queries.compare(run.id, other.id).counts.items() if n]
