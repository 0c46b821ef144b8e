from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

PERFORMANCE = (
    "dev,name,batch_size,speedup,abs_latency,compilation_latency,compression_ratio,eager_peak_mem,dynamo_peak_mem,"
    "calls_captured,unique_graphs,fallbacks_to_eager,graph_breaks,unique_graph_breaks,autograd_captures,"
    "autograd_compiles,cudagraph_skips"
)
ACCURACY = (
    "dev,name,batch_size,accuracy,calls_captured,unique_graphs,fallbacks_to_eager,graph_breaks,unique_graph_breaks,"
    "autograd_captures,autograd_compiles,cudagraph_skips,compilation_latency"
)

Put = Callable[..., Path]


@pytest.fixture
def put(tmp_path: Path) -> Put:
    """Write lines as a file and return its path."""

    def write(name: str, *lines: str) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(lines) + "\n")
        return path

    return write
