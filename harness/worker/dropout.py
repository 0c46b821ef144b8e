"""Dropout and drop-path at a probability near zero.

Not zero: then kernels of real training would not run (on CPU, attention with dropout 0 picks
another kernel). Near zero: outputs of two runs can be compared.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import nn
from torch._dynamo import trace_rules
from torch.nn import functional

NEARLY_ZERO = 1e-30
"""As upstream: `1 - p` is exactly 1 in every number format, so nothing is dropped and nothing scaled."""

FUNCTIONAL = (
    "dropout",
    "alpha_dropout",
    "dropout1d",
    "dropout2d",
    "dropout3d",
    "feature_alpha_dropout",
)
"""Functions of `torch.nn.functional` whose second argument is the probability."""


def lower_dropouts(module: nn.Module) -> int:
    """Lower every dropout probability that `module` and the configurations inside it hold; return their number.

    A probability is a float in (0, 1] whose name contains `drop` (`drop_prob`, `attention_dropout`,
    `hidden_dropout_prob`, `layerdrop`), or `p` of a class named like one (`Dropout`, `StochasticDepth`).
    """
    lowered = 0
    for holder in _holders(module):
        for name, value in list(vars(holder).items()):
            if _is_probability(holder, name, value):
                setattr(holder, name, NEARLY_ZERO)
                lowered += 1
    return lowered


def lower_functional_dropouts() -> None:
    """Make torch's dropout functions lower the probability they are called with, for the rest of the process.

    Thin functions around the originals, which the compiler traces through. Repeats are harmless.
    """
    # The compiler knows torch's functions by identity and looks them up by name once: it must meet the originals.
    trace_rules.get_torch_obj_rule_map()
    for name in FUNCTIONAL:
        _replace(functional, name, _with_low_probability)
    _replace(torch, "dropout", _with_low_probability)
    _replace(functional, "scaled_dot_product_attention", _attention_with_low_probability)


def _holders(module: nn.Module) -> Iterator[Any]:
    """Yield each module and each configuration object (`config`, and those inside) once."""
    seen: set[int] = set()
    waiting: list[Any] = list(module.modules())
    while waiting:
        holder = waiting.pop()
        if id(holder) in seen:
            continue
        seen.add(id(holder))
        yield holder
        waiting += [part for name, part in vars(holder).items() if _is_configuration(name, part)]


def _is_configuration(name: str, value: Any) -> bool:
    named = any(word in name.lower() for word in ("config", "cfg"))
    return named and hasattr(value, "__dict__") and not isinstance(value, (type, nn.Module)) and not callable(value)


def _is_probability(holder: Any, name: str, value: Any) -> bool:
    kind = type(holder).__name__.lower()
    named = "drop" in name.lower() or (name == "p" and ("drop" in kind or "stochasticdepth" in kind))
    return named and isinstance(value, float) and NEARLY_ZERO < value <= 1


def _replace(owner: Any, name: str, make: Callable[[Callable[..., Any]], Callable[..., Any]]) -> None:
    original = getattr(owner, name)
    if not hasattr(original, "lowers_probability"):
        replacement = make(original)
        replacement.lowers_probability = True  # type: ignore[attr-defined]
        setattr(owner, name, replacement)


def _low(p: float) -> float:
    return NEARLY_ZERO if p > 0 else p


def _with_low_probability(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def dropout(input: Any, p: float = 0.5, *args: Any, **kwargs: Any) -> Any:
        return original(input, _low(p), *args, **kwargs)

    return dropout


def _attention_with_low_probability(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def scaled_dot_product_attention(
        query: Any, key: Any, value: Any, attn_mask: Any = None, dropout_p: float = 0.0, *args: Any, **kwargs: Any
    ) -> Any:
        return original(query, key, value, attn_mask, _low(dropout_p), *args, **kwargs)

    return scaled_dot_product_attention
