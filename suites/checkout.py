"""A person's own checkout of TorchBench: its models as they are there, of 2022 or of today.

A model is a folder below `torchbenchmark/models` or `torchbenchmark/canary_models` whose module has a class `Model`.
Its constructor builds network and inputs for one mode and one device, and may cast or compile before it returns;
`get_module()` hands both out. Loss and optimizer are ours. Weights are not filled.

Importing a model sets the framework's switches, opens process groups, starts loaders; so this is done in the process
that measures the model, and there alone. Listing them imports nothing.
"""

from __future__ import annotations

import errno
import importlib
import inspect
import os
import random
import shlex
import sys
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from suites.spec import MODES, PRECISIONS, Attention, Mode, ModelSpec, Precision, SuiteSpec

if TYPE_CHECKING:
    from suites.workload import Workload

NAME = "torchbench-checkout"
"""Of the suite: never that of our own networks, so that the two are not mixed."""

TREES = ("models", "canary_models")
"""Below `torchbenchmark`. Where a name stands in both, the first counts, as upstream."""

TESTS = {Mode.TRAINING: "train", Mode.INFERENCE: "eval"}


@dataclass(frozen=True)
class Place:
    """Where a model stands, and how it is asked for."""

    folder: Path
    test: str
    device: str

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def root(self) -> Path:
        return self.folder.parents[2]

    @property
    def module(self) -> str:
        return ".".join(self.folder.parts[-3:])

    @property
    def remedy(self) -> str:
        canary = "--canary " if self.folder.parent.name != TREES[0] else ""
        return f"Install what it needs: cd {shlex.quote(str(self.root))} && python install.py {canary}{self.name}"


def suite(checkout: Path | str, device: str = "cpu") -> SuiteSpec:
    """Return the suite of a checkout, its models by name.

    Args:
        checkout: the folder that holds `torchbenchmark`.
        device: `cpu` or `cuda`, for which the constructors build; it decides batch sizes there.

    Raises:
        ValueError: it is no checkout. The text says what to give in its place.
    """
    root = Path(checkout).expanduser().resolve()
    found: dict[str, Path] = {}
    for tree in TREES:
        for init in sorted(root.glob(f"torchbenchmark/{tree}/[!_.]*/__init__.py")):
            found.setdefault(init.parent.name, init.parent)
    if not found:
        raise ValueError(_no_checkout(root))
    return SuiteSpec(
        name=NAME,
        about=f"Models of the TorchBench checkout in {root}",
        module="suites.checkout",
        tolerance={
            **dict.fromkeys((mode.value for mode in MODES), 1e-4),
            **dict.fromkeys((each.value for each in PRECISIONS if each != Precision.FP32), 1e-3),
        },
        models=tuple(
            ModelSpec(name=name, build=str(found[name]), arguments={"device": device}) for name in sorted(found)
        ),
    )


def build(
    spec: ModelSpec, mode: Mode, batch_size: int | None, seed: int, attention: Attention = Attention.FUSED
) -> Workload:
    """Construct the model of the folder `spec.build`, from the checkout's root, and return its module and inputs.

    The checkout seeds with a number of its own where it does; else `seed` holds. What fails for another reason than the
    ones below comes out unchanged.

    Args:
        batch_size: None: the checkout's own, by mode and device.

    Raises:
        LoadError: the original does not do what is asked for; a package or data are missing, with the command that
            installs them; or attention is asked for, which a model of a checkout chooses itself.
    """
    import numpy
    import torch

    from suites.inputs import seeded
    from suites.registry import LoadError

    place = Place(Path(spec.build_name), TESTS[mode], str(spec.arguments.get("device", "cpu")))
    if attention != Attention.FUSED:
        raise LoadError(f"{place.name}: it chooses its own attention. Leave out --attention {attention}.")
    if not place.folder.is_dir():
        raise LoadError(f"{place.folder}: there is no such folder any more. Correct --torchbench.")
    os.chdir(place.root)
    sys.path.insert(0, str(place.root))  # both stay: a model may read and import later
    with seeded(seed), _own_seeds(), _explained(place):
        for each in (torch.manual_seed, random.seed, numpy.random.seed):
            each(seed)
        kind: Any = getattr(importlib.import_module(place.module), "Model", None)
        if not inspect.isclass(kind):
            raise LoadError(f"{place.name}: {place.module} has no class Model and so is no model.")
        model: Any = kind(**_arguments(place, kind, batch_size))
        return _workload(place, model.get_module())


