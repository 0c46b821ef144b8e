"""Text: what a terminal shows of a result, and nothing that could steer the terminal."""

from __future__ import annotations

import pytest

from harness import config, report
from harness.beside import Compared, Comparison
from harness.budget import fit
from harness.record import Accuracy, Derived, EndReason, Finding, Leaf, Level, Outcome, Reference
from harness.stats import Estimate
from harness.summary import summarise
from tests.server.factory import make_case, make_record, make_run

PYTORCH = config.reference("pytorch-2.0")


def test_pass_line() -> None:
    """A pass shows speedup with interval, both times, and compile seconds."""
    line = report.record_line(make_record(make_case("mlp"), speedup=1.42))

    assert line.startswith("  toy/mlp inference fp32   1.42x [")
    assert " -> " in line
    assert "compile" in line


def test_headline_warns_of_expired_skips() -> None:
    """Above a run stands what it measures, and below that, in one line, which skips are over."""
    run = make_run(3)
    plan = [each.model_copy(update={"expired": "crashes (until 2026-11-30)"}) for each in run.plan[:2]]
    plain, *nothing = report.headline(run).splitlines()
    line, warning = report.headline(run.model_copy(update={"plan": (*plan, *plan, run.plan[2])})).splitlines()

    assert plain.startswith("toy on cpu, torch 2.14.1, 3 cases, run ")
    assert nothing == []
    assert line.startswith("toy on cpu")
    assert warning == (
        "  Skips have expired, so these run; mend or renew their entries. "
        "toy/model_0: crashes (until 2026-11-30), toy/model_1: crashes (until 2026-11-30)"
    )


@pytest.mark.parametrize(
    ("eager_s", "compiled_s", "text"),
    [(3.114e-3, 2.19e-3, "3.11 -> 2.19 ms"), (1.5, 0.5, "1.50 -> 0.50 s"), (12.34e-6, 120e-6, "12.3 -> 120 us")],
)
def test_times_share_a_unit(eager_s: float, compiled_s: float, text: str) -> None:
    """Both times are in the unit that suits eager, with three significant digits."""
    assert report.times(eager_s, compiled_s) == text


def test_failure_names_leaf_and_numbers() -> None:
    """A failed check names the leaf, its error and what was allowed."""
    record = make_record(make_case(), Outcome.FAIL_ACCURACY)
    leaf = Leaf(name="gradient.fc.weight", error=0.031, allowed=0.01)
    accuracy = Accuracy(reference=Reference.FLOAT64, tolerance=0.01, leaves=9, failed_count=1, failed=(leaf,))

    assert report.cause(record.model_copy(update={"accuracy": accuracy})) == (
        "gradient.fc.weight: error 0.031, allowed 0.01"
    )


def test_escapes_are_inert() -> None:
    """Control characters in a model's words do not reach the terminal, and only one line does."""
    record = make_record(make_case(), Outcome.CRASH).model_copy(update={"text": "bad \x1b[2J\x07 news\nsecond line"})

    assert report.cause(record) == "bad ?[2J? news"


def test_summary_names_pass_rate_mean_and_left_out() -> None:
    """The last lines give pass rate, geometric mean with interval, left-out models, and what stands beside it."""
    run = make_run(3)
    a, b, _ = (planned.case for planned in run.plan)
    records = {r.case.id: r for r in (make_record(a, speedup=2.0), make_record(b, Outcome.CRASH))}
    lines = report.summary_lines(run, records, summarise(run.plan, records), EndReason.INTERRUPTED, "runs/x.jsonl")
    text = "\n".join(lines)

    assert "1 of 3 passed (33%); 1 crash, 1 missing" in text
    assert "geometric mean, unclipped: 2.00x [" in text
    assert f"left out: {b.model} (crash)" in text
    assert "skipped 0, missing 1, crashed 1. Records: runs/x.jsonl" in text
    assert f"--resume {run.id}" in text


def test_eager_alone() -> None:
    """Where nothing was compiled, a line shows one step's seconds and the memory it took, and no mean is spoken of."""
    run = make_run([make_case("a", backend="none")])
    plain = make_record(run.plan[0].case)
    observed = plain.observed.model_copy(update={"eager_step_s": 0.0312, "peak_bytes": 3 << 29})
    bare = {"compile": None, "timing": None, "accuracy": None, "memory": None}
    record = plain.model_copy(update={**bare, "observed": observed, "derived": Derived(valid=False)})
    records = {record.case.id: record}
    lines = report.summary_lines(run, records, summarise(run.plan, records), EndReason.FINISHED, "x")

    assert report.verdict(record) == "ran eager alone   31.2 ms a step   peak 1.50 GiB"
    assert lines[0] == "toy inference fp32 eager alone: 1 of 1 passed (100%)"
    assert "geometric mean" not in "\n".join(lines)


