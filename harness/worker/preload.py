"""Imported once by the forkserver, so that children begin with everything at hand.

Imports and nothing else: after a single tensor operation here OpenMP's threads exist, do not
survive the fork, and every child hangs in its first operation. `PROBLEM` says so instead.
"""

from __future__ import annotations

import importlib
import os

import numpy  # noqa: F401  (its BLAS starts threads of its own when imported; those are harmless)

# Asked whether there is a GPU, torch then asks the driver's library and not CUDA, which survives no fork. Libraries ask
# that while they are imported.
os.environ.setdefault("PYTORCH_NVML_BASED_CUDA_CHECK", "1")

_THREADS_BEFORE = len(os.listdir("/proc/self/task")) if os.path.isdir("/proc/self/task") else None

import torch  # noqa: E402  (counted from here on)
import torch._dynamo  # noqa: E402
import torch._inductor.compile_fx  # noqa: E402

PROBLEM: str | None = None
"""Why no child of this process can be trusted, or None."""


def _import(modules: str) -> str | None:
    for module in filter(None, modules.split(",")):
        try:
            importlib.import_module(module)
        except ImportError:
            continue  # the child meets it again, and says so in its record
    threads = len(os.listdir("/proc/self/task")) if _THREADS_BEFORE is not None else None
    if threads != _THREADS_BEFORE:
        return (
            f"importing {modules or 'torch'} started threads ({_THREADS_BEFORE} before, {threads} after). "
            "A module that computes while it is imported makes every model hang: move that work into build()."
        )
    if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        return f"importing {modules} touched CUDA: no child could use it. Move that work into build()."
    return None


PROBLEM = _import(os.environ.get("BENCH_PRELOAD", ""))
