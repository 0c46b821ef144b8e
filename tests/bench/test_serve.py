"""`bench serve` and its twin in the background."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request

import pytest
from typer.testing import CliRunner

from bench.serve import address_of, app, is_loopback, listening, refuse_open, start_in_background
from harness.errors import BenchError, UsageError
from server.settings import Settings


@pytest.fixture
def url(tmp_path):
    return f"sqlite:///{tmp_path}/bench.db"


def read(address: str) -> str:
    with urllib.request.urlopen(address, timeout=20) as answer:
        return answer.read().decode()


def refuses(address: str, within_s: float = 20) -> bool:
    """Whether nothing answers at an address, now or soon."""
    host, port = address.removeprefix("http://").strip("/").split(":")
    until = time.monotonic() + within_s
    while time.monotonic() < until:
        with socket.socket() as client:
            if client.connect_ex((host, int(port))) != 0:
                return True
        time.sleep(0.05)
    return False


def test_database_that_does_not_exist_yet(url):
    """The dashboard of a database that does not exist is the empty one; it ends when asked."""
    process, address = start_in_background(url, 0)

    assert "Nothing ran yet" in read(address)
    process.terminate()
    assert -signal.SIGTERM == process.wait(20)
    assert refuses(address)


def test_ctrl_c_is_the_usual_end(url):
    """Ctrl-C ends `bench serve` with exit code 0 and without a traceback."""
    process = subprocess.Popen(
        [sys.executable, "-m", "bench.main", "serve", "--port", "0", "--database", url],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    address = process.stdout.readline().removeprefix("Dashboard: ").strip()
    read(address)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=20)

    assert (0, "") == (process.returncode, errors)


def test_dies_with_its_parent(url):
    """A dashboard in the background ends when the run that started it is killed."""
    script = f"from bench.serve import start_in_background as s; print(s({url!r}, 0)[1], flush=True); input()"
    parent = subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    address = parent.stdout.readline().strip()
    read(address)
    os.kill(parent.pid, signal.SIGKILL)
    parent.wait(20)

    assert refuses(address)


def test_port_taken(url):
    """A port that is taken is answered with what to do, in the background too."""
    with listening("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(BenchError, match=rf"--port {port}: Address already in use\. Choose another port"):
            start_in_background(url, port)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.7", "bench.example"])
def test_other_machines_are_let_in_on_purpose_only(host, url):
    """An address that others can reach is refused unless it is said how they may read."""
    result = CliRunner().invoke(app, ["--host", host, "--database", url])

    assert isinstance(result.exception, UsageError)
    assert "--read-token" in str(result.exception)
    assert "--public-read" in str(result.exception)


def test_two_ways_of_reading_at_once():
    """Reading with a token and reading by anybody exclude each other; either of them lets others in."""
    for read, public in (("token", False), ("open", True)):
        refuse_open("0.0.0.0", Settings(read=read, public_read=public))

    with pytest.raises(UsageError, match="exclude each other"):
        refuse_open("0.0.0.0", Settings(read="token", public_read=True))


def test_variable_that_is_wrong(url, monkeypatch):
    """A variable that says nothing known is named, with what it may say."""
    monkeypatch.setenv("BENCH_READ", "secret")
    result = CliRunner().invoke(app, ["--database", url])

    assert isinstance(result.exception, UsageError)
    assert "BENCH_READ: Input should be 'open' or 'token'" in str(result.exception)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "::1", "localhost"])
def test_loopback(host):
    """The names of this machine for itself are known."""
    assert is_loopback(host)


def test_address_to_open():
    """The address printed is one that a browser on this machine can open."""
    with listening("0.0.0.0", 0) as listener:
        assert f"http://127.0.0.1:{listener.getsockname()[1]}/" == address_of(listener)


def test_bad_database_is_said_at_the_start(tmp_path):
    """A database that cannot be opened ends the command with its sentence."""
    with pytest.raises(BenchError, match="Make sure that the folder exists"):
        start_in_background(f"sqlite:///{tmp_path}/no/such/folder/bench.db", 0)
