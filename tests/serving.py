"""A real server on loopback in a thread of this process, that can be ended and begun again at the same port."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn
from starlette.types import ASGIApp


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


@contextmanager
def serving(app: ASGIApp, port: int) -> Iterator[str]:
    """Give the address at which an app is served; connections that are open at the end are cut."""
    config = uvicorn.Config(app, host="127.0.0.1", port=port, log_level="critical", timeout_graceful_shutdown=0)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    until = time.monotonic() + 30
    while not server.started and time.monotonic() < until and thread.is_alive():
        time.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = server.force_exit = True
        thread.join(30)


def wait_for(done: object, within_s: float = 20.0) -> bool:
    """Wait until a function says that it is so, and say whether it did."""
    assert callable(done)
    until = time.monotonic() + within_s
    while time.monotonic() < until:
        if done():
            return True
        time.sleep(0.02)
    return False