def test_no_mean_says_why() -> None:
    """Where every row is emulated the mean is none, with their number."""
    run = make_run([make_case("a", precision="amp")])
    records = {run.plan[0].case.id: make_record(run.plan[0].case, emulated=True)}
    lines = report.summary_lines(run, records, summarise(run.plan, records), EndReason.FINISHED, "x")

    assert "  geometric mean, unclipped: none (1 emulated)" in lines


def comparison_of(differences: tuple[str, ...] = (), figures: tuple[Compared, ...] = ()) -> Comparison:
    return Comparison(
        reference="pytorch-2.0", title="PyTorch 2.0", rule=PYTORCH.rule, differences=differences, figures=figures
    )


def test_comparison_names_its_rule() -> None:
    """Published figures stand beside ours by their rule, which is said; a figure that cannot be had says why."""
    rate, fp32, amp, _ = PYTORCH.published
    figures = (
        Compared(published=rate, ours=150 / 163, of=163),
        Compared(published=fp32, ours=1.434, of=150),
        Compared(published=amp, ours=None, why_not="no model passes"),
    )

    head, *lines = report.comparison_lines(comparison_of(figures=figures))

    assert head.startswith(
        'by the rule of 2022 (a model passes if its accuracy begins with "pass"; what failed is dropped'
    )
    assert lines == [
        "  models that work: 92.0% of 163 models; published 93 %",
        "  training speedup, FP32: 1.43x of 150 models; published 1.21x",
        "  training speedup, AMP: none (no model passes); published 1.51x",
    ]


def test_no_comparison_says_why() -> None:
    """One line says in which points a run differs, without anything that could steer a terminal."""
    lines = report.comparison_lines(
        comparison_of(("device: NVIDIA \x1b[2JH200, not A100", "TF32 in FP32: off, not on"))
    )

    assert lines == [
        "not comparable with the figures of PyTorch 2.0: device: NVIDIA ?[2JH200, not A100; TF32 in FP32: off, not on"
    ]


def test_comparison_is_among_the_last_words() -> None:
    """What is said of published figures stands before the line of counts."""
    run = make_run(1)
    lines = report.summary_lines(
        run, {}, [], EndReason.FINISHED, "x", [comparison_of(("mode: inference, not training",))]
    )

    assert lines[0] == "not comparable with the figures of PyTorch 2.0: mode: inference, not training"


def test_speedup_text() -> None:
    """A speedup is written with its interval."""
    assert report.speedup(Estimate(1.424, 1.38, 1.4699, 40, "m")) == "1.42x [1.38, 1.47]"
    assert report.speedup(Estimate(1.424, None, None, None, "m")) == "1.42x"


def test_summary_counts_the_reasons_of_skips() -> None:
    """What was skipped is counted by its reason, the most frequent first."""
    run = make_run(4, skip={"model_0": "too large", "model_1": "left out", "model_2": "left out"})
    lines = report.summary_lines(run, {}, summarise(run.plan, {}), EndReason.FINISHED, "x")

    assert "skipped: left out (2), too large (1)" in lines
    assert not any(
        line.startswith("skipped:") for line in report.summary_lines(make_run(1), {}, [], EndReason.FINISHED, "x")
    )


def test_budget_is_one_line() -> None:
    """A limit says how many cases fit, in which time, how that is known, and what is left out of each suite."""
    plan = make_run([make_case(model, suite, device=model) for suite in ("a", "b") for model in "xyz"]).plan
    plan = tuple(
        each.model_copy(update={"spec": each.spec.model_copy(update={"case_s": seconds})})
        for each, seconds in zip(plan, (10.0, 20.0, 60.0, 15.0, None, 70.0), strict=True)
    )

    assert report.budget_line(fit(plan, (), 120.0)) == (
        "--limit-seconds 120: 4 of 6 cases fit, about 112 s together (known by: 3 entry, 1 default); "
        "left out: 1 of a, 1 of b"
    )
    assert report.budget_line(fit(plan[:1], (), 120.0)).endswith("(known by: 1 entry); left out: none")


def test_finding_is_one_line() -> None:
    """A finding is told in one line with its remedy; what a host calls itself cannot steer the terminal."""
    finding = Finding(
        check="tenants", level=Level.WARNING, value="job\x1b[2J\nx", sentence="Others compute.", remedy="end them"
    )

    assert report.finding_line(finding) == "warning: tenants job?[2J. Others compute. Remedy: end them"


@pytest.mark.parametrize(
    ("levels", "text"),
    [
        ([Level.GOOD, Level.NOTE], "Fit to measure."),
        ([Level.GOOD, Level.UNKNOWN], "Fit to measure; 1 not told by this host."),
        ([Level.WARNING, Level.WARNING], "Fit to measure, with 2 warnings."),
        ([Level.BAD, Level.WARNING, Level.UNKNOWN], "Not fit to measure: 1 bad, 1 warning; 1 not told by this host."),
    ],
)
def test_fitness(levels: list[Level], text: str) -> None:
    """One bad finding makes a host unfit, warnings do not; what is not told is counted beside it."""
    assert report.fitness([Finding(check="x", level=level, sentence="s") for level in levels]) == text