def _no_checkout(root: Path) -> str:
    if not root.is_dir():
        return f"there is no folder {root}"
    for above in root.parents:
        if root.is_relative_to(above / "torchbenchmark") and (above / "torchbenchmark" / TREES[0]).is_dir():
            return f"{root} is inside of a checkout of TorchBench. Give its root, {above}"
    return f"{root} is no checkout of TorchBench: it holds no model below torchbenchmark/models"


def _arguments(place: Place, kind: type, batch_size: int | None) -> dict[str, Any]:
    """Return the constructor's arguments. Until July 2023 it took `jit`, in some models without a default.

    Raises:
        LoadError: it cannot be told the mode, or the batch size that is asked for.
    """
    from suites.registry import LoadError

    # Of the class itself, `signature` would show its metaclass, which runs a hook behind every constructor.
    parameters = inspect.signature(kind.__init__).parameters  # type: ignore[misc]
    any_name = any(each.kind == inspect.Parameter.VAR_KEYWORD for each in parameters.values())
    offered: dict[str, Any] = {"test": place.test, "device": place.device, "jit": False}
    if batch_size is not None:
        offered["batch_size"] = batch_size
    if place.device == "cuda":
        offered["extra_args"] = ["--precision", "fp32"]  # by default many are cast to half precision there
    taken = {name: value for name, value in offered.items() if name in parameters or (any_name and name != "jit")}
    for name, of_what in (("test", "the mode"), ("batch_size", f"batch size {batch_size}")):
        if name in offered and name not in taken:
            raise LoadError(f"{place.name} is unsupported here: its constructor takes no `{name}`, so not {of_what}.")
    return taken


def _workload(place: Place, given: Any) -> Workload:
    from torch import Tensor, nn

    from suites.registry import LoadError
    from suites.workload import Workload

    if not (isinstance(given, tuple | list) and len(given) == 2 and isinstance(given[0], nn.Module)):
        raise LoadError(f"{place.name} is unsupported here: get_module() returns no pair of a module and its inputs.")
    module, inputs = given
    if isinstance(inputs, Mapping):
        return Workload(module, (), inputs)
    if isinstance(inputs, tuple | list | Tensor):
        return Workload(module, (inputs,) if isinstance(inputs, Tensor) else tuple(inputs), {})
    raise LoadError(
        f"{place.name} is unsupported here: get_module() returns inputs of kind {type(inputs).__name__}, "
        "not a tuple, a list or a mapping."
    )


@contextmanager
def _own_seeds() -> Iterator[None]:
    """Put `torch.manual_seed` back: checkouts of 2022 replace it by one that takes no other seed than theirs.

    With it, a model that draws random numbers would seem to draw none.
    """
    import torch

    kept = torch.manual_seed
    try:
        yield
    finally:
        setattr(torch, "manual_seed", kept)  # noqa: B010 - an assignment is no type that mypy accepts


@contextmanager
def _explained(place: Place) -> Iterator[None]:
    """Turn what says that a model is not supported, or not installed, into one line with the remedy."""
    from suites.registry import LoadError

    try:
        yield
    except NotImplementedError as error:
        text = f"the original does not support {place.test} on {place.device} like this ({_said(error)})"
        raise LoadError(f"{place.name} is unsupported here: {text}.") from error
    except ModuleNotFoundError as error:
        missing = error.name or _said(error)
        if missing.partition(".")[0] == "torchbenchmark":
            text = f"{place.name} needs {missing!r}, which the checkout lacks: it is not whole. Check it out again."
        else:
            text = f"{place.name} needs {missing!r}, which is not installed here. {place.remedy}"
        raise LoadError(text) from error
    except ImportError as error:
        text = f"{place.name} does not fit to the packages here ({_said(error)}). {place.remedy}"
        raise LoadError(text) from error
    except AssertionError as error:
        text = f"{place.name} asserts what does not hold, mostly data that are missing ({_said(error)}). {place.remedy}"
        raise LoadError(text) from error
    except OSError as error:
        if error.errno == errno.ENOMEM:
            raise
        raise LoadError(f"{place.name} can read or fetch no data ({_said(error)}). {place.remedy}") from error


def _said(error: BaseException) -> str:
    """Return the first line of what an exception says, or else of the code that raised it."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    frames = traceback.extract_tb(error.__traceback__)
    return lines[0] if lines else (frames[-1].line or type(error).__name__) if frames else type(error).__name__
