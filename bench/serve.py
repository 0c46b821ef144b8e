"""`bench serve`: the dashboard; and the same in the background, while a run goes on."""

from __future__ import annotations

import contextlib
import ctypes
import ipaddress
import os
import signal
import socket
import subprocess
import sys
import tempfile
from typing import TYPE_CHECKING, Annotated, Any

import typer
from pydantic import ValidationError

from bench.options import DATABASE, Database
from harness.errors import BenchError, UsageError

if TYPE_CHECKING:
    from server.settings import Settings

app = typer.Typer(add_completion=False)

BACKLOG = 128
GRACE_S = 2
"""An open page may be waiting for an answer when the server ends; no answer takes longer."""

Host = Annotated[str, typer.Option("--host", help="Address to listen on.")]
Port = Annotated[int, typer.Option("--port", min=0, max=65535, help="Port to listen on; 0 takes any that is free.")]
ReadToken = Annotated[
    bool,
    typer.Option("--read-token", help="Reading needs a token, too; then other machines may be let in."),
]
PublicRead = Annotated[
    bool, typer.Option("--public-read", help="Let anyone who can reach the port read; there is no log-in.")
]
WithParent = Annotated[bool, typer.Option("--with-parent", hidden=True, help="End when the parent process ends.")]


@app.command()
def main(
    database: Database = DATABASE,
    host: Host = "127.0.0.1",
    port: Port = 8000,
    public_read: PublicRead = False,
    read_token: ReadToken = False,
    with_parent: WithParent = False,
) -> None:
    """Serve the dashboard until Ctrl-C."""
    if with_parent:
        _end_with_parent()
    import uvicorn  # here, so that --help is quick

    from dashboards.app import create_app

    settings = _settings(database, public_read, read_token)
    refuse_open(host, settings)
    with listening(host, port) as listener:
        served = create_app(settings)
        print(f"Dashboard: {address_of(listener)}", flush=True)
        config = uvicorn.Config(
            served, log_level="warning", access_log=False, server_header=False, timeout_graceful_shutdown=GRACE_S
        )
        with contextlib.suppress(KeyboardInterrupt):  # the usual way to end it
            uvicorn.Server(config).run(sockets=[listener])


def refuse_open(host: str, settings: Settings) -> None:
    """Refuse an address that others reach, unless it was said how they may read.

    Raises:
        UsageError: it was not said, or two ways at once.
    """
    from server.settings import Reading

    if settings.public_read and settings.read == Reading.TOKEN:
        raise UsageError("--public-read and --read-token exclude each other. Leave one of them out.")
    if not is_loopback(host) and not settings.public_read and settings.read == Reading.OPEN:
        raise UsageError(
            f"--host {host} lets other machines read all results without a log-in. Say --read-token, so that they need "
            "a token, or --public-read if anybody may; or listen on 127.0.0.1."
        )


def _settings(database: str, public_read: bool, read_token: bool) -> Settings:
    """Return the settings of the environment, with what the options say."""
    from server.settings import Reading, Settings

    said: dict[str, Any] = {"public_read": True} if public_read else {}
    said |= {"read": Reading.TOKEN} if read_token else {}
    try:
        return Settings(database=database, **said)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        name = "BENCH_" + "_".join(str(part) for part in first["loc"]).upper()
        raise UsageError(f"{name}: {first['msg']}. Correct the variable, or unset it.") from None


def start_in_background(database: str, port: int = 8000) -> tuple[subprocess.Popen[str], str]:
    """Serve the dashboard in a process of its own; it ends with this one, or when terminated.

    Returns:
        The process, and the address at which it listens already.

    Raises:
        BenchError: it could not start; the message is its own.
    """
    options = ["--with-parent", "--database", database, "--port", str(port)]
    with tempfile.TemporaryFile("w+") as errors:  # not a pipe, which would fill up and block the server
        # A session of its own: Ctrl-C is for the run, which ends the dashboard when it is done.
        process = subprocess.Popen(
            [sys.executable, "-m", "bench.main", "serve", *options],
            stdout=subprocess.PIPE,
            stderr=errors,
            stdin=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
        )
        assert process.stdout is not None
        line = process.stdout.readline()
        if line.startswith("Dashboard: "):
            return process, line.removeprefix("Dashboard: ").strip()
        process.wait()
        errors.seek(0)
        raise BenchError(f"the dashboard did not start. {errors.read().strip().removeprefix('bench: ')}")


def listening(host: str, port: int) -> socket.socket:
    """Return a socket that listens already: who connects now is answered as soon as the app is up.

    Raises:
        BenchError: the port is taken, or the address is not this machine's.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        raise BenchError(
            f"--host {host} --port {port}: {error.strerror or error}. "
            "Choose another port, --port 0 takes any that is free; or end what listens there."
        ) from None
    return listener


def address_of(listener: socket.socket) -> str:
    """Return the address to open in a browser on this machine."""
    host, port = listener.getsockname()[:2]
    name = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"http://[{name}]:{port}/" if ":" in name else f"http://{name}:{port}/"


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _end_with_parent() -> None:
    """Ask the kernel for a signal when the parent dies, even by SIGKILL; where there is no such kernel, do without."""
    death_signal = 1  # PR_SET_PDEATHSIG of <sys/prctl.h>
    if sys.platform == "linux":
        parent = os.getppid()
        ctypes.CDLL(None).prctl(death_signal, signal.SIGTERM)
        if os.getppid() != parent or parent == 1:
            sys.exit(0)
