"""Outcomes and graph breaks of a journal against what another project's CI expects of the same models.

python -m benchmarks.expected examples/timm61-fp32-cpu-x86.jsonl.gz \
    tests/data/ci_expected_accuracy/cpu_inductor_timm_inference.csv

Prints Markdown: how many agree, and each difference with its cause and the command that shows it.
"""

from __future__ import annotations

import argparse
import csv
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from harness import report
from harness.errors import BenchError
from harness.formats.words import said_by
from harness.journal import History, replay
from harness.record import Case, Outcome, Record
from suites.spec import Mode, Preset

WORDS = {outcome: said_by(outcome) for outcome in Outcome}
"""Our outcomes in the words of the upstream runner, as `docs/glossary.md` has them."""

WORDS[Outcome.FAIL_TO_RUN].add("0.0000")
"""An accuracy of zero: older lists have it for a model that did not run. An import leaves it unknown."""


@dataclass(frozen=True)
class Expectation:
    """What is expected of one model."""

    status: str
    graph_breaks: int | None


def read(path: Path) -> dict[str, Expectation]:
    """Return the expectations of a file by model; blank lines are passed over.

    Raises:
        BenchError: a line has no such columns, or says a model twice.
    """
    found: dict[str, Expectation] = {}
    with path.open(encoding="utf-8", newline="") as file:
        reader = csv.DictReader(file)
        for row in reader:
            name, status = row.get("name"), row.get("accuracy")
            if not name or not status:
                raise BenchError(f"{path}:{reader.line_num}: needs the columns name and accuracy. Mend that line.")
            if name in found:
                raise BenchError(f'{path}:{reader.line_num}: model "{name}" stands there twice. Keep one line.')
            breaks = row.get("graph_breaks") or ""
            found[name] = Expectation(status, int(breaks) if breaks.strip().isdigit() else None)
    return found


def differences(
    records: Mapping[str, Record], expected: Mapping[str, Expectation], cases: Mapping[str, Case]
) -> Iterable[tuple[str, ...]]:
    """Yield model, expected, found, cause and command of each difference, models of one side only included.

    Args:
        records: by case id.
        cases: by model, those that are meant.
    """
    for model in sorted(cases.keys() | expected.keys()):
        wanted, case = expected.get(model), cases.get(model)
        if wanted is None:
            yield model, "not in the file", "planned here", "the file does not know it", ""
        elif case is None:
            yield model, wanted.status, "not planned", "not one of the models of this run", ""
        else:
            record = records.get(case.id)
            for said, seen, cause in _disagreeing(wanted, record):
                yield model, said, seen, cause, _command(case)


def _disagreeing(wanted: Expectation, record: Record | None) -> Iterable[tuple[str, str, str]]:
    if record is None:
        yield wanted.status, Outcome.MISSING.value, "never ran"
        return
    if wanted.status not in WORDS[record.outcome]:
        yield wanted.status, record.outcome.value, report.cause(record)
    breaks = record.compile.graph_breaks if record.compile else None
    if wanted.graph_breaks is not None and breaks is not None and breaks != wanted.graph_breaks:
        reasons = record.compile.breaks if record.compile else ()
        cause = "; ".join(f"{each.count}x {report.printable(each.reason)} at {each.where}" for each in reasons)
        yield f"{wanted.graph_breaks} graph breaks", f"{breaks} graph breaks", cause


def cases_in(history: History, mode: Mode) -> dict[str, Case]:
    """Return a journal's cases in one mode, by model."""
    return {planned.case.model: planned.case for planned in history.run.plan if planned.case.mode == mode}


def _command(case: Case) -> str:
    words = ["bench", "run", "--suite", case.suite, "--model", case.model, f"--{case.precision}", "--mode", case.mode]
    words += ["--backend", case.backend] if case.backend != "inductor" else []
    words += ["--preset", case.preset] if case.preset == Preset.SMALL else []
    words += ["--device", case.device]
    words += ["--batch-size", str(case.batch_size)] if case.batch_size else []
    return shlex.join([*words, "--only-accuracy"])


def section(path: Path, expectations: Path, mode: Mode) -> list[str]:
    """Return the comparison as lines of Markdown."""
    history, expected = replay(path), read(expectations)
    cases = cases_in(history, mode)
    both = expected.keys() & cases.keys()
    rows = list(differences(history.records, expected, cases))
    differing = {model for model, *_ in rows} & both
    lines = [
        f"## {path.name} against {expectations.name}",
        "",
        f"{len(both) - len(differing)} of the {len(both)} models that both know ({mode.value}) ended as expected, "
        f"with as many graph breaks. Differences: {len(rows)}.",
        "",
    ]
    if rows:
        lines += ["| model | expected | found | cause | shown by |", "|---|---|---|---|---|"]
        lines += [f"| {' | '.join([*told, f'`{shown}`' if shown else ''])} |" for *told, shown in rows]
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("journal", type=Path)
    parser.add_argument("expectations", type=Path)
    parser.add_argument("--mode", type=Mode, default=Mode.INFERENCE)
    options = parser.parse_args()
    print("\n".join(section(options.journal, options.expectations, options.mode)).rstrip())


if __name__ == "__main__":
    main()
