"""An entry of the suite -> its recipe -> a workload. `build` names the recipe as `module:Class`."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from types import ModuleType
from typing import Any, cast

from torch import nn

from suites import fill, inputs
from suites.registry import LoadError
from suites.shorten import shorten
from suites.spec import Attention, Mode, ModelSpec
from suites.torchbench.recipe import Ask, Recipe
from suites.workload import Workload

EXTRAS = {"effdet": "effdet", "omegaconf": "effdet", "pycocotools": "effdet"}
"""Package -> the optional extra that it comes with, where that is not [run]."""


def build(
    spec: ModelSpec, mode: Mode, batch_size: int | None, seed: int, attention: Attention = Attention.FUSED
) -> Workload:
    """Return a network with seeded, filled weights and arguments of the entry's sizes.

    Raises:
        LoadError: the entry names no recipe, or arguments that its recipe does not have; a package is missing.
    """
    recipe = recipe_of(spec)
    with inputs.seeded(seed):
        module = _network(recipe, spec, attention)
    if fill.has_running_statistics(module):
        calibration = recipe.call(_ask(spec, Mode.INFERENCE, recipe.CALIBRATION_BATCH, seed, sized_for=Mode.TRAINING))
        fill.wake(module, calibration.args, calibration.kwargs, seed)
    else:
        fill.fill_scales(module, seed)
    call = recipe.call(_ask(spec, mode, 1 if batch_size is None else batch_size, seed, sized_for=mode))
    return Workload(module, call.args, call.kwargs, call.loss if mode == Mode.TRAINING else None)


def network(spec: ModelSpec, attention: Attention = Attention.FUSED) -> nn.Module:
    """Return the module alone, as it is initialised; builds under any default device, `meta` among them."""
    return _network(recipe_of(spec), spec, attention)


def recipe_of(spec: ModelSpec) -> Recipe:
    """Return the recipe of an entry, with the entry's arguments.

    Raises:
        LoadError: there is no such recipe, it knows no such argument, or a package that it needs is missing.
    """
    name, _, kind = spec.build_name.partition(":")
    with _packages(spec):
        found = getattr(_module(name), kind, None)
    if not (isinstance(found, type) and issubclass(found, Recipe)):
        raise LoadError(f'model "{spec.name}": there is no recipe "{spec.build_name}" in suites.torchbench.')
    known = [each.name for each in fields(cast(Any, found))]
    unknown = [argument for argument in spec.arguments if argument not in known]
    if unknown:
        raise LoadError(
            f'model "{spec.name}": {spec.build_name} has no argument "{unknown[0]}". '
            f"It has: {', '.join(known) or 'none'}."
        )
    try:
        return found(**spec.arguments)
    except TypeError as error:
        raise LoadError(f'model "{spec.name}": {spec.build_name}: {error}.') from error


def _module(name: str) -> ModuleType | None:
    """Return the module of this folder, or None where there is none of that name."""
    full = f"suites.torchbench.{name}"
    try:
        return importlib.import_module(full)
    except ModuleNotFoundError as error:
        if error.name == full:
            return None
        raise


@contextmanager
def _packages(spec: ModelSpec) -> Iterator[None]:
    """Say of which extra a package is that a model needs and that is not installed."""
    try:
        yield
    except ModuleNotFoundError as error:
        extra = EXTRAS.get((error.name or "").partition(".")[0], "run")
        raise LoadError(
            f'model "{spec.name}" needs {error.name!r}, which is not installed here. Install the extra [{extra}]: '
            f'pip install "compile-bench[{extra}]".'
        ) from error


def _network(recipe: Recipe, spec: ModelSpec, attention: Attention) -> nn.Module:
    with _packages(spec):
        module = recipe.network(attention)
    return module if spec.repeats is None else shorten(module, spec.repeats)


def _ask(spec: ModelSpec, mode: Mode, batch_size: int, seed: int, sized_for: Mode) -> Ask:
    train_size = spec.input_size
    size = train_size if sized_for == Mode.TRAINING else spec.eval_input_size or train_size
    return Ask(mode, batch_size, seed, size, spec.length.get(sized_for), spec.loss_scale)
