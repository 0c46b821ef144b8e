"""Text networks of transformers, by class and configuration, with random weights. Nothing is downloaded.

The library loads its parts when they are first used, and so they must stay out of this module's own imports: loaded,
they start threads, and a worker's process is forked from one that has imported this module.
"""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from enum import StrEnum
from typing import Any, cast

import torch
import transformers
from torch import Tensor, nn

from suites import fill, inputs, losses
from suites.registry import LoadError
from suites.shorten import shorten
from suites.spec import Attention, Mode, ModelSpec
from suites.workload import Workload


class Task(StrEnum):
    """What a network is trained for. It decides the labels, and whether a decoder gets tokens of its own."""

    MASKED = "masked_lm"
    CAUSAL = "causal_lm"
    SEQ2SEQ = "seq2seq_lm"
    ANSWERING = "question_answering"
    CLASSIFYING = "sequence_classification"


ENDING = ("Bart", "MBart", "PLBart")
"""Beginnings of the classes whose sequences end in the token for that: they find their end in it, and their decoder
reads the labels, shifted by one."""

PADDING_ALONE = ("Roberta",)
"""Beginnings of the classes that read padding alone, as upstream. Positions of other tokens are counted from that of
padding on: 512 of them would pass the end of a table of 512 rows, which is that of the default configuration."""


def build(
    spec: ModelSpec, mode: Mode, batch_size: int | None, seed: int, attention: Attention = Attention.FUSED
) -> Workload:
    """Return a network with seeded weights, tokens `(batch, length)` and labels, and in training its own loss.

    As upstream, labels are given in both modes, so that the loss is computed in inference as well.

    Raises:
        LoadError: transformers has no such class, its configuration no such value, or the entry no length or task.
    """
    length = spec.length.get(mode)
    if length is None:
        raise LoadError(f'model "{spec.name}" needs a length for {mode} in its entry.')
    with inputs.seeded(seed):
        module = network(spec, attention)
    fill.fill_scales(module, seed)
    config = cast(Any, module.config)
    arguments = _arguments(spec, config, 1 if batch_size is None else batch_size, length, seed)
    return Workload(module, (), arguments, losses.own(spec.loss_scale) if mode == Mode.TRAINING else None)


def network(spec: ModelSpec, attention: Attention = Attention.FUSED) -> nn.Module:
    """Return the module alone, as it is initialised; builds under any default device, `meta` among them.

    Raises:
        LoadError: transformers has no such class, or its configuration no such value.
    """
    module = of_configuration(spec.build_name, spec.arguments, attention)
    return module if spec.repeats is None else shorten(module, spec.repeats)


def of_configuration(name: str, values: Mapping[str, Any], attention: Attention) -> nn.Module:
    """Return a network of the library, with random weights from the global generator and no cache in its output.

    Args:
        name: of a class, such as `BertForMaskedLM`.
        values: of its configuration, in place of the library's defaults.
        attention: fused is what the library takes by default; not all of its networks have a fused one.

    Raises:
        LoadError: transformers has no such class, or its configuration no such value.
    """
    choice = {"attn_implementation": "eager"} if attention == Attention.EAGER else {}
    config = configuration(name, {**values, **choice})
    try:
        module = _class(name)(config)
    except ValueError as error:
        raise LoadError(f"{name} cannot be built: {_line(error)}") from error
    if values.get("tie_word_embeddings") is False:
        _untie(module)
    if module.loss_type is None:  # the library then takes this one, and writes to its log, which breaks the graph
        module.loss_type = "ForCausalLM"
    # XLNet makes some of its parameters on the CPU, whatever the default device is.
    return cast(nn.Module, module.to(torch.get_default_device()))


def configuration(name: str, values: Mapping[str, Any]) -> Any:
    """Return the configuration of a class with these values; see `of_configuration`."""
    kind = _class(name).config_class
    known = kind()
    for value in values:
        if not hasattr(known, value) and value != "attn_implementation":
            close = get_close_matches(value, vars(known), n=3)
            raise LoadError(
                f'{kind.__name__} has no value "{value}".' + (f" Close: {', '.join(close)}." if close else "")
            )
    try:
        # The cache is for generating text token by token: objects beside the numbers that are compared.
        return kind(**values, use_cache=False)
    except Exception as error:  # the library checks values in many ways, with exceptions of its own
        raise LoadError(f"{kind.__name__} refuses a value: {_line(error)}") from error


def _class(name: str) -> Any:
    found = getattr(transformers, name, None)
    if isinstance(found, type) and issubclass(found, transformers.PreTrainedModel) and found.config_class is not None:
        return found
    close = get_close_matches(name, [each for each in dir(transformers) if "For" in each], n=3, cutoff=0.5)
    raise LoadError(f'transformers has no network "{name}".' + (f" Close: {', '.join(close)}." if close else ""))


def _untie(module: nn.Module) -> None:
    """Give the output layer weights of its own, as MT5's had in 2022; transformers 5 ties them in any case."""
    head = cast(Any, module).get_output_embeddings()
    if head.weight is cast(Any, module).get_input_embeddings().weight:
        head.weight = nn.Parameter(torch.empty_like(head.weight))
        nn.init.normal_(head.weight)  # as the embedding; the library takes the same


def _arguments(spec: ModelSpec, config: Any, batch: int, length: int, seed: int) -> dict[str, Tensor]:
    """Return what upstream gives: tokens and labels, uniform over the vocabulary, without a mask for padding."""
    tokens = inputs.tokens(batch, length, config.vocab_size, seed)
    if spec.build_name.startswith(PADDING_ALONE):
        tokens.zero_()
    if spec.build_name.startswith(ENDING):
        tokens[:, -1] = config.eos_token_id
    arguments = {"input_ids": tokens}
    task = _task(spec)
    if task == Task.SEQ2SEQ and not spec.build_name.startswith(ENDING):
        arguments["decoder_input_ids"] = tokens
    if task == Task.CLASSIFYING:
        return {**arguments, "labels": torch.zeros(batch, dtype=torch.int64)}
    if task == Task.ANSWERING:
        begin, end = (inputs.targets(batch, length, seed, name) for name in ("start_positions", "end_positions"))
        return {**arguments, "start_positions": begin, "end_positions": end}
    # Upstream leaves the last token out by this part of a model's name; that of T5Small says another thing.
    below = config.vocab_size - ("ForConditionalGeneration" in spec.name)
    return {**arguments, "labels": inputs.tokens(batch, length, below, seed, "labels")}


def _line(error: Exception) -> str:
    return " ".join(str(error).split())


def _task(spec: ModelSpec) -> Task:
    try:
        return Task(spec.task or "")
    except ValueError:
        has = f'has the task "{spec.task}"' if spec.task else "has no task"
        raise LoadError(f'model "{spec.name}" {has}. Give it one of {", ".join(Task)}.') from None
