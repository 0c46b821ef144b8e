"""A person's own file: `build()`, `inputs()` or `inputs(batch_size=N)`, and perhaps `loss(output)`.

    build()        returns the module, untrained
    inputs()       returns (args, kwargs); kwargs may be any mapping
    loss(output)   returns a scalar; without it the mean over all floating leaves is taken

The model is measured as it is: weights are not filled. Torch is imported when a model is built, so
that such a file can be planned without.
"""

from __future__ import annotations

import hashlib
import inspect
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from suites.spec import Attention, Mode, ModelSpec, SuiteSpec

if TYPE_CHECKING:
    from suites.workload import Workload


def suite(paths: Iterable[Path | str], name: str = "user") -> SuiteSpec:
    """Return a suite of the files, in that order; none of them is imported.

    A model is named like its file; files of equal names are told apart by the folders above them.
    Tolerances are those of the published suites.
    """
    files = list(dict.fromkeys(Path(path).resolve() for path in paths))
    return SuiteSpec(
        name=name,
        about="Model files given by name",
        module="suites.user",
        tolerance={Mode.INFERENCE: 1e-3, Mode.TRAINING: 1e-2},
        models=tuple(ModelSpec(name=_model_name(file, files), build=str(file)) for file in files),
    )


def build(
    spec: ModelSpec, mode: Mode, batch_size: int | None, seed: int, attention: Attention = Attention.FUSED
) -> Workload:
    """Run the file `spec.build` as a fresh module and return its model.

    What the file raises comes out unchanged. It may seed by itself; where it does not, `seed` holds.

    Raises:
        LoadError: a function is missing, returns the wrong kind of thing, or takes no `batch_size`
            although one is asked for; or attention is asked for, which the file alone decides.
    """
    from suites.inputs import seeded
    from suites.registry import LoadError
    from suites.workload import Workload

    path = Path(spec.build_name)
    if attention != Attention.FUSED:
        raise LoadError(f"{path}: a file chooses its own attention. Leave out --attention {attention}.")
    if not path.is_file():
        raise LoadError(f"{path}: there is no such file.")
    with seeded(seed):
        module = _execute(path)
        for each in ("build", "inputs"):
            if not callable(getattr(module, each, None)):
                raise LoadError(f"{path}: the file has no function {each}().")
        network = module.build()
        if batch_size is not None and not _takes_batch_size(module.inputs):
            raise LoadError(f"{path}: batch size {batch_size} is asked for, but inputs() takes no batch_size.")
        given = module.inputs() if batch_size is None else module.inputs(batch_size=batch_size)
    if not (isinstance(given, tuple | list) and len(given) == 2):
        raise LoadError(f"{path}: inputs() must return (args, kwargs), not {type(given).__name__}.")
    args, kwargs = given
    if not isinstance(args, tuple | list) or not isinstance(kwargs, Mapping):
        raise LoadError(
            f"{path}: inputs() must return a tuple and a mapping, not "
            f"{type(args).__name__} and {type(kwargs).__name__}."
        )
    return Workload(network, tuple(args), kwargs, getattr(module, "loss", None))


def _execute(path: Path) -> ModuleType:
    name = f"bench_user_{path.stem}_{hashlib.sha256(str(path).encode()).hexdigest()[:8]}"
    module = ModuleType(name)
    module.__file__ = str(path)
    if str(path.parent) not in sys.path:
        sys.path.append(str(path.parent))  # for what stands beside the file; stays, as functions may import later
    sys.modules[name] = module  # dataclasses and pickle look their module up there
    # Compiled here, not imported: a cached .pyc misses an edit within one second that keeps the size.
    exec(compile(path.read_bytes(), str(path), "exec"), vars(module))
    return module


def _takes_batch_size(function: Callable[..., Any]) -> bool:
    parameters = inspect.signature(function).parameters.values()
    return any(each.name == "batch_size" or each.kind == inspect.Parameter.VAR_KEYWORD for each in parameters)


def _model_name(file: Path, files: list[Path]) -> str:
    parts = file.with_suffix("").parts
    for count in range(1, len(parts)):
        name = "/".join(parts[-count:])
        if sum("/".join(other.with_suffix("").parts[-count:]) == name for other in files) == 1:
            return name
    return str(file.with_suffix(""))
