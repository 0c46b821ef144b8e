"""Image networks of timm, by name, with random weights. Nothing is downloaded."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any, cast

import timm
from timm.layers import config as layers
from torch import nn

from suites import fill, inputs
from suites.losses import classification
from suites.registry import LoadError
from suites.shorten import shorten
from suites.spec import Attention, Mode, ModelSpec
from suites.workload import Workload

CALIBRATION_BATCH = 8
"""With two, the variance over one value per image (the squeeze of rexnet) is so small that activations reach 8e3."""


def build(
    spec: ModelSpec, mode: Mode, batch_size: int | None, seed: int, attention: Attention = Attention.FUSED
) -> Workload:
    """Return a network with filled weights, images of the size of its mode and, in training, a loss.

    Images are `(batch, channels, height, width)`; the size is the train size in training and the
    test size in inference, as upstream has it. Weights are the same in both modes.

    Raises:
        LoadError: timm has no such model, or knows no choice of attention.
    """
    with inputs.seeded(seed):
        module = network(spec, attention)
    config = cast(Mapping[str, Any], module.pretrained_cfg)
    train_size = spec.input_size or tuple(config["input_size"])
    eval_size = spec.eval_input_size or tuple(config.get("test_input_size") or train_size)
    fill.wake(module, (inputs.images(CALIBRATION_BATCH, train_size, seed),), {}, seed)

    batch = 1 if batch_size is None else batch_size
    images = inputs.images(batch, train_size if mode == Mode.TRAINING else eval_size, seed)
    targets = inputs.targets(batch, cast(int, module.num_classes), seed)
    return Workload(module, (images,), {}, classification(targets, spec.loss_scale) if mode == Mode.TRAINING else None)


def network(spec: ModelSpec, attention: Attention = Attention.FUSED) -> nn.Module:
    """Return the module alone, as it is initialised; builds under any default device, `meta` among them.

    Raises:
        LoadError: timm has no such model, does not know an argument, or knows no choice of attention.
    """
    module = create(spec.build_name, attention, **spec.arguments)
    return module if spec.repeats is None else shorten(module, spec.repeats)


def create(name: str, attention: Attention, **arguments: Any) -> nn.Module:
    """Return timm's network of that name, as it is initialised, with the constructor's arguments.

    Raises:
        LoadError: timm has no such model, does not know an argument, or knows no choice of attention.
    """
    if not timm.is_model(name):
        close = get_close_matches(name, timm.list_models(), n=3, cutoff=0.5)
        raise LoadError(f'timm has no model "{name}".' + (f" Close: {', '.join(close)}." if close else ""))
    _choose(attention)
    try:
        return timm.create_model(name, pretrained=False, **arguments)
    except TypeError as error:
        raise LoadError(f'timm\'s "{name}" cannot be built with {arguments}: {error}.') from error


def _choose(attention: Attention) -> None:
    """Set the library's switch, one for the process, which each block reads when it is built.

    Blocks that the library fuses only on trial (swin, visformer) stay spelled out either way.
    """
    switch = getattr(layers, "set_fused_attn", None)
    if switch is not None:
        switch(attention == Attention.FUSED)
    elif attention != Attention.FUSED:
        raise LoadError(
            f"timm {timm.__version__} has no switch for its attention. "
            f"Install timm 1.0.30 or newer, or leave out --attention {attention}."
        )
