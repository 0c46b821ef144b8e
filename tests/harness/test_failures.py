"""Exceptions of a model as data."""

from __future__ import annotations

import errno
import json
import threading

import pytest
import torch

from harness.worker.failures import MAX_TEXT, MAX_TRACEBACK, describe, first_line, is_out_of_memory


class Trouble(Exception):
    """Cannot be pickled, and has no text to print."""

    def __init__(self) -> None:
        super().__init__()
        self.lock = threading.Lock()

    def __str__(self) -> str:
        raise ValueError("no text")


def raised(error: BaseException, cause: BaseException | None = None) -> BaseException:
    try:
        raise error from cause
    except BaseException as caught:
        return caught


def refused() -> BaseException:
    with pytest.raises(RuntimeError) as caught:
        torch.empty(1 << 48)
    return caught.value


def test_refused_memory_is_out_of_memory():
    """On CPU torch raises a plain RuntimeError for it."""
    assert is_out_of_memory(refused())


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB"),
        OSError(errno.ENOMEM, "Cannot allocate memory"),
        RuntimeError("std::bad_alloc"),
        RuntimeError("CUDA error: out of memory"),
        RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"),
        RuntimeError("MPS backend out of memory (MPS allocated: 6.77 GB, max allowed: 6.80 GB)"),
        raised(ValueError("could not build the batch"), MemoryError()),
    ],
)
def test_many_words_for_out_of_memory(error):
    """Python's, torch's, the kernel's and C++'s; and any error that was raised from one of them."""
    assert is_out_of_memory(error)


@pytest.mark.parametrize(
    "error",
    [
        RuntimeError("required rank 4 tensor to use channels_last memory format"),
        ValueError("out of memory is a film of 2001"),
        OSError(errno.ENOENT, "No such file or directory"),
        KeyError("memory"),
        RuntimeError("CUDA error: device-side assert triggered"),
        RuntimeError("out of resource: shared memory, Required: 131072, Hardware limit: 101376"),
    ],
)
def test_other_errors_are_not_out_of_memory(error):
    """The word alone does not make it one."""
    assert not is_out_of_memory(error)


def test_compilers_wrapper_is_looked_into():
    """The compiler wraps what its backend raised; memory that ran out in there is still memory."""

    def backend(graph: object, example_inputs: object) -> object:
        raise MemoryError("in the backend")

    with pytest.raises(Exception, match="in the backend") as caught:
        torch.compile(lambda x: x + 1, backend=backend)(torch.ones(1))

    assert is_out_of_memory(caught.value)
    assert "in the backend" in first_line(describe(caught.value))


def test_exception_without_text_is_described():
    """Neither a `__str__` that raises nor a lock inside keeps an exception from becoming plain text."""
    failure = describe(raised(Trouble()))

    assert "Trouble" == failure.kind
    assert "no printable text" in failure.text
    assert "raised" in failure.traceback


def test_first_line_is_what_was_said_first():
    """A line that only announces takes the next one with it; no text at all leaves the kind."""
    assert "width 5" == first_line(describe(ValueError("width 5\nmore")))
    assert "backend raised: broken" == first_line(describe(ValueError("backend raised:\n\n  broken\nmore")))
    assert "KeyboardInterrupt" == first_line(describe(KeyboardInterrupt()))


def test_text_is_bounded_and_clean():
    """Megabytes are cut in the middle; what UTF-8 or a database refuses is replaced."""
    failure = describe(raised(ValueError("first \udc80\0" + "x" * 100_000 + " last")))

    assert MAX_TEXT >= len(failure.text)
    assert MAX_TRACEBACK >= len(failure.traceback)
    assert failure.text.startswith("first ??x")
    assert failure.text.endswith(" last")
    assert json.dumps(failure.model_dump()).encode("utf-8")
