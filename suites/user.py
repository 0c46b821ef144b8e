"""A person's own model: a function that builds it, in a file or in a module.

    model.py                   the function build() of the file
    model.py:small             another function of it
    package.module:function    of a module in the working directory, or of an installed one

The function returns the module, and `inputs` stands beside it; or it returns both.

    build()        returns the module, untrained; or (module, args, kwargs); or a Workload
    inputs()       returns (args, kwargs); kwargs may be any mapping. Asked where build() returned the module alone
    loss(output)   returns a scalar; without it the mean over all floating leaves is taken

Either may take `batch_size`; whichever makes the inputs must, where a batch size is asked for. The
model is measured as it is: weights are not filled. Torch is imported when a model is built, so that
one can be planned without.
"""

from __future__ import annotations

import hashlib
import importlib
import inspect
import random
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from suites.find import look_here
from suites.spec import Attention, Mode, ModelSpec, SuiteSpec

if TYPE_CHECKING:
    from suites.workload import Workload

_WORD = r"[^\W\d]\w*"
_OWN = re.compile(rf"(?P<place>.+\.py|{_WORD}(?:\.{_WORD})*(?=:))(?::(?P<function>{_WORD}))?")


@dataclass(frozen=True)
class Own:
    """Where a person's model comes from.

    Args:
        place: an absolute path that ends in `.py`, or the full name of a module.
        function: of that place; it builds the model.
    """

    place: str
    function: str = "build"

    @property
    def file(self) -> Path | None:
        """The file; None: it is a module's name."""
        return Path(self.place) if self.place.endswith(".py") else None

    def __str__(self) -> str:
        return self.place if self.file is not None and self.function == "build" else f"{self.place}:{self.function}"


def parse(text: str) -> Own | None:
    """Return what a text names; None where it has neither form, and so is the name of something else."""
    found = _OWN.fullmatch(text)
    if found is None:
        return None
    place, function = found["place"], found["function"] or "build"
    return Own(str(Path(place).resolve()) if place.endswith(".py") else place, function)


def suite(models: Iterable[Path | str], name: str = "user") -> SuiteSpec:
    """Return a suite of the models, in that order; nothing is imported.

    A model of a file is named like the file, and the function where it is not `build`; files of equal names are told
    apart by the folders above them. One of a module is named in full. Tolerances are those of the published suites.

    Raises:
        ValueError: one of them has neither form.
    """
    own = list(dict.fromkeys(_parsed(str(model)) for model in models))
    return SuiteSpec(
        name=name,
        about="Models of one's own, given by file or function",
        module="suites.user",
        tolerance={Mode.INFERENCE: 1e-3, Mode.TRAINING: 1e-2},
        models=tuple(ModelSpec(name=_model_name(each, own), build=str(each)) for each in own),
    )


def build(
    spec: ModelSpec, mode: Mode, batch_size: int | None, seed: int, attention: Attention = Attention.FUSED
) -> Workload:
    """Run the file, or import the module, that `spec.build` names, and return its model.

    A file is run afresh each time. What it raises comes out unchanged. It may seed by itself; where it does not, `seed`
    holds for torch, `random` and numpy.

    Raises:
        LoadError: a file, module or function is missing, returns the wrong kind of thing, or takes no `batch_size`
            although one is asked for; or attention is asked for, which the model alone decides.
    """
    from suites.registry import LoadError

    own = _parsed(spec.build_name)
    if attention != Attention.FUSED:
        raise LoadError(f"{own.place}: it chooses its own attention. Leave out --attention {attention}.")
    with _seeded(seed):
        module = _execute(own.file) if own.file is not None else _imported(own.place)
        function = getattr(module, own.function, None)
        if not callable(function):
            known = [name for name, value in vars(module).items() if callable(value)]
            close = get_close_matches(own.function, known, n=3, cutoff=0.5)
            hint = f" Close: {', '.join(close)}." if close else ""
            raise LoadError(f"{own.place}: the {_kind(own)} has no function {own.function}().{hint}")
        return _workload(own, module, function, batch_size)


