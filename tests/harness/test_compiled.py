"""What the compiler is read for, on its own words."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from harness.worker import compiled
from tests.fakes import FakeDevice, FakeStep


def test_words_of_a_reason() -> None:
    """A reason is the compiler's headline with its explanation, without hints and links."""
    reason = "Unsupported call\n  Explanation: It cannot be traced.\n  Hint: Do otherwise.\n\n For more: see a page"
    assert compiled._words(reason) == "Unsupported call. It cannot be traced."


@pytest.mark.parametrize(
    ("text", "shapes"),
    [(None, []), ("{'x': [64, 's77'], 'y': []}", [[64, "s77"], []]), ("not a dict", [])],
)
def test_shapes(text: str | None, shapes: list[list[object]]) -> None:
    """Shapes are read from the compiler's text; what cannot be read is no shape, and no exception."""
    assert compiled._shapes(text) == shapes


@pytest.mark.parametrize(
    ("counts", "part"),
    [
        (
            {"inductor": {"fxgraph_cache_miss": 1}, "aot_autograd": {"total": 1}, "stats": {"unique_graphs": 1}},
            "inductor",
        ),
        ({"aot_autograd": {"total": 1}, "stats": {"unique_graphs": 1}}, "aot_autograd"),
        ({"stats": {"unique_graphs": 1}}, "dynamo"),
        ({}, None),
    ],
)
def test_compiled_by(counts: dict[str, dict[str, int]], part: str | None) -> None:
    """Which part of the compiler was at work is told by its counters, the deepest first."""
    counters: defaultdict[str, Counter[str]] = defaultdict(Counter)
    counters.update({group: Counter(each) for group, each in counts.items()})
    assert compiled._compiled_by(counters) == part


def test_cpu_seconds_count_children() -> None:
    """The CPU seconds of a child that is gone are counted."""
    before = compiled.cpu_seconds()
    subprocess.run([sys.executable, "-c", "sum(i * i for i in range(3_000_000))"], check=True)
    assert compiled.cpu_seconds() - before > 0.05


def test_backends_and_modes() -> None:
    """Torch lists inductor among its backends, and inductor its default mode."""
    assert {"inductor", "eager", "aot_eager"} <= set(compiled.backends())
    assert "default" in compiled.compile_modes()


def test_what_is_made_once_per_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The throw-away compilation happens where its mark is missing, and not again; its caches are gone."""
    calls = []
    monkeypatch.setattr(compiled.codecache, "_HEADER_DIR", str(tmp_path / "headers"))
    monkeypatch.setattr(compiled.torch, "compile", lambda function: calls.append(os.environ) or function)
    for name in ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR"):
        monkeypatch.setenv(name, "as it was")
    compiled.compile_once()
    folder = Path(os.environ["TORCHINDUCTOR_CACHE_DIR"])
    compiled.compile_once()

    assert len(calls) == 1
    assert not folder.exists()
    assert [path.name for path in (tmp_path / "headers").iterdir()] == [f"bench-torch-{compiled.torch.__version__}"]


def test_paths_are_those_of_any_machine() -> None:
    """A library's file is named from where Python found it; a file that is on no path of Python keeps its own."""
    assert compiled.short_path(compiled.torch.nn.__file__) == "torch/nn/__init__.py"
    assert compiled.short_path("/somewhere/else/model.py") == "/somewhere/else/model.py"


@pytest.mark.parametrize(
    ("device", "backend", "mode", "replays"),
    [
        ("cuda", "inductor", "default", False),
        ("cuda", "inductor", "reduce-overhead", True),
        ("cuda", "inductor", "max-autotune", True),
        ("cuda", "inductor", "max-autotune-no-cudagraphs", False),
        ("cuda", "cudagraphs", "default", True),
        ("cuda", "aot_eager", "reduce-overhead", False),
        ("cpu", "inductor", "reduce-overhead", False),
        ("mps", "inductor", "reduce-overhead", False),
    ],
)
def test_steps_are_marked_where_graphs_are_replayed(
    bench_of: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
    device: str,
    backend: str,
    mode: str,
    replays: bool,
) -> None:
    """With CUDA graphs each compiled call is announced, so that outputs of the one before may go; elsewhere none is."""
    marks: list[str] = []
    monkeypatch.setattr(compiled.torch, "compile", lambda module, **options: module)
    monkeypatch.setattr(compiled.torch.compiler, "cudagraph_mark_step_begin", lambda: marks.append("mark"))
    bench = bench_of(torch.nn.Linear(2, 2), torch.ones(1, 2), backend=backend, compile_mode=mode)
    prepared = dataclasses.replace(bench.prepared, device_type=device)

    step = compiled.Compiler(prepared.case).step(prepared)
    step()
    step()

    assert replays == compiled.replays_graphs(prepared.case, device)
    assert ["mark"] * 2 * replays == marks


def test_seconds_of_a_call_end_with_the_device() -> None:
    """A call that returns before the device is done is timed until it is."""
    device = FakeDevice()
    step = FakeStep(device, "compiled", 1.0, lazy=True)

    compiled.timed_call(step, device)

    assert ["synchronize"] == device.calls
    assert 0.0 == device.queued_s
