"""`bench doctor`: is this host fit to measure, and how small a change could it see?"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from tempfile import gettempdir
from typing import Annotated, Any

import typer

from bench import output
from bench.options import AUTO, DATABASE, Database, Json, Selection
from harness import report, stats
from harness.doctor import noise
from harness.doctor.checks import examine, worst_first
from harness.doctor.look import look
from harness.doctor.noise import Noise
from harness.errors import BenchError, UsageError
from harness.host import clocks, nvml
from harness.journal import FOLDER
from harness.record import DeviceProfile, Finding, Level

app = typer.Typer(add_completion=False)

NOT_FIT = 3

COLUMNS = ("check", "level", "seen", "meaning", "remedy")
LAUNCH_COLUMNS = ("launch", "work", "step ms", "A/A ratio", "half-width", "pairs")
WORK_COLUMNS = ("work", "launches", "half-width, median", "spread between launches", "smallest change between builds")

Device = Annotated[str, typer.Option("--device", metavar="PROFILE", help="See `bench list devices`.")]
WithNoise = Annotated[bool, typer.Option("--noise", help="Measure the smallest change that this host could see.")]
Seconds = Annotated[float, typer.Option("--seconds", help="With --noise: about how long it may take.")]


@app.command()
def main(
    device: Device = AUTO,
    with_noise: WithNoise = False,
    seconds: Seconds = 60.0,
    database: Database = DATABASE,
    as_json: Json = False,
) -> None:
    """Say whether this host is fit to measure; exit code 3 if it is not."""
    if not seconds > 0:
        raise UsageError(f"--seconds {seconds:g}: must be above 0, e.g. 60.")
    if with_noise and find_spec("torch") is None:
        raise BenchError("--noise needs torch, and it is not installed here: pip install 'compile-bench[run]'.")
    profile = Selection(device=device).profile()
    findings = examined(profile, database)
    measured = _noise(profile, seconds) if with_noise else None
    if measured is not None:
        findings = worst_first([*findings, noise.finding(measured)])
    if as_json:
        for type_, values in _values(findings, measured):
            output.json_line(type_, values)
    else:
        if measured is not None:
            for columns, lines in ((LAUNCH_COLUMNS, _launch_rows(measured)), (WORK_COLUMNS, _work_rows(measured))):
                output.rows(columns, list(lines))
                print()
        output.rows(COLUMNS, [_row(finding) for finding in findings])
        print(report.fitness(findings))
    if any(finding.level == Level.BAD for finding in findings):
        raise typer.Exit(NOT_FIT)


def examined(profile: DeviceProfile, database: str) -> tuple[Finding, ...]:
    """Look at this host and return what there is to say about it, the worst first."""
    return examine(profile, look(places(database)))


def places(database: str) -> Mapping[str, Path]:
    """Return where a run writes, by purpose. A database on a server is not ours to look at."""
    file = database.partition(":///")[2] if database.startswith("sqlite") else ""
    found = {"journals": FOLDER, "temporary files": Path(gettempdir())}
    return found | ({"the database": Path(file).parent} if file else {})


def _noise(profile: DeviceProfile, seconds: float) -> Noise:
    def told(line: str) -> None:
        print(line, file=sys.stderr)

    told(f"Measuring the same step against itself for about {seconds:.0f} s.")
    gpu = next(iter(nvml.gpus()), None) if profile.kind == "cuda" else None
    with clocks.held(profile, gpu) as lock:  # as in a run
        if lock is not None and lock.refused:
            told(f"The clock is not held: {lock.refused}")
        return noise.measure(profile, seconds, told=told)


def _row(finding: Finding) -> tuple[str, ...]:
    return (
        finding.check,
        finding.level.value,
        finding.value or "not told",
        finding.sentence,
        finding.remedy or "",
    )


def _launch_rows(measured: Noise) -> Iterator[tuple[str, ...]]:
    for work in measured.works:
        for number, (ratio, step_s) in enumerate(zip(work.ratios, work.step_s, strict=True), start=1):
            step = f"{1000 * step_s:.3g}"
            if isinstance(ratio, stats.Estimate):
                aa = f"{ratio.value:.3f} [{ratio.low:.3f}, {ratio.high:.3f}]"
                yield str(number), work.work.value, step, aa, f"{stats.half_width(ratio):.2%}", str(ratio.n)
            else:
                yield str(number), work.work.value, step, f"none: {ratio.reason}", "", ""


def _work_rows(measured: Noise) -> Iterator[tuple[str, ...]]:
    for work in measured.works:
        width = "none" if work.half_width is None else f"{work.half_width:.2%}"
        change = f"{work.smallest_change:.2%} with {noise.COMPARED} + {noise.COMPARED} launches"
        yield work.work.value, str(measured.launches), width, f"{work.spread:.2%}", change


def _values(findings: tuple[Finding, ...], measured: Noise | None) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield what goes to a program: types and values of lines."""
    for work in measured.works if measured is not None else ():
        assert measured is not None
        yield (
            "noise",
            {
                "work": work.work.value,
                "launches": measured.launches,
                "seconds": measured.seconds,
                "step_s": work.step_s,
                "ratios": [vars(ratio) if isinstance(ratio, stats.Estimate) else None for ratio in work.ratios],
                "half_width": work.half_width,
                "spread": work.spread,
                "compared_launches": noise.COMPARED,
                "smallest_change": work.smallest_change,
            },
        )
    for finding in findings:
        yield "finding", finding.model_dump(mode="json")
