"""torch.compile around a step: seconds by phase, graphs, breaks with their reasons, recompiles.

Everything is read from the compiler's own counters, so it holds for each backend.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import reduce
from pathlib import Path
from typing import Any
from unittest import mock

import psutil
import torch
import torch._dynamo
import torch._dynamo.utils as dynamo_utils
import torch._inductor
from torch._inductor import codecache
from torch._inductor.graph import GraphLowering

from harness.record import Case, CompileReport, CompileScope, Frame, GraphBreak
from harness.worker.device import Device
from harness.worker.step import Prepared, StepResult, make_step

_HARNESS = str(Path(__file__).resolve().parents[1])

_PHASES = {
    "dynamo": "dynamo_cumulative_compile_time_us",
    "aot_autograd": "aot_autograd_cumulative_compile_time_us",
    "inductor": "inductor_cumulative_compile_time_us",
    "code_generation": "inductor_code_gen_cumulative_compile_time_us",
    "backward": "backward_cumulative_compile_time_us",
}
"""Our names for the compiler's timers. They are nested: each contains the next, `backward` lies beside them."""

METRICS_KEPT = 4096
"""Compilations whose metrics are kept; the compiler's default of 64 drops those of a model with many graph breaks."""


def backends() -> list[str]:
    """Return the names of all backends that torch lists here."""
    return sorted(torch._dynamo.list_backends(exclude_tags=()))


def compile_modes() -> list[str]:
    """Return the compile modes that inductor knows here."""
    return list(torch._inductor.list_mode_options())


class Compiler:
    """Compiles one step and watches. One at a time in a process: the compiler's counters are global.

    Args:
        random_numbers_from_eager: let compiled kernels draw the stream that eager draws, for
            models that draw random numbers and could not be compared otherwise.
    """

    def __init__(self, case: Case, *, random_numbers_from_eager: bool = False) -> None:
        self.case = case
        self.compilations = 0
        """Compilations begun since the start, of any frame, forward or backward."""
        self._options: dict[str, str] = {}
        self._random_numbers_from_eager = random_numbers_from_eager
        torch._dynamo.reset()
        dynamo_utils.counters.clear()
        dynamo_utils.set_compilation_metrics_limit(METRICS_KEPT)
        dynamo_utils.clear_compilation_metrics()
        torch._dynamo.callback.on_compile_start(self._count)
        if random_numbers_from_eager:
            torch._inductor.config.fallback_random = True
            torch._dynamo.config.use_numpy_random_stream = True  # else draws from numpy become draws from torch

    def _count(self, _args: object) -> None:
        self.compilations += 1

    def step(self, prepared: Prepared) -> Callable[[], StepResult]:
        """Return the compiled step; nothing is compiled before its first call."""
        options: dict[str, Any] = {"backend": self.case.backend, "dynamic": True if self.case.dynamic else None}
        if self.case.compile_mode != "default":
            options["mode"] = self.case.compile_mode
        if self.case.compile_scope == CompileScope.STEP:
            step = make_step(prepared, prepared.module, lambda run: torch.compile(run, **options))
        else:
            step = make_step(prepared, torch.compile(prepared.module, **options))
        return _marked(step) if replays_graphs(self.case, prepared.device_type) else step

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Note the settings of the compile mode while the block compiles."""
        with _watching_options(self.case.compile_mode) as self._options:
            yield

    def report(self, *, first_call_s: float, steady_s: float, cpu_s: float, steady_cpu_s: float) -> CompileReport:
        """Return what the compiler says of its work so far. Seconds of a steady call are taken off the first."""
        metrics = dynamo_utils.get_compilation_metrics()
        counters = dynamo_utils.counters
        hits, misses = _cache_use(counters)
        breaks = _breaks()
        return CompileReport(
            wall_s=max(0.0, first_call_s - steady_s),
            cpu_s=max(0.0, cpu_s - steady_cpu_s),
            first_call_s=first_call_s,
            phases_s=_phases(metrics),
            graphs=counters["stats"]["unique_graphs"],
            operators=counters["stats"]["calls_captured"],
            graph_breaks=sum(b.count for b in breaks if not b.ours),
            breaks=breaks,
            recompiles=sum(1 for m in metrics if m.co_name and (m.cache_size or 0) > 0),
            cache_hits=hits,
            cache_misses=misses,
            cold=hits == 0,
            backend=self.case.backend,
            compiled_by=_compiled_by(counters),
            frames=tuple(_frame(m) for m in metrics if m.co_name),
            options=dict(self._options),
            random_numbers_from_eager=self._random_numbers_from_eager,
        )


def replays_graphs(case: Case, device_type: str) -> bool:
    """Whether the compiled side records CUDA graphs and replays them; no other device has any."""
    if device_type != "cuda":
        return False
    return case.backend == "cudagraphs" or (
        case.backend == "inductor"
        and bool(torch._inductor.list_mode_options().get(case.compile_mode, {}).get("triton.cudagraphs"))
    )


def _marked(step: Callable[[], StepResult]) -> Callable[[], StepResult]:
    """Return `step` with a mark before each call: outputs of the call before, in memory that graphs share, may go."""

    def marked() -> StepResult:
        torch.compiler.cudagraph_mark_step_begin()  # type: ignore[no-untyped-call]
        return step()

    return marked


def cpu_seconds() -> float:
    """Return the CPU seconds of this process and all its descendants, those already gone included."""
    me = psutil.Process()
    total = 0.0
    for process in [me, *me.children(recursive=True)]:
        try:
            total += sum(process.cpu_times()[:4])
        except psutil.NoSuchProcess:
            continue
    return total


def fresh_caches(folder: Path) -> None:
    """Send every cache of the compiler to an empty folder of this case; later compilations start cold."""
    for name in ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR"):
        path = folder / name.lower()
        path.mkdir(parents=True, exist_ok=True)
        os.environ[name] = str(path)


def compile_once() -> None:
    """Compile something with inductor and forget it, unless that was done on this machine before.

    On a CPU inductor precompiles a C++ header, once per machine and user, outside the folder of its caches. That took
    several seconds here, and whichever case comes first would pay for it. A mark beside the header says it is there.
    """
    headers = Path(getattr(codecache, "_HEADER_DIR", tempfile.gettempdir()))
    mark = headers / f"bench-torch-{torch.__version__}"
    if mark.exists():
        return
    with tempfile.TemporaryDirectory(prefix="bench-", ignore_cleanup_errors=True) as folder:
        fresh_caches(Path(folder))
        with suppress(Exception):  # what is wrong with the compiler each case will say for itself
            torch.compile(torch.sin)(torch.ones(64))
            headers.mkdir(parents=True, exist_ok=True)
            mark.touch()


def _cache_use(counters: Mapping[str, Mapping[str, int]]) -> tuple[int, int]:
    names = [("inductor", "fxgraph_cache"), ("aot_autograd", "autograd_cache")]
    hits = sum(counters[group][f"{name}_hit"] for group, name in names)
    misses = sum(counters[group][f"{name}_miss"] for group, name in names)
    return hits, misses


def _compiled_by(counters: Mapping[str, Mapping[str, int]]) -> str | None:
    if any(name.startswith("fxgraph_cache") for name in counters["inductor"]):
        return "inductor"
    if counters["aot_autograd"]["total"]:
        return "aot_autograd"
    return "dynamo" if counters["stats"]["unique_graphs"] else None


def _phases(metrics: list[Any]) -> dict[str, float]:
    sums = {name: sum(getattr(m, field, None) or 0 for m in metrics) for name, field in _PHASES.items()}
    return {name: microseconds / 1e6 for name, microseconds in sums.items() if microseconds}


def _breaks() -> tuple[GraphBreak, ...]:
    seen: dict[tuple[str, str | None, bool], int] = {}
    for reason in dynamo_utils.graph_break_reasons:
        if not reason.graph_break:
            continue
        # The innermost frame of the user's stack is the line that broke.
        frame = reason.user_stack[-1] if reason.user_stack else None
        where = f"{short_path(frame.filename)}:{frame.lineno}" if frame else None
        ours = bool(frame and frame.filename.startswith(_HARNESS))
        key = (_words(reason.reason), where, ours)
        seen[key] = seen.get(key, 0) + 1
    return tuple(GraphBreak(reason=r, where=w, ours=o, count=n) for (r, w, o), n in seen.items())


def short_path(path: str) -> str:
    """Return a source file from where Python found it, the same on every machine: `timm/models/rexnet.py`."""
    roots = [root.rstrip("/") + "/" for root in sys.path if root]
    return path.removeprefix(max((root for root in roots if path.startswith(root)), key=len, default=""))


def _words(reason: str) -> str:
    """Return the compiler's headline with its explanation, without hints and links."""
    lines = [line.strip() for line in reason.strip().splitlines()]
    told = [line.removeprefix("Explanation: ") for line in lines[1:] if line.startswith("Explanation: ")]
    return ". ".join([*lines[:1], *told])[:500]


