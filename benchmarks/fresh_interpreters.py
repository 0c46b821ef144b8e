"""One child per case from a forkserver, against a fresh interpreter per model and question.

    python -m benchmarks.fresh_interpreters --rounds 2

The other way is the one nightly runs of the upstream runner take: a process for accuracy and another for performance,
for each model, each importing everything and compiling cold. Both ways do the same work with the same code
(`harness.worker.measure`) on the same models, with the same seconds of sampling; they take turns, who begins is
drawn for each round. The answer is the ratio of their wall times, start-up included.
"""

from __future__ import annotations

import argparse
import os
import platform
import random
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from benchmarks.overhead import overhead
from harness.record import Measure, Mode, Planned, Precision, Protocol

ROOT = Path(__file__).parents[1]


def planned(model: str) -> Planned:
    from harness import config
    from harness.plan import Matrix, plan

    matrix = Matrix(suites=("timm",), models=(model,), modes=(Mode.INFERENCE,), precisions=(Precision.FP32,))
    (only,) = plan(matrix, [config.suite("timm")], config.device("cpu"), datetime.now(UTC).date())
    return only


def child(model: str, measure: Measure, seconds: float) -> None:
    """What a fresh interpreter does: import, and measure one question about one model."""
    from harness import config
    from harness.worker.compiled import fresh_caches
    from harness.worker.measure import measure as run

    with tempfile.TemporaryDirectory() as folder:
        fresh_caches(Path(folder))
        protocol = Protocol(measure=measure, max_seconds=seconds, precision_target=1e-9)
        findings = run(planned(model), protocol, config.device("cpu"), lambda stage, findings: None)
    print(findings.outcome, findings.text or "", file=sys.stderr)
    sys.exit(0 if findings.outcome == "pass" else 1)


def seconds_of(command: list[str], folder: str) -> float:
    began = time.perf_counter()
    done = subprocess.run(
        command, cwd=folder, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False
    )
    if done.returncode:
        sys.exit(f"{shlex.join(command)} failed:\n{done.stdout}\n{done.stderr}")
    return time.perf_counter() - began


def forkserver_way(models: list[str], seconds: float, folder: str) -> float:
    names = [word for model in models for word in ("--model", model)]
    sampling = ["--max-seconds", str(seconds), "--precision-target", "1e-9"]
    command = [sys.executable, "-m", "bench.main", "run", "--suite", "timm", *names, "--mode", "inference", *sampling]
    return seconds_of(command, folder)


def fresh_way(models: list[str], seconds: float, folder: str) -> float:
    me = [sys.executable, "-m", "benchmarks.fresh_interpreters", "--seconds", str(seconds)]
    return sum(
        seconds_of([*me, "--child", measure.value, "--models", model], folder)
        for model in models
        for measure in (Measure.ACCURACY, Measure.PERFORMANCE)
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", default=["lcnet_050", "regnety_002", "mobilenetv2_100"])
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=5.0, help="of sampling, per model")
    parser.add_argument("--seed", type=int, default=1337)
    parser.add_argument("--child", type=Measure, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        child(options.models[0], options.child, options.seconds)
    coin = random.Random(options.seed)
    ratios = []
    print(f"    {shlex.join(['python', '-m', 'benchmarks.fresh_interpreters', *sys.argv[1:]])}\n")
    where = f"{datetime.now(UTC):%Y-%m-%d}, {platform.machine()}, {os.cpu_count()} cores, torch {version('torch')}"
    what = f"inference, FP32, inductor, {options.seconds:g} s of sampling each"
    print(f"{where}. Models: {', '.join(options.models)}; {what}.\n")
    print("| round | forkserver s | fresh interpreters s | ratio | of ours, in no stage |\n|---:|---:|---:|---:|---:|")
    for number in range(1, options.rounds + 1):
        with tempfile.TemporaryDirectory() as folder:
            ways = [forkserver_way, fresh_way]
            coin.shuffle(ways)
            took = {way: way(options.models, options.seconds, folder) for way in ways}
            (journal,) = Path(folder, "runs").glob("*.jsonl")
            found = overhead(journal)
        assert found is not None
        ours, theirs = took[forkserver_way], took[fresh_way]
        ratios.append(ours / theirs)
        row = f"| {number} | {ours:.0f} | {theirs:.0f} | {ours / theirs:.2f} | {1 - found[2] / ours:.1%} |"
        print(row, flush=True)
    print(f"\nMedian ratio {statistics.median(ratios):.2f}, from {min(ratios):.2f} to {max(ratios):.2f}.")


if __name__ == "__main__":
    main()
