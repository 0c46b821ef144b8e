"""How fast the store and the API answer, on a database of any size. Prints Markdown.

    python -m benchmarks.store_speed sqlite:///full.db --label "SQLite, 10 million"

Starts the real server on the database (the program users start, in a process of its own), asks each page one at a time,
and tells the 95th percentile of what came after ten warm-up requests; then eight readers by wrk beside two writers;
then what the server holds in memory. Reads what `benchmarks.store_fill` made; the runs that the writers add stay.
"""

from __future__ import annotations

import argparse
import http.client
import multiprocessing
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.queues import Queue
from pathlib import Path

import numpy as np
import psutil
from sqlalchemy import text

from benchmarks.nights import plan
from benchmarks.store_fill import a_record, first_run
from harness.record import EndReason, Record, Run, RunEnd, new_run_id, now, record_id
from server import db
from server.store import Kept, Store

WARM_UP = 10
ASKED = 100
READERS = 8
WRITERS = 2
LOADED_S = 30
BATCH = 500

LUA = """
local paths = {{{paths}}}
local next_path = 0
request = function()
  next_path = next_path % #paths + 1
  return wrk.format("GET", paths[next_path])
end
done = function(summary, latency, requests)
  io.write(string.format("p95_ms %.2f\\nrequests %d\\nstatus_errors %d\\nsocket_errors %d\\n",
    latency:percentile(95) / 1000, summary.requests, summary.errors.status,
    summary.errors.connect + summary.errors.read + summary.errors.write + summary.errors.timeout))
end
"""


@dataclass(frozen=True)
class Page:
    """What is asked, and how fast it should be answered."""

    name: str
    path: str
    goal_ms: float


@contextmanager
def served(database: str) -> Iterator[tuple[int, psutil.Process]]:
    """Run the server on a free port; give the port and its process."""
    command = [sys.executable, "-m", "bench.main", "serve", "--database", database, "--port", "0"]
    with tempfile.TemporaryFile("w+") as said:
        process = subprocess.Popen(command, stdout=said, stderr=subprocess.STDOUT, text=True)
        try:
            yield _port(process, said), psutil.Process(process.pid)
        finally:
            process.send_signal(signal.SIGINT)
            with suppress(subprocess.TimeoutExpired):
                process.wait(20)
            process.kill()


def _port(process: subprocess.Popen[str], said: object) -> int:
    for _ in range(600):
        text_ = os.pread(said.fileno(), 4000, 0).decode()  # type: ignore[attr-defined]
        if found := re.search(r"http://[\w.]+:(\d+)", text_):
            return int(found[1])
        if process.poll() is not None:
            raise RuntimeError(f"the server ended: {text_}")
        time.sleep(0.1)
    raise RuntimeError("the server did not start within a minute")


def pages(database: str) -> list[Page]:
    """Return the addresses of the newest two whole runs, and of one model in all configurations over a year."""
    engine = db.connect(database)
    with engine.connect() as connection:
        newest = text("SELECT id, started_at FROM run WHERE trigger = 'nightly' ORDER BY started_at DESC LIMIT 2")
        (head, at), (base, _) = connection.execute(newest).all()
        suite, model = connection.execute(text('SELECT suite, model FROM "case" ORDER BY key LIMIT 1')).one()
    engine.dispose()
    year = f"{int(str(at)[:4]) - 1}{str(at)[4:10]}"
    compared = f"/api/v1/compare?base={base}&head={head}"
    metrics = "".join(f"&metric={name}" for name in ("speedup", "eager_s", "compiled_s", "compile_wall_s"))
    return [
        Page("overview, page", "/", 50),
        Page("runs, 50 of them", "/api/v1/runs?limit=50", 50),
        Page("run", f"/api/v1/runs/{head}", 50),
        Page("run, page", f"/runs/{head}", 50),
        Page("run's results, 200 of them", f"/api/v1/runs/{head}/results?limit=200", 50),
        Page("model: all its series, a year", f"/api/v1/series?suite={suite}&model={model}&since={year}", 50),
        Page("the same, four figures", f"/api/v1/series?suite={suite}&model={model}&since={year}{metrics}", 50),
        Page("comparison, rows that changed", compared, 50),
        Page("comparison, every row", f"{compared}&all=true", 300),
        Page("filters that have data", "/api/v1/facets", 50),
        Page("suites over a year", f"/api/v1/summary?since={year}", 50),
    ]


