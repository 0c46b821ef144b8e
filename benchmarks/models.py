"""All models on one page: how many pass, why each other one does not, what they need, and what another CI expects.

    make models

writes docs/results/models.md from the journals in examples/ whose name begins with `models`.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.expected import Expectation, differences, read
from harness import report
from harness.journal import History, replay
from harness.record import NO_BACKEND, Configuration, Flag, Outcome, Planned, Record
from harness.summary import Summary, summarise
from suites.spec import MODES, Mode, Precision, Preset

EXPECTATIONS = Path("tests/data/ci_expected_accuracy")
"""As seen from the project's folder."""

FILES = {
    (Mode.INFERENCE, "inductor"): "cpu_inductor_{}_inference.csv",
    (Mode.TRAINING, "inductor"): "inductor_{}_training.csv",
    (Mode.TRAINING, "aot_eager"): "aot_eager_{}_training.csv",
}
"""Which file says most about a configuration: that of the CPU where there is one, else of a GPU."""

ABOUT = """# All 163 models

Made by `make models` from the journals in `examples/` whose names begin with `models`. How each was run, and on which
machine, stands under "Runs". The small preset is each model cut down to run in seconds (`docs/glossary.md`): it tells
whether a kind of network compiles and computes the same; it says nothing of speed, and never enters the figures of the
full one.
"""


@dataclass(frozen=True)
class Group:
    """The cases of one suite in one configuration, of all journals: each model once."""

    planned: Mapping[str, Planned]
    """By model, in the order of the plans."""
    records: Mapping[str, Record | None]
    """By model; None where it never ran."""

    @property
    def summary(self) -> Summary:
        records = {record.case.id: record for record in self.records.values() if record is not None}
        (summary,) = summarise(list(self.planned.values()), records)
        return summary

    @property
    def configuration(self) -> Configuration:
        return next(iter(self.planned.values())).case.configuration


def groups(histories: Iterable[History]) -> list[Group]:
    """Return the groups: the full preset before the small one, configurations in the order of the journals, suites by
    name. Of a model that was run several times the first run that passed counts, else the last."""
    planned: dict[tuple[str, Configuration], dict[str, Planned]] = {}
    records: dict[tuple[str, Configuration], dict[str, Record | None]] = {}
    for history in histories:
        for each in history.run.plan:
            key = (each.case.suite, each.case.configuration)
            before, now = records.setdefault(key, {}).get(each.case.model), history.records.get(each.case.id)
            if before is None or (before.outcome != Outcome.PASS and now is not None):
                planned.setdefault(key, {})[each.case.model] = each
                records[key][each.case.model] = now
    order = list(dict.fromkeys(configuration for _, configuration in planned))
    keys = sorted(planned, key=lambda key: (key[1].preset == Preset.SMALL, order.index(key[1]), key[0]))
    return [Group(planned[key], records[key]) for key in keys]


def counts(found: Sequence[Group]) -> Iterator[str]:
    """Yield a table of how the models of each group ended."""
    yield "| suite | configuration | planned | passed | other outcomes | skipped | missing | models with graph breaks |"
    yield "|---|---|---:|---:|---|---:|---:|---:|"
    for group in found:
        summary = group.summary
        outcomes = dict(summary.outcomes)
        skipped, missing = outcomes.pop(Outcome.SKIPPED, 0), outcomes.pop(Outcome.MISSING, 0)
        outcomes.pop(Outcome.PASS, 0)
        others = [f"{count} {outcome}" for outcome, count in sorted(outcomes.items())]
        others += [f"{summary.unchecked} not checked"] if summary.unchecked else []
        broken = sum(bool(r and r.compile and r.compile.graph_breaks) for r in group.records.values())
        told = "" if group.configuration.backend == NO_BACKEND else str(broken)
        cells = (summary.suite, group.configuration.label, str(summary.planned), str(summary.passed))
        yield f"| {' | '.join([*cells, ', '.join(others), str(skipped), str(missing), told])} |"


def causes(found: Sequence[Group]) -> Iterator[str]:
    """Yield every case that is no pass, with its cause."""
    for group in found:
        name = f"{group.summary.suite}, {group.configuration.label}"
        for model, record in group.records.items():
            if record is None:
                yield f"- {name}: {model}: {group.planned[model].skip or Outcome.MISSING}"
            elif record.outcome != Outcome.PASS:
                where = f" ({record.side} side, stage {record.stage})" if record.stage else ""
                yield f"- {name}: {model}: {record.outcome}{where}: {report.cause(record)}"


def insensitive(found: Sequence[Group]) -> Iterator[str]:
    """Yield, per group, the models whose check could hardly have noticed a wrong answer."""
    for group in found:
        records = [record for record in group.records.values() if record is not None]
        deaf = [r.case.model for r in records if Flag.INSENSITIVE in r.derived.flags]
        untold = [r.case.model for r in records if r.accuracy is not None and r.observed.sensitivity is None]
        if deaf or untold:
            told = [f"insensitive: {', '.join(deaf)}"] if deaf else []
            told += [f"not told: {', '.join(untold)}"] if untold else []
            yield f"- {group.summary.suite}, {group.configuration.label}: {'; '.join(told)}"


