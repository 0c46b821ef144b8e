"""Ten processes that write into one database at once: `python -m tests.server.writers URL`."""

from __future__ import annotations

import multiprocessing
import sys
from multiprocessing.synchronize import Barrier
from typing import Any

from harness.record import Run, Stage
from server.store import Store
from tests.server import factory

WRITERS = 10
CASES = 5
SHARED = "0194a3f2-0000-7000-8000-00000000ffff"


def make_run(number: int) -> Run:
    """Return the run of a writer: every second one writes the same, the others each their own."""
    return factory.make_run(CASES, id=SHARED if number % 2 else f"0194a3f2-0000-7000-8000-{number:012}")


def write(url: str, number: int, barrier: Barrier) -> None:
    run = make_run(number)
    barrier.wait(60)
    store = Store.connect(url)
    store.open(run)
    for planned in run.plan:
        start = factory.make_start(planned.case, run.id)
        store.start(start)
        store.stage(start, Stage.LOAD)
        store.record(factory.make_record(planned.case, run_id=run.id))
    lines: list[Any] = [run, *(factory.make_record(planned.case, run_id=run.id) for planned in run.plan)]
    store.replay([*lines, factory.make_end(run.id)])
    store.dispose()


def main(url: str) -> int:
    context = multiprocessing.get_context(
        "fork"
    )  # nothing is open yet; ten fresh interpreters would take ten times as long
    barrier = context.Barrier(WRITERS)
    writers = [context.Process(target=write, args=(url, number, barrier)) for number in range(WRITERS)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(120)
    return sum(writer.exitcode != 0 for writer in writers)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
