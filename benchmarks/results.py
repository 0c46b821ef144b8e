"""Journals as a page of results: what ran where, how it ended, each model's numbers, and a CI's expectations beside it.

    make results

writes docs/results/timm.md from the journals in examples/.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from benchmarks.expected import section as expected_section
from harness import report
from harness.journal import History, replay
from harness.record import Outcome, Record, Run
from harness.summary import Summary, summarise
from suites.spec import Mode

SLOWEST = 8
"""Compilations named as the slowest."""

COLUMNS = (
    *("model", "outcome", "speedup", "pairs", "eager -> compiled", "compile s", "CPU s", "graph breaks"),
    *("memory ratio", "break-even steps", "sensitivity", "flags"),
)


def page(path: Path, history: History) -> list[str]:
    run = history.run
    lines = [f"## {path.name}", "", *_where(run), ""]
    for summary in summarise(run.plan, history.records):
        cases = [p.case for p in run.plan if (p.case.suite, p.case.configuration) == _key(summary)]
        records = [history.records[case.id] for case in cases if case.id in history.records]
        lines += [
            f"### {summary.suite}, {summary.configuration.label}",
            "",
            _in_short(summary),
            "",
            *_compiles(records),
            *_breaks(records),
            "",
            *_table(records),
            "",
        ]
        lines += [
            f"- {record.case.model}: {report.cause(record)}" for record in records if record.outcome != Outcome.PASS
        ]
        lines += [""]
    return lines


def _key(summary: Summary) -> tuple[str, object]:
    return summary.suite, summary.configuration


def _where(run: Run) -> list[str]:
    found = run.environment
    versions = ", ".join(f"{name} {version}" for name, version in found.versions.items())
    emulated = ", ".join(found.emulated) or "nothing"
    return [
        f"    {run.command}",
        "",
        f"{run.started_at:%Y-%m-%d %H:%M} UTC, {found.cpu}, {found.cores_usable} cores, {found.threads} threads, "
        f"{found.memory_bytes / 2**30:.0f} GiB, {found.virtualised or 'no hypervisor seen'}, {found.system}; "
        f"Python {found.python}, {versions}; {found.compiler}. Emulated here: {emulated}.",
    ]


def _in_short(summary: Summary) -> str:
    judged = summary.planned - summary.outcomes.get(Outcome.SKIPPED, 0)
    rate = summary.pass_rate
    passed = f"{summary.passed} of {judged} passed"
    passed += f" ({rate.value:.0%}, {rate.low:.0%} to {rate.high:.0%})" if rate else ""
    mean = report.speedup(summary.speedup) if summary.speedup else f"none ({summary.no_speedup})"
    return f"{passed}. Geometric mean, {summary.rule}: {mean}" + (
        f" of {summary.speedup.n}, within one launch." if summary.speedup else "."
    )


def _compiles(records: list[Record]) -> list[str]:
    """The slowest compilations and the sum of all."""
    compiled = [(record, record.compile) for record in records if record.compile]
    if not compiled:
        return []
    compiled.sort(key=lambda pair: -pair[1].cpu_s)
    named = [f"{r.case.model} {c.wall_s:.0f} s ({c.cpu_s:.0f} CPU s)" for r, c in compiled[:SLOWEST]]
    total_s = sum(c.cpu_s for _, c in compiled)
    all_of_them = f"all {len(compiled)} together {total_s:,.0f} CPU s"
    return [f"Slowest compiles, by CPU seconds: {', '.join(named)}; {all_of_them}.", ""]


def _breaks(records: list[Record]) -> list[str]:
    """Graph breaks with their reasons, or that there are none."""
    compiled = [(record, record.compile) for record in records if record.compile]
    broken = [(record, found) for record, found in compiled if found.graph_breaks]
    if not broken:
        return [f"Graph breaks: none in the {len(compiled)} models that compiled."]
    lines = [f"Graph breaks: in {len(broken)} of the {len(compiled)} models that compiled.", ""]
    for record, found in broken:
        reasons = "; ".join(f"{b.count}x {b.reason} ({b.where})" for b in found.breaks if not b.ours)
        lines.append(f"- {record.case.model}: {report.printable(reasons)}")
    return lines


def _table(records: list[Record]) -> list[str]:
    rows = ["| " + " | ".join(COLUMNS) + " |", "|---|---|" + "---:|" * (len(COLUMNS) - 3) + "---|"]
    return rows + ["| " + " | ".join(_cells(record)) + " |" for record in records]


def _cells(record: Record) -> list[str]:
    derived, compiled = record.derived, record.compile
    speedup, felt = derived.speedup, record.observed.sensitivity
    return [
        record.case.model,
        record.outcome.value,
        report.speedup(speedup) if speedup else "",
        str(speedup.n) if speedup else "",
        report.times(derived.eager_s.value, derived.compiled_s.value) if derived.eager_s and derived.compiled_s else "",
        f"{compiled.wall_s:.1f}" if compiled else "",
        f"{compiled.cpu_s:.1f}" if compiled else "",
        str(compiled.graph_breaks) if compiled else "",
        f"{derived.memory_ratio:.2f}" if derived.memory_ratio is not None else "",
        f"{derived.break_even_steps:,.0f}" if derived.break_even_steps is not None else "",
        f"{felt:.0f}" if felt is not None else "",
        ", ".join(derived.flags),
    ]


def text(journals: Sequence[Path], expected: Sequence[tuple[Path, Path]] = ()) -> str:
    """Return the whole page.

    Args:
        expected: pairs of a journal and a file of expectations of its models in inference.
    """
    lines = ["# Measured models", "", "Made by `make results` from the journals in `examples/`.", ""]
    for path in journals:
        lines += page(path, replay(path))
    for journal, expectations in expected:
        lines += expected_section(journal, expectations, Mode.INFERENCE)
    return "\n".join(lines).rstrip() + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("journals", nargs="+", type=Path)
    parser.add_argument("--expected", nargs=2, type=Path, action="append", default=[], metavar=("JOURNAL", "CSV"))
    options = parser.parse_args()
    print(text(options.journals, [tuple(pair) for pair in options.expected]), end="")


if __name__ == "__main__":
    main()