def latencies(port: int, page: Page, asked: int) -> tuple[np.ndarray, int]:
    """Return the milliseconds of each request, one after the other, and the bytes of an answer."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    taken, size = [], 0
    for number in range(WARM_UP + asked):
        began = time.perf_counter()
        connection.request("GET", page.path)
        answer = connection.getresponse()
        size = len(answer.read())
        if answer.status != 200:
            raise RuntimeError(f"{page.path}: status {answer.status}")
        if number >= WARM_UP:
            taken.append(1000 * (time.perf_counter() - began))
    return np.array(taken), size


def one_run(id_: str) -> tuple[Run, list[Record]]:
    """Return a run of every planned case, and a record of each with forty pairs of samples."""
    planned = plan()
    run = first_run(planned).model_copy(update={"id": id_, "started_at": now()})
    plain, rng = a_record(planned[0]), np.random.default_rng(1)
    assert plain.timing is not None
    found = []
    for each in planned:
        eager = rng.lognormal(-3.5, 0.02, 40)
        samples = {"eager_s": tuple(eager), "compiled_s": tuple(eager / 1.3), "eager_first": (True, False) * 20}
        whose = {"id": record_id(id_, each.case.id, 1), "run_id": id_, "case": each.case}
        moments = {"started_at": now(), "finished_at": now()}
        found.append(plain.model_copy(update=whose | moments | {"timing": plain.timing.model_copy(update=samples)}))
    return run, found


def write(database: str, seconds: float, kept: Queue[int]) -> None:
    """Store runs, in batches, until the time is over; say how many records were kept as new."""
    store, end, new = Store.connect(database), time.monotonic() + seconds, 0
    while time.monotonic() < end:
        run, found = one_run(new_run_id())
        store.open(run)
        for first in range(0, len(found), BATCH):
            new += store.save(found[first : first + BATCH]).count(Kept.NEW)
        store.close(RunEnd(run_id=run.id, at=now(), reason=EndReason.FINISHED))
    store.dispose()
    kept.put(new)


def saved_per_second(database: str) -> float:
    """Return how many records with samples one writer stores in a second, a whole run in batches."""
    store = Store.connect(database)
    taken = []
    for _ in range(3):
        run, found = one_run(new_run_id())
        store.open(run)
        began = time.perf_counter()
        for first in range(0, len(found), BATCH):
            store.save(found[first : first + BATCH])
        taken.append(len(found) / (time.perf_counter() - began))
    store.dispose()
    return float(np.median(taken))


def stored(database: str) -> int:
    """Return how many results lie in runs that the writers here began."""
    engine = db.connect(database)
    with engine.connect() as connection:
        asked = text("SELECT count(*) FROM result r JOIN run u ON u.key = r.run_key WHERE u.trigger IS NULL")
        found = int(connection.scalar(asked) or 0)
    engine.dispose()
    return found


def loaded(database: str, port: int, asked: list[Page]) -> str:
    """Return what eight readers saw beside two writers, and whether all that was written is there."""
    before, kept = stored(database), multiprocessing.get_context("spawn").Queue()
    spawn = multiprocessing.get_context("spawn")
    writers = [spawn.Process(target=write, args=(database, LOADED_S, kept)) for _ in range(WRITERS)]
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "paths.lua"
        script.write_text(LUA.replace("{{{paths}}}", "{" + ", ".join(f'"{page.path}"' for page in asked) + "}"))
        for writer in writers:
            writer.start()
        command = ["wrk", "-t", "1", "-c", str(READERS), "-d", f"{LOADED_S}s", "--timeout", "30s", "-s", str(script)]
        said = subprocess.run([*command, f"http://127.0.0.1:{port}"], capture_output=True, text=True, check=True).stdout
        new = sum(kept.get() for _ in writers)
        for writer in writers:
            writer.join()
    told = dict(re.findall(r"^(p95_ms|requests|status_errors|socket_errors) ([\d.]+)$", said, re.MULTILINE))
    lost = before + new - stored(database)
    return (
        f"{READERS} readers beside {WRITERS} writers, {LOADED_S} s: {told['requests']} answers, "
        f"p95 {told['p95_ms']} ms; no 2xx {told['status_errors']}, broken off {told['socket_errors']}; "
        f"{new} records written, {lost} lost"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("database")
    parser.add_argument("--label", required=True, help="what the database is, for the heading")
    parser.add_argument("--asked", type=int, default=ASKED, help="requests of each page")
    options = parser.parse_args()
    if shutil.which("wrk") is None:
        sys.exit("wrk is not installed: Debian's package of that name.")
    found = pages(options.database)
    print(f"## {options.label}\n\n| what | p50 ms | p95 ms | goal ms | answer kB |\n|---|---:|---:|---:|---:|")
    with served(options.database) as (port, process):
        for page in found:
            taken, size = latencies(port, page, options.asked)
            p50, p95 = np.percentile(taken, (50, 95))
            print(f"| {page.name} | {p50:.0f} | {p95:.0f} | {page.goal_ms:.0f} | {size / 1000:.0f} |", flush=True)
        print(f"\nOne writer, records with samples: {saved_per_second(options.database):,.0f} a second.\n", flush=True)
        print(loaded(options.database, port, [page for page in found if page.goal_ms <= 50]) + ".\n", flush=True)
        time.sleep(5)
        print(f"The server holds {process.memory_info().rss / 2**20:.0f} MiB after all that.")


if __name__ == "__main__":
    main()
