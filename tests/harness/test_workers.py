"""What the runner's tests do not show of children: signals, and a forkserver that cannot be trusted."""

from __future__ import annotations

import os
import signal

import pytest

from harness.workers import LOG_HALF_BYTES, Stop, _Printed


def test_signals_are_counted_and_given_back() -> None:
    """Ctrl-C once means soon, twice means now; outside the block the old handlers are back."""
    before = signal.getsignal(signal.SIGINT)
    with Stop().listening() as stop:
        assert (stop.soon, stop.now) == (False, False)
        os.kill(os.getpid(), signal.SIGINT)
        assert (stop.soon, stop.now) == (True, False)
        os.kill(os.getpid(), signal.SIGTERM)
        assert stop.now
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.parametrize("chunks", [[b"short"], [b"a" * 5000] * 20, [b"x" * 200_000, b"end"]])
def test_log_keeps_head_and_tail(chunks: list[bytes]) -> None:
    """Of what is printed, head and tail are kept whole, and how much it was in all."""
    import multiprocessing

    printed = _Printed(multiprocessing.get_context("spawn"))
    writer = os.dup(printed.end.fileno())
    printed.listen()
    for chunk in chunks:
        os.write(writer, chunk) if len(chunk) < 60_000 else [
            os.write(writer, chunk[i : i + 999]) for i in range(0, len(chunk), 999)
        ]
    os.close(writer)
    printed.close()

    text, log = b"".join(chunks).decode(), printed.log()
    assert log.bytes == len(text)
    assert log.head == text[:LOG_HALF_BYTES]
    assert log.tail == text[LOG_HALF_BYTES:][-LOG_HALF_BYTES:]