def eager(found: Sequence[Group]) -> Iterator[str]:
    """Yield a table of what each model takes in eager alone, at full size, in both modes."""
    alone = [g for g in found if g.configuration.backend == NO_BACKEND and g.configuration.preset == Preset.FULL]
    if not alone:
        yield "Not run."
        return
    yield "| model | inference: batch | a step | peak GiB | training: batch | a step | peak GiB |"
    yield "|---|---:|---:|---:|---:|---:|---:|"
    for suite, model in dict.fromkeys((group.summary.suite, model) for group in alone for model in group.records):
        cells = []
        for mode in MODES:
            mine = [g.records.get(model) for g in alone if (g.summary.suite, g.configuration.mode) == (suite, mode)]
            cells += _eager_cells(next((record for record in mine if record is not None), None))
        yield f"| {' | '.join([f'{suite}/{model}', *cells])} |"


def _eager_cells(record: Record | None) -> list[str]:
    if record is None:
        return ["", "", ""]
    batch, step_s, peak_bytes = (
        str(record.case.batch_size or ""),
        record.observed.eager_step_s,
        record.observed.peak_bytes,
    )
    if record.outcome != Outcome.PASS or step_s is None:
        return [batch, record.outcome.value, ""]
    return [batch, report.seconds(step_s), "" if peak_bytes is None else f"{peak_bytes / 2**30:.1f}"]


def beside_ci(found: Sequence[Group], folder: Path) -> Iterator[str]:
    """Yield, per group that a file of expectations fits, each model that ended or broke otherwise."""
    for group in found:
        configuration = group.configuration
        fits = FILES.get((configuration.mode, configuration.backend))
        if fits is None or (configuration.precision != Precision.FP32 and configuration.mode == Mode.INFERENCE):
            continue
        path = folder / fits.format(group.summary.suite)
        expected = read(path)
        both = expected.keys() & group.records.keys()
        rows = [row for row in _rows(group, expected) if row[0] in both]
        differing = {row[0] for row in rows}
        yield f"### {group.summary.suite}, {configuration.label}, beside `{path.name}`"
        yield ""
        yield (
            f"{len(both)} of {len(group.records)} models stand in the file; {len(both) - len(differing)} of them ended "
            "as it expects" + (", with as many graph breaks." if configuration.mode == Mode.INFERENCE else ".")
        )
        yield ""
        if rows:
            yield "| model | expected | found | cause |"
            yield "|---|---|---|---|"
            yield from (f"| {' | '.join(row[:4])} |" for row in rows)
            yield ""


def _rows(group: Group, expected: Mapping[str, Expectation]) -> Iterator[tuple[str, ...]]:
    """In training upstream compiles the whole step and counts its own breaks: only outcomes can be held there."""
    cases = {model: planned.case for model, planned in group.planned.items()}
    records = {record.case.id: record for record in group.records.values() if record is not None}
    for row in differences(records, expected, cases):
        if group.configuration.mode == Mode.INFERENCE or "graph breaks" not in row[2]:
            yield row


def runs(histories: Mapping[str, History]) -> Iterator[str]:
    """Yield what was typed and where it ran, once per journal."""
    for name, history in histories.items():
        run, seen = history.run, history.run.environment
        versions = ", ".join(f"{package} {version}" for package, version in seen.versions.items())
        memory = "" if seen.memory_bytes is None else f", {seen.memory_bytes / 2**30:.0f} GiB"
        host = f"{seen.cpu}, {seen.cores_usable} cores{memory}"
        when = f"{run.started_at:%Y-%m-%d %H:%M} UTC"
        yield f"- `{name}`: `{run.command}`; {when}, {host}; Python {seen.python}, {versions}"


def text(journals: Sequence[Path], folder: Path = EXPECTATIONS) -> str:
    """Return the whole page."""
    histories = {path.name: replay(path) for path in journals}
    found = groups(histories.values())
    sections = {
        "How many": counts(found),
        "Every case that is no pass": list(causes(found)) or ["None."],
        "Would the check notice?": [
            "Insensitive: outputs of two inputs lie less than 100 slacks of the check apart. Not told: the inputs "
            "cannot be shuffled (all alike, or an index that would leave its range).",
            "",
            *insensitive(found),
        ],
        "What they take, eager, full size": [
            "The seconds are those of one step, on a machine that may have had other work: upper bounds.",
            "",
            *eager(found),
        ],
        "Beside the upstream project's CI": beside_ci(found, folder),
        "Runs": runs(histories),
    }
    lines = [ABOUT]
    for title, body in sections.items():
        lines += [f"## {title}", "", *body, ""]
    return "\n".join(lines).rstrip() + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("journals", nargs="+", type=Path)
    print(text(parser.parse_args().journals), end="")


if __name__ == "__main__":
    main()
