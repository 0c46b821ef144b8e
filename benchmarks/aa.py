"""The same work on both sides: how often do we see a difference that is not there?

    python benchmarks/aa.py --trials 1000     one callable on both sides; intervals that exclude 1 are false alarms
    python benchmarks/aa.py --launches 10     two copies of a model, in fresh interpreters: what a launch adds

Prints Markdown on stdout, progress on stderr. On an idle machine a thousand trials take two to four minutes, ten
launches about five.
"""

from __future__ import annotations

import argparse
import gc
import json
import math
import os
import random
import shlex
import statistics
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from datetime import UTC, datetime

import scipy.stats
import torch

from harness import config, stats
from harness.record import Case, Timing
from harness.worker import environment
from harness.worker.device import CpuDevice
from harness.worker.step import make_step, prepare, set_global_state
from harness.worker.timing import time_pairs
from suites.registry import builder
from suites.spec import Mode, Precision

SIZES = ((1, 64), (32, 128), (128, 256), (256, 384))
"""Batch and width of the small steps: from about ten microseconds to about a millisecond."""

MODELS = {"toy/mlp": 512, "toy/conv": 64, "toy/attention": 64, "timm/lcnet_050": 4, "timm/regnety_002": 4}
"""Models whose copies are compared, with their batch."""

WARMUP_S = 0.05
"""Short, as a trial does nothing for the first time but the first one."""

GOAL = (0.02, 0.07)
"""Share of false alarms that the interval of the share is to overlap."""


def main() -> None:
    options = _options()
    if options.copies:
        print(json.dumps(time_copies(options.copies, options.seed)))
        return
    print(_machine())
    if options.trials:
        print(trials(options.trials, options.pairs, options.seed))
    if options.launches:
        print(launches(options.launches, options.seed))


# -- one callable on both sides ---------------------------------------------------------------


def trials(count: int, pairs: int, seed: int) -> str:
    """Time small steps against themselves, sizes in turn, a fixed number of pairs each; return Markdown."""
    steps = [_perceptron(batch, width, seed) for batch, width in SIZES]
    torch.set_grad_enabled(False)
    gc.collect()
    gc.freeze()  # else each trial's full collection walks all of torch
    alarms: dict[tuple[int, int], list[bool]] = defaultdict(list)
    widths: dict[tuple[int, int], list[float]] = defaultdict(list)
    step_s: dict[tuple[int, int], list[float]] = defaultdict(list)
    drifting = 0
    begun_s = time.perf_counter()
    for trial in range(count):
        size, step = SIZES[trial % len(SIZES)], steps[trial % len(SIZES)]
        timing = _time(step, step, pairs, f"{seed}/{trial}")
        answer = stats.speedup(timing.eager_s, timing.compiled_s)
        assert isinstance(answer, stats.Estimate), answer
        alarms[size].append(not answer.low <= 1.0 <= answer.high)
        widths[size].append(stats.half_width(answer))
        step_s[size].append(statistics.median(timing.eager_s))
        drifting += timing.drifting
        if (trial + 1) % 100 == 0:
            print(f"{trial + 1} of {count}, {time.perf_counter() - begun_s:.0f} s", file=sys.stderr)
    false = sum(sum(some) for some in alarms.values())
    share = scipy.stats.binomtest(false, count).proportion_ci(method="exact")
    overlaps = share.low <= GOAL[1] and GOAL[0] <= share.high
    lines = [
        "## The same callable on both sides",
        "",
        f"{count} trials of {pairs} pairs, seed {seed}, {time.perf_counter() - begun_s:.0f} s in all. Intervals that "
        f"exclude 1: **{false} = {false / count:.1%}**, exact 95 % interval {share.low:.1%} to {share.high:.1%}. "
        f"Goal, an overlap with {GOAL[0]:.0%} to {GOAL[1]:.0%}: {'met' if overlaps else '**not met**'}. "
        f"Flagged as drifting: {drifting}.",
        "",
        "| batch x width | step, median | trials | exclude 1 | half-width, median |",
        "|---|---|---|---|---|",
    ]
    for size in filter(alarms.__contains__, SIZES):
        lines.append(
            f"| {size[0]} x {size[1]} | {statistics.median(step_s[size]) * 1e6:.0f} µs | {len(alarms[size])} "
            f"| {sum(alarms[size])} | {statistics.median(widths[size]):.2%} |"
        )
    return "\n".join([*lines, ""])


def _perceptron(batch: int, width: int, seed: int) -> Callable[[], object]:
    torch.manual_seed(seed)
    module = torch.nn.Sequential(torch.nn.Linear(width, width), torch.nn.GELU(), torch.nn.Linear(width, width)).eval()
    values = torch.randn(batch, width)
    return lambda: module(values)


