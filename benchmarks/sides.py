"""Where the time of one inference step goes, eager and compiled: by operator, without the harness around it.

    python -m benchmarks.sides selecsls42b gernet_l

For a model whose compiled step surprises. Times both sides in turn, then lets torch's own profiler say which
operators took it; what a compiled graph does outside of called operators is one line, `compiled graph`. Markdown.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from datetime import UTC, datetime

import torch
from torch.profiler import ProfilerActivity, profile

from harness import config
from harness.host import cpu
from suites.registry import builder
from suites.spec import Mode

ROUNDS = 20
PROFILED = 5
SHOWN = 4


def milliseconds(eager: Callable[[], object], compiled: Callable[[], object]) -> tuple[float, float]:
    """Return the median milliseconds of each side, taken in turn after two steps of warming up."""
    taken: tuple[list[float], list[float]] = ([], [])
    for side in (eager, compiled, eager, compiled):
        side()
    for _ in range(ROUNDS):
        for side, samples in zip((eager, compiled), taken, strict=True):
            begun_s = time.perf_counter()
            side()
            samples.append(1000 * (time.perf_counter() - begun_s))
    return statistics.median(taken[0]), statistics.median(taken[1])


def operators(step: Callable[[], object]) -> list[str]:
    """Return the costliest operators with their milliseconds per step."""
    with profile(activities=[ProfilerActivity.CPU]) as seen:
        for _ in range(PROFILED):
            step()
    costs: dict[str, float] = {}
    for event in seen.key_averages():
        name = "compiled graph" if "CompiledFxGraph" in event.key else event.key.removeprefix("aten::")
        costs[name] = costs.get(name, 0.0) + event.self_cpu_time_total / 1000 / PROFILED
    worst = sorted(costs.items(), key=lambda item: -item[1])[:SHOWN]
    return [f"{name} {cost:.1f}" for name, cost in worst]


def row(model: str, suite: str, batch_size: int, seed: int) -> str:
    found = config.suite(suite)
    spec = next(spec for spec in found.models if spec.name == model)
    workload = builder(found.module)(spec, Mode.INFERENCE, batch_size, seed)
    module = workload.module.eval()
    compiled = torch.compile(module)
    sides = [lambda each=each: each(*workload.args, **workload.kwargs) for each in (module, compiled)]
    eager_ms, compiled_ms = milliseconds(*sides)
    told = [", ".join(operators(side)) for side in sides]
    return f"| {model} | {eager_ms / compiled_ms:.2f} | {eager_ms:.1f} | {told[0]} | {compiled_ms:.1f} | {told[1]} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+")
    parser.add_argument("--suite", default="timm")
    parser.add_argument("--batch-size", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1337)
    options = parser.parse_args()
    facts = cpu.read()
    torch.set_num_threads(facts.physical_cores)
    torch.set_grad_enabled(False)
    print(
        f"{datetime.now(UTC):%Y-%m-%d}, {facts.name}, {facts.physical_cores} threads, torch {torch.__version__}, "
        f"batch {options.batch_size}.\n\n"
        "| model | eager / compiled | eager ms | of these, ms | compiled ms | of these, ms |\n"
        "|---|---:|---:|---|---:|---|"
    )
    for model in options.models:
        print(row(model, options.suite, options.batch_size, options.seed), flush=True)


if __name__ == "__main__":
    main()