def _workload(own: Own, module: ModuleType, function: Callable[..., Any], batch_size: int | None) -> Workload:
    from torch import nn

    from suites.registry import LoadError
    from suites.workload import Workload

    answer = function(**_batch(function, batch_size))
    if isinstance(answer, nn.Module):
        network, maker, what = answer, getattr(module, "inputs", None), "inputs()"
        if not callable(maker):
            raise LoadError(
                f"{own.place}: the {_kind(own)} has no function inputs(), and {own.function}() returns the module "
                "alone. Add inputs(), or return (module, args, kwargs)."
            )
        given = maker(**_batch(maker, batch_size))
    elif isinstance(answer, Workload):
        network, maker, what, given = answer.module, function, f"{own.function}()", (answer.args, answer.kwargs)
    elif isinstance(answer, tuple | list) and len(answer) == 3 and isinstance(answer[0], nn.Module):
        network, maker, what, given = answer[0], function, f"{own.function}()", tuple(answer[1:])
    else:
        raise LoadError(
            f"{own.place}: {own.function}() must return a torch.nn.Module, or (module, args, kwargs), not "
            f"{_told(answer)}."
        )
    if batch_size is not None and not _takes_batch_size(maker):
        raise LoadError(f"{own.place}: batch size {batch_size} is asked for, but {what} takes no batch_size.")
    if not (isinstance(given, tuple | list) and len(given) == 2):
        raise LoadError(f"{own.place}: {what} must return (args, kwargs), not {_told(given)}.")
    args, kwargs = given
    if not isinstance(args, tuple | list) or not isinstance(kwargs, Mapping):
        raise LoadError(
            f"{own.place}: {what} must return a tuple and a mapping, not "
            f"{type(args).__name__} and {type(kwargs).__name__}."
        )
    loss = answer.loss if isinstance(answer, Workload) else getattr(module, "loss", None)
    return Workload(network, tuple(args), kwargs, loss if callable(loss) else None)


@contextmanager
def _seeded(seed: int) -> Iterator[None]:
    """Seed all that a file may draw from: torch, `random` and numpy. Put all back afterwards."""
    import numpy

    from suites.inputs import seeded

    kept, kept_of_numpy = random.getstate(), numpy.random.get_state()
    random.seed(seed)
    numpy.random.seed(seed)
    try:
        with seeded(seed):
            yield
    finally:
        random.setstate(kept)
        numpy.random.set_state(kept_of_numpy)


def _execute(path: Path) -> ModuleType:
    from suites.registry import LoadError

    if not path.is_file():
        raise LoadError(f"{path}: there is no such file.")
    name = f"bench_user_{path.stem}_{hashlib.sha256(str(path).encode()).hexdigest()[:8]}"
    module = ModuleType(name)
    module.__file__ = str(path)
    if str(path.parent) not in sys.path:
        sys.path.append(str(path.parent))  # for what stands beside the file; stays, as functions may import later
    sys.modules[name] = module  # dataclasses and pickle look their module up there
    # Compiled here, not imported: a cached .pyc misses an edit within one second that keeps the size.
    exec(compile(path.read_bytes(), str(path), "exec"), vars(module))
    return module


def _imported(name: str) -> ModuleType:
    from suites.registry import LoadError

    look_here()
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise  # something that the module imports
        raise LoadError(
            f"{name}: there is no module {error.name}, neither in {Path.cwd()} nor installed. "
            "Correct the name, or install it."
        ) from error


def _parsed(text: str) -> Own:
    own = parse(text)
    if own is None:
        raise ValueError(f"{text!r} is neither a file (name.py) nor a function (package.module:function)")
    return own


def _kind(own: Own) -> str:
    return "file" if own.file is not None else "module"


def _told(value: object) -> str:
    """Return what kind of thing a function returned, e.g. `Tensor` or `tuple of 2`."""
    kind = type(value).__name__
    return f"{kind} of {len(value)}" if isinstance(value, tuple | list) else kind


def _batch(function: Callable[..., Any], batch_size: int | None) -> dict[str, int]:
    return {"batch_size": batch_size} if batch_size is not None and _takes_batch_size(function) else {}


def _takes_batch_size(function: Callable[..., Any]) -> bool:
    try:
        return "batch_size" in inspect.signature(function).parameters
    except ValueError:  # written in C: it does not tell
        return False


def _model_name(own: Own, known: list[Own]) -> str:
    names = _names(own)
    return next((name for name in names if sum(name in _names(other) for other in known) == 1), names[-1])


def _names(own: Own) -> list[str]:
    """Return the names that a model could have, the shortest first; the last one is its alone."""
    if own.file is None:
        return [str(own)]
    parts = own.file.with_suffix("").parts
    function = "" if own.function == "build" else f":{own.function}"
    short = ["/".join(parts[-count:]) for count in range(1, len(parts))]
    return [f"{name}{function}" for name in (*short, own.file.with_suffix(""))]
