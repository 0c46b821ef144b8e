"""Name of a suite's module -> its builder, imported when a model of it is built.

A module with a function `build` like `Builder` is a suite; any installed package may have one, and
so may the working directory. A suite file names it under `module`.
"""

from __future__ import annotations

import importlib
from typing import Protocol, cast

from suites.find import locate, look_here
from suites.spec import Attention, Mode, ModelSpec
from suites.workload import Workload


class LoadError(Exception):
    """A model cannot be built as its entry describes it. The text says what is missing."""


class Builder(Protocol):
    """Builds one model in FP32 on the CPU. The same seed gives the same weights and inputs.

    Weights do not depend on mode, batch size or attention. `batch_size` None leaves it to the model.

    Raises:
        LoadError: it cannot be built as asked for.
    """

    def __call__(
        self, spec: ModelSpec, mode: Mode, batch_size: int | None, seed: int, attention: Attention = Attention.FUSED
    ) -> Workload: ...


def builder(module: str) -> Builder:
    """Return the function `build` of a module.

    Raises:
        LoadError: the module, or something that it imports, is not installed; or it builds nothing.
    """
    if locate(module) is None:
        look_here()
    try:
        found = importlib.import_module(module)
    except ModuleNotFoundError as error:
        missing = error.name or module
        raise LoadError(f"{module} needs {missing!r}, which is not installed here. {_remedy(missing)}") from error
    build = getattr(found, "build", None)
    if not callable(build):
        raise LoadError(f"{module} has no function build(spec, mode, batch_size, seed, attention) and so is no suite.")
    return cast(Builder, build)


def _remedy(missing: str) -> str:
    if missing.partition(".")[0] in ("torch", "timm", "transformers", "torchvision"):
        return "Install the extra [run]."
    return "Install it, or correct `module` in the suite's file."