def _frame(metrics: Any) -> Frame:
    symbols: set[str] = set()
    for shape in _shapes(metrics.graph_node_shapes):
        symbols.update(size for size in shape if isinstance(size, str))
    return Frame(
        name=metrics.co_name,
        file=short_path(metrics.co_filename or ""),
        line=metrics.co_firstlineno or 0,
        operators=metrics.graph_op_count or 0,
        symbols=len(symbols),
    )


def _shapes(text: str | None) -> list[list[object]]:
    """The compiler gives shapes as the text of a dict from node to list; a symbolic size is a quoted name."""
    if not text:
        return []
    try:
        return list(json.loads(text.replace("'", '"')).values())
    except ValueError:
        return []


@contextmanager
def _watching_options(mode: str) -> Iterator[dict[str, str]]:
    """Yield a dict that fills with the settings of `mode`, as inductor has them while it generates code."""
    names = torch._inductor.list_mode_options()[mode]
    seen: dict[str, str] = {}
    original = GraphLowering.compile_to_module

    def watched(graph: GraphLowering, *args: Any, **kwargs: Any) -> Any:
        seen.update({name: str(reduce(getattr, name.split("."), torch._inductor.config)) for name in names})
        return original(graph, *args, **kwargs)

    with mock.patch.object(GraphLowering, "compile_to_module", watched):
        yield seen


def timed_call(step: Callable[[], StepResult], device: Device) -> tuple[StepResult, float, float]:
    """Return a step's result with its wall and CPU seconds, until the device is done."""
    cpu, wall = cpu_seconds(), time.perf_counter()
    result = step()
    device.synchronize()
    return result, time.perf_counter() - wall, cpu_seconds() - cpu
