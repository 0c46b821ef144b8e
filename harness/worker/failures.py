"""Exceptions of a model as data: was it memory, and what did it say.

An exception may refuse to be pickled, printed or even turned to text; what is taken from it here
is plain, bounded text.
"""

from __future__ import annotations

import errno
import traceback
from collections.abc import Iterator

import torch

from harness.record import Failure

MAX_TEXT = 2_000
MAX_TRACEBACK = 8_000

OUT_OF_MEMORY = (
    "can't allocate memory",  # torch's allocator on CPU: "DefaultCPUAllocator: can't allocate memory: you tried ..."
    "cannot allocate memory",  # the C library, for fork and mmap too
    "not enough memory",
    "out of memory",  # CUDA and Metal
    "bad_alloc",
    "status_alloc_failed",  # cuBLAS and cuDNN, whose workspaces torch's allocator does not know
)
"""Texts of plain errors that mean memory: on CPU torch raises a RuntimeError for it."""


def is_out_of_memory(error: BaseException) -> bool:
    """Whether `error`, or one that it was raised from, says that memory ran out."""
    return any(_says_out_of_memory(each) for each in _chain(error))


def describe(error: BaseException) -> Failure:
    """Return type, message and traceback of `error`, bounded: the middle is left out of what is too long."""
    return Failure(
        kind=type(error).__name__,
        text=_bounded(_message(error), MAX_TEXT),
        traceback=_bounded(_traceback(error), MAX_TRACEBACK) or None,
    )


def first_line(failure: Failure) -> str:
    """Return the first line of what was said; where it only announces (`backend='inductor' raised:`), the next too."""
    lines = [line.strip() for line in failure.text.splitlines() if line.strip()] or [failure.kind]
    return " ".join(lines[:2]) if lines[0].endswith(":") else lines[0]


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Yield `error`, what it wraps and what it was raised from, each once."""
    seen: set[int] = set()
    waiting: list[BaseException | None] = [error]
    while waiting:
        each = waiting.pop()
        if not isinstance(each, BaseException) or id(each) in seen:
            continue
        seen.add(id(each))
        yield each
        waiting += [each.__cause__, None if each.__suppress_context__ else each.__context__]
        waiting += [getattr(each, "inner_exception", None)]  # of the compiler's BackendCompilerFailed


def _says_out_of_memory(error: BaseException) -> bool:
    if isinstance(error, (MemoryError, torch.OutOfMemoryError)):
        return True
    if isinstance(error, OSError) and error.errno == errno.ENOMEM:
        return True
    text = _message(error).lower()
    return isinstance(error, RuntimeError) and any(words in text for words in OUT_OF_MEMORY)


def _message(error: BaseException) -> str:
    try:
        text = str(error).strip()
    except Exception:  # a __str__ that raises
        text = "(the exception has no printable text)"
    return _clean(text) or type(error).__name__


def _traceback(error: BaseException) -> str:
    try:
        return _clean("".join(traceback.format_exception(error)))
    except Exception:
        return _clean("".join(traceback.format_tb(error.__traceback__)))


def _clean(text: str) -> str:
    """Replace what UTF-8 (lone surrogates) or a database (NUL) refuses."""
    return text.encode("utf-8", "replace").decode().replace("\0", "?")


def _bounded(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    mark = f"\n... {len(text) - limit} characters left out ...\n"
    head = limit // 3
    return text[:head] + mark + text[len(text) - (limit - head - len(mark)) :]
