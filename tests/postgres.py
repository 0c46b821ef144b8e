"""A PostgreSQL server for tests: one that a URL names, or one of our own from the system's binaries.

Our own listens on a socket in a folder of its own, writes nothing outside it, and is stopped at the end. Each test gets
a schema; that costs a twentieth of a second, a database a third.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path

from sqlalchemy import NullPool, create_engine, make_url, text

VARIABLE = "BENCH_TEST_POSTGRES"
"""URL of a database in which tests may make and drop schemas."""

SETTINGS = (
    "fsync=off",
    "synchronous_commit=off",
    "full_page_writes=off",
    "listen_addresses=",
    "max_connections=60",
    "shared_buffers=64MB",
)

_numbers = count()


class Server:
    """A server that runs, and the URL of a database on it."""

    def __init__(self, url: str) -> None:
        self.url = url

    @contextmanager
    def schema(self) -> Iterator[str]:
        """Give the URL of an empty schema; it is dropped afterwards."""
        name = f"test_{os.getpid()}_{next(_numbers)}"
        admin = create_engine(self.url, isolation_level="AUTOCOMMIT", poolclass=NullPool)
        with admin.connect() as connection:
            connection.execute(text(f"CREATE SCHEMA {name}"))
        try:
            options = {"options": f"-csearch_path={name}"}
            yield make_url(self.url).update_query_dict(options).render_as_string(hide_password=False)
        finally:
            with admin.connect() as connection:
                connection.execute(text(f"DROP SCHEMA {name} CASCADE"))
            admin.dispose()


@contextmanager
def server() -> Iterator[Server]:
    """Give a server: the one that `BENCH_TEST_POSTGRES` names, else one of our own.

    Raises:
        RuntimeError: there is none and none can be started. A test that needs one must not pass unseen.
    """
    if named := os.environ.get(VARIABLE):
        yield Server(named)
        return
    binaries = find()
    if binaries is None:
        raise RuntimeError(f"There is no PostgreSQL to test with: install one, or name a database in {VARIABLE}.")
    # A socket's path may have 107 characters at most, so not below pytest's folders.
    with tempfile.TemporaryDirectory(prefix="bench-pg-", dir="/tmp") as name, started(binaries, Path(name)) as url:
        yield Server(url)


def find() -> Path | None:
    """Return the folder of the newest server's binaries."""
    configured = shutil.which("pg_config")
    if configured and (Path(_output(configured, "--bindir")) / "initdb").exists():
        return Path(_output(configured, "--bindir"))
    folders = [folder for folder in Path("/usr/lib/postgresql").glob("*/bin") if (folder / "initdb").exists()]
    if folders:
        return max(folders, key=lambda folder: int(re.sub(r"\D", "", folder.parent.name) or 0))
    on_path = shutil.which("initdb")
    return Path(on_path).resolve().parent if on_path else None


class Cluster:
    """A cluster in a folder: made, started and stopped by the system's own binaries."""

    def __init__(self, binaries: Path, folder: Path, *settings: str, limits: Sequence[str] = ()) -> None:
        """Make it. `limits`: what `prlimit` is to hold the server's processes to."""
        self.url = f"postgresql+psycopg://postgres@/postgres?host={folder}"
        self._folder = folder
        as_user: list[object] = ["prlimit", *limits] if limits else []
        if os.geteuid() == 0:  # the server refuses to run as root
            shutil.chown(folder, "postgres")
            as_user += ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]
        data = folder / "data"
        make = [binaries / "initdb", "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-sync"]
        _run(*as_user, *make, "--locale=C", folder=folder)
        self._options = " ".join(f"-c {each}" for each in (*SETTINGS, f"unix_socket_directories={folder}", *settings))
        self._control = [*as_user, binaries / "pg_ctl", "-D", data, "-w", "-t", "60"]

    def start(self) -> None:
        _run(*self._control, "-l", self._folder / "log", "-o", self._options, "start", folder=self._folder)

    def stop(self) -> None:
        _run(*self._control, "-m", "immediate", "stop", folder=self._folder)


@contextmanager
def started(binaries: Path, folder: Path, *settings: str) -> Iterator[str]:
    """Make a cluster in a folder, run it, and give its URL."""
    cluster = Cluster(binaries, folder, *settings)
    cluster.start()
    try:
        yield cluster.url
    finally:
        cluster.stop()


def _run(*command: object, folder: Path) -> None:
    """A server that starts keeps its output open: it must not be a pipe."""
    with open(folder / "out", "ab") as out:
        done = subprocess.run([str(part) for part in command], stdout=out, stderr=out, cwd=folder, check=False)
    if done.returncode:
        said = (folder / "out").read_text(errors="replace")[-2000:]
        raise RuntimeError(f"{command[-1]} of PostgreSQL failed with exit code {done.returncode}: {said}")


def _output(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()


def provide() -> int:
    """Install one where there is none and the system's packages may be installed; say so."""
    if os.environ.get(VARIABLE) or find():
        return 0
    if os.geteuid() == 0 and shutil.which("apt-get"):
        print("PostgreSQL is not there; installing the system's package.", flush=True)
        subprocess.run(["apt-get", "update", "-qq"], check=False)
        subprocess.run(["apt-get", "install", "-y", "-qq", "--no-install-recommends", "postgresql"], check=False)
        if find():
            return 0
    print(
        "There is no PostgreSQL to test with. Install it (Debian: apt install postgresql; Fedora: dnf install "
        f"postgresql-server; macOS: brew install postgresql), or name a database in {VARIABLE}.",
        file=sys.stderr,
    )
    return 1


if __name__ == "__main__":
    sys.exit(provide())