def _time(first: Callable[[], object], second: Callable[[], object], pairs: int, seed: str) -> Timing:
    return time_pairs(
        first,
        second,
        CpuDevice(),
        precision_target=0.0,
        max_seconds=60.0,
        max_pairs=pairs,
        rng=random.Random(seed),
        warmup_s=WARMUP_S,
    )


# -- two copies, in fresh interpreters --------------------------------------------------------


def launches(count: int, seed: int) -> str:
    """Start a fresh interpreter per model and launch, models in turn; return the spread between launches, Markdown."""
    seen: dict[str, list[stats.Estimate]] = {model: [] for model in MODELS}
    for launch in range(count):
        for model, answers in seen.items():
            command = [sys.executable, __file__, "--copies", model, "--seed", str(seed + launch)]
            # Each launch draws its own hash seed and addresses, as each case of a run does not.
            own = {name: value for name, value in os.environ.items() if name != "PYTHONHASHSEED"}
            out = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env=own)
            answers.append(stats.Estimate(**json.loads(out.stdout.splitlines()[-1])))
            print(f"launch {launch + 1} of {count}, {model}: {answers[-1].value:.4f}", file=sys.stderr)
    lines = [
        "## Two copies of a model, in fresh interpreters",
        "",
        f"{count} launches per model, 40 pairs each, eager on both sides, FP32 inference. The ratio is that of the "
        "copy built first to the one built second; *between* is the standard deviation of its logarithm over the "
        "launches, *within* what the interval of one launch lets expect (its half-width / 1.96). Where between is "
        "larger, the interval of one launch does not cover what another launch will say.",
        "",
        "| model | batch | ratio, median | smallest | largest | between | within, median | between / within "
        "| intervals that exclude 1 |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for model, answers in seen.items():
        ratios = [answer.value for answer in answers]
        between = statistics.stdev(map(math.log, ratios))
        within = statistics.median(stats.half_width(answer) for answer in answers) / 1.96
        excluding = sum(not answer.low <= 1.0 <= answer.high for answer in answers)
        lines.append(
            f"| {model} | {MODELS[model]} | {statistics.median(ratios):.4f} | {min(ratios):.4f} | {max(ratios):.4f} "
            f"| {between:.2%} | {within:.2%} | {between / within:.1f} | {excluding} of {count} |"
        )
    return "\n".join([*lines, ""])


def time_copies(name: str, seed: int) -> dict[str, object]:
    """Build a model twice, time the copies against each other, and return the fields of the estimate."""
    suite, _, model = name.partition("/")
    spec = config.suite(suite)
    entry = next(entry for entry in spec.models if entry.name == model)
    case = Case(
        device="cpu", mode=Mode.INFERENCE, precision=Precision.FP32, suite=suite, model=model, batch_size=MODELS[name]
    )
    torch.set_num_threads(environment.physical_cores())
    build = builder(spec.module)
    copies = [prepare(build(entry, case.mode, case.batch_size, seed), case) for _ in range(2)]
    set_global_state(case, seed)
    first, second = (make_step(copy, copy.module) for copy in copies)
    timing = _time(first, second, 40, f"{seed}/{name}")
    answer = stats.speedup(timing.eager_s, timing.compiled_s)
    if isinstance(answer, stats.NoEstimate):
        raise SystemExit(f"{name}: {answer.reason}")
    return vars(answer)


# -- the command ------------------------------------------------------------------------------


def _machine() -> str:
    torch.set_num_threads(environment.physical_cores())
    found = environment.find(None)
    versions = ", ".join(
        f"{name} {found.versions[name]}" for name in ("torch", "numpy", "timm") if name in found.versions
    )
    return "\n".join(
        [
            f"- command: `python {shlex.join(sys.argv)}`",
            f"- machine: {found.cpu}, {found.cores_usable} usable cores, {torch.get_num_threads()} threads, "
            f"load average {found.load_average}",
            f"- date: {datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
            f"- versions: Python {found.python}, {versions}, {found.system}, method {found.method}",
            "",
        ]
    )


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=0, help="trials of one callable on both sides")
    parser.add_argument("--pairs", type=int, default=20, help="pairs per trial (20)")
    parser.add_argument("--launches", type=int, default=0, help="fresh interpreters per model")
    parser.add_argument("--seed", type=int, default=1337)
    parser.add_argument("--copies", choices=MODELS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if not (options.trials or options.launches or options.copies):
        parser.error("give --trials or --launches")
    if options.launches == 1:
        parser.error("--launches: a spread needs two launches or more")
    return options


if __name__ == "__main__":
    main()
