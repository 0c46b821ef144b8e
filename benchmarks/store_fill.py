"""Fill a database with made-up nights: 163 models in 16 configurations each.

    python -m benchmarks.store_fill sqlite:///full.db --nights 3835          # ten million results
    python -m benchmarks.store_fill postgresql+psycopg://user@/bench --nights 39

Rows go in past the store, by COPY or by one prepared statement, since how fast it takes them is measured elsewhere.
Summaries are counted by the harness's code and heads are what the store would have kept, so that `bench db check` finds
nothing to say. Details and samples are there for the last thirty nights.
"""

from __future__ import annotations

import argparse
import json
import sqlite3
import time
import uuid
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any, Protocol

import numpy as np
from sqlalchemy import Engine, text

from benchmarks.nights import FAILED, Night, nights, plan
from harness.record import (
    Accuracy,
    CompileReport,
    Conditions,
    Derived,
    DeviceProfile,
    EndReason,
    Environment,
    Frame,
    Log,
    Memory,
    Outcome,
    Planned,
    Record,
    Reference,
    Run,
    RunEnd,
    Stage,
    StageTime,
    Timing,
    record_id,
)
from harness.record import Protocol as Measuring
from harness.signature import signature
from harness.stats import Estimate
from harness.summary import Standing, count
from server import db, rows
from server.heads import RECENT
from server.store import Store
from server.summaries import columns

KEPT = 30
"""Nights whose details and samples are there."""

PAIRS = 40
METHOD = "median, order statistics"
WHERE = "compile"
CAUSE = "InductorError: CppCompileError: C++ compile error, exit code 1"


class Copy(Protocol):
    """Takes rows of one table."""

    def rows(self, table: str, names: Sequence[str], values: Iterator[Sequence[Any]]) -> None: ...

    def update(self, table: str, names: Sequence[str], values: Sequence[Sequence[Any]]) -> None:
        """Set columns of rows; the last of each row's values is its key."""

    def moment(self, at: Any) -> Any: ...

    def id(self, text: str) -> Any: ...


class _Sqlite:
    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def rows(self, table: str, names: Sequence[str], values: Iterator[Sequence[Any]]) -> None:
        marks = ", ".join("?" * len(names))
        self._connection.executemany(f'INSERT INTO "{table}" ({_quoted(names)}) VALUES ({marks})', values)

    def update(self, table: str, names: Sequence[str], values: Sequence[Sequence[Any]]) -> None:
        changes = ", ".join(f'"{name}" = ?' for name in names)
        self._connection.executemany(f'UPDATE "{table}" SET {changes} WHERE key = ?', values)

    def moment(self, at: Any) -> Any:
        return at.replace(tzinfo=None).isoformat(sep=" ", timespec="microseconds")

    def id(self, text: str) -> Any:
        return uuid.UUID(text).bytes


class _Postgres:
    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def rows(self, table: str, names: Sequence[str], values: Iterator[Sequence[Any]]) -> None:
        with (
            self._connection.cursor() as cursor,
            cursor.copy(f'COPY "{table}" ({_quoted(names)}) FROM STDIN') as copy,
        ):
            for row in values:
                copy.write_row(row)

    def update(self, table: str, names: Sequence[str], values: Sequence[Sequence[Any]]) -> None:
        changes = ", ".join(f'"{name}" = %s' for name in names)
        with self._connection.cursor() as cursor:
            cursor.executemany(f'UPDATE "{table}" SET {changes} WHERE key = %s', values)

    def moment(self, at: Any) -> Any:
        return at

    def id(self, text: str) -> Any:
        return uuid.UUID(text)


def _quoted(names: Sequence[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)


@contextmanager
def _copying(engine: Engine) -> Iterator[Copy]:
    """Everything in one transaction; on SQLite without waiting for the disk, since the file is made anew."""
    raw = engine.raw_connection()
    connection: Any = raw.driver_connection
    if engine.dialect.name == "sqlite":
        for pragma in ("synchronous = OFF", "cache_size = -1000000", "foreign_keys = OFF", "temp_store = MEMORY"):
            connection.execute(f"PRAGMA {pragma}")
        connection.execute("BEGIN IMMEDIATE")
        yield _Sqlite(connection)
    else:
        connection.execute("SET synchronous_commit = off")
        yield _Postgres(connection)
    connection.commit()
    raw.close()


class Fill:
    """Loads nights after the first, which the store itself has taken: so every case, entry and series has its row."""

    def __init__(self, engine: Engine, run: Run) -> None:
        self._engine = engine
        self._run = run
        self._cases = [planned.case for planned in run.plan]
        with engine.connect() as connection:
            keys = {row[0]: row[1] for row in connection.execute(text('SELECT id, key FROM "case"'))}
            entries = connection.execute(
                text("SELECT p.case_key, p.entry_key FROM planned p JOIN run r ON r.key = p.run_key WHERE r.id = :id"),
                {"id": run.id},
            )
            of = {row[0]: row[1] for row in entries}
            self._environment = connection.scalar(text("SELECT environment_id FROM run LIMIT 1"))
            self._hard = connection.scalar(text("SELECT hard FROM environment LIMIT 1"))
        self._ids = [case.id for case in self._cases]
        self._keys = [keys[id_] for id_ in self._ids]
        self._entries = [of[key] for key in self._keys]
        self._groups: dict[tuple[str, str], list[int]] = {}
        for place, case in enumerate(self._cases):
            self._groups.setdefault((case.suite, case.configuration.id), []).append(place)
        self._configurations = {case.configuration.id: case.configuration for case in self._cases}
        self._recent: list[tuple[Night, list[Any]]] = []
        self._passed_at: list[Any] = [None] * len(self._cases)
        self._template = rows.document(a_record(run.plan[0]))

    def load(self, count_: int, seed: int) -> None:
        """Load so many nights. Keys are given here: the tables must hold no run, result or series yet but the first."""
        with _copying(self._engine) as copy:
            self._series(copy, count_)
            for night in nights(count_, len(self._cases), seed):
                self._night(copy, night, count_)
                if night.number % 100 == 99:
                    print(f"{night.number + 1} nights", flush=True)
            self._heads(copy)

    def _series(self, copy: Copy, count_: int) -> None:
        names = ("key", "case_key", "hard", "source", "branch", "results", "first_at", "last_at", "outcome", "recent")
        first = next(nights(1, 1)).started_at
        copy.rows(
            "series",
            names,
            (
                (place + 1, key, self._hard, "", "", count_, *[copy.moment(_began(first, place))] * 2, "", "[]")
                for place, key in enumerate(self._keys)
            ),
        )

    def _night(self, copy: Copy, night: Night, count_: int) -> None:
        run_key = night.number + 2
        run_id = str(uuid.uuid5(uuid.NAMESPACE_OID, f"night {night.number}"))
        started = [_began(night.started_at, place) for place in range(len(self._cases))]
        ids = [record_id(run_id, id_, 1) for id_ in self._ids]
        first = night.number * len(self._cases)
        self._copy_run(copy, night, run_key, run_id, started[-1])
        copy.rows("result", _RESULT, self._results(copy, night, run_key, first, ids, started))
        copy.rows(
            "planned",
            ("run_key", "case_key", "position", "entry_key", "attempt", "result_key"),
            sorted(
                (run_key, key, place, entry, 1, first + place + 1)
                for place, (key, entry) in enumerate(zip(self._keys, self._entries, strict=True))
            ).__iter__(),
        )
        self._summaries(copy, night, run_key)
        if count_ - night.number <= KEPT:
            self._bulk(copy, night, run_id, first, ids, started)
        for place in np.flatnonzero(night.outcome == 0):
            self._passed_at[place] = started[place]
        self._recent = [*self._recent, (night, started)][-RECENT:]

    def _copy_run(self, copy: Copy, night: Night, key: int, id_: str, ended: Any) -> None:
        run = self._run.model_copy(update={"id": id_, "started_at": night.started_at})
        row = rows.run_row(run, self._environment) | {
            "key": key,
            "trigger": "nightly",
            "branch": None,
            "commit": f"{night.number:040x}",
            "ended_at": ended,
            "heartbeat_at": ended,
            "end_reason": EndReason.FINISHED.value,
            "planned": len(self._cases),
            "skipped": 0,
            "passed": int((night.outcome == 0).sum()),
            "missing": 0,
            "crashed": int((night.outcome == 1 + FAILED.index(Outcome.CRASH)).sum()),
        }
        for name in ("profile", "protocol", "doctor"):
            row[name] = json.dumps(row[name])
        for name in ("started_at", "ended_at", "heartbeat_at"):
            row[name] = copy.moment(row[name])
        copy.rows("run", tuple(row), iter([tuple(row.values())]))

    def _results(
        self, copy: Copy, night: Night, run_key: int, first: int, ids: list[str], started: list[Any]
    ) -> Iterator[Sequence[Any]]:
        low, high = night.speedup * (1 - night.half_width), night.speedup * (1 + night.half_width)
        compiled = night.eager_s / night.speedup
        figures = zip(
            night.outcome.tolist(),
            night.speedup.tolist(),
            low.tolist(),
            high.tolist(),
            night.eager_s.tolist(),
            compiled.tolist(),
            night.compile_s.tolist(),
            night.eager_bytes.tolist(),
            night.breaks.tolist(),
            strict=True,
        )
        for place, (failed, speedup, down, up, eager_s, compiled_s, compile_s, bytes_, breaks) in enumerate(figures):
            at = copy.moment(started[place]), copy.moment(started[place] + timedelta(seconds=9))
            head = (first + place + 1, copy.id(ids[place]), run_key, self._keys[place], place + 1, 1, *at)
            if failed:
                outcome = FAILED[failed - 1]
                said = (outcome.value, WHERE, CAUSE, signature(outcome, None, CAUSE), False, "it failed", False, "[]")
                yield (*head, *said, *[None] * (len(_RESULT) - len(head) - len(said)))
                continue
            yield (
                *head,
                *("pass", None, None, None, True, None, False, "[]", "float64"),
                *(speedup, down, up, PAIRS, METHOD),
                *(eager_s, eager_s * 0.99, eager_s * 1.01, compiled_s, compiled_s * 0.99, compiled_s * 1.01),
                *(compile_s, compile_s * 1.4, 1 + breaks, breaks, 0),
                *(compile_s / (eager_s - compiled_s) if speedup > 1 else None, bytes_, int(bytes_ * 0.9), 1 / 0.9),
            )

    def _summaries(self, copy: Copy, night: Night, run_key: int) -> None:
        found = []
        for (suite, configuration_id), places in self._groups.items():
            standings = [self._standing(night, place) for place in places]
            row = columns(count(suite, self._configurations[configuration_id], standings), places[0])
            row |= {name: json.dumps(row[name]) for name in ("outcomes", "left_out")}
            found.append({"run_key": run_key, "suite": suite, "configuration_id": configuration_id, **row})
        copy.rows("summary", tuple(found[0]), (tuple(row.values()) for row in found))

    def _standing(self, night: Night, place: int) -> Standing:
        model = self._cases[place].model
        if failed := int(night.outcome[place]):
            return Standing(model, FAILED[failed - 1])
        value, share = float(night.speedup[place]), float(night.half_width[place])
        speedup = Estimate(value, value * (1 - share), value * (1 + share), PAIRS, METHOD)
        compile_s = float(night.compile_s[place])
        return Standing(model, Outcome.PASS, None, speedup, compile_wall_s=compile_s, memory_ratio=1 / 0.9)

    def _bulk(self, copy: Copy, night: Night, run_id: str, first: int, ids: list[str], started: list[Any]) -> None:
        rng = np.random.default_rng(night.number)
        passed = [place for place in range(len(self._cases)) if not night.outcome[place]]
        order = zlib.compress(bytes(rng.integers(0, 2, PAIRS, dtype=np.uint8)), level=1)

        def samples() -> Iterator[Sequence[Any]]:
            for place in passed:
                eager = float(night.eager_s[place]) * rng.lognormal(0.0, 0.02, PAIRS)
                compiled = eager / float(night.speedup[place]) * rng.lognormal(0.0, 0.02, PAIRS)
                yield first + place + 1, PAIRS, rows.pack(eager), rows.pack(compiled), order

        def details() -> Iterator[Sequence[Any]]:
            for place in passed:
                whole = self._detail(run_id, ids[place], place, started[place])
                yield first + place + 1, zlib.compress(whole, level=1)

        copy.rows("samples", ("result_key", "pairs", "eager_s", "compiled_s", "eager_first"), samples())
        copy.rows("detail", ("result_key", "document"), details())

    def _detail(self, run_id: str, id_: str, place: int, at: Any) -> bytes:
        """Return a record as it is stored; all but its names and times are those of one that passed."""
        whole = dict(self._template)
        case = self._cases[place]
        whole |= {"id": id_, "run_id": run_id, "case": rows.document(case)}
        whole |= {"started_at": at.isoformat(), "finished_at": (at + timedelta(seconds=9)).isoformat()}
        return json.dumps(whole).encode()

    def _heads(self, copy: Copy) -> None:
        last, started = self._recent[-1]
        with_result = last.number * len(self._cases)
        values = []
        for place in range(len(self._cases)):
            points = []
            for night, begun in self._recent:
                failed = int(night.outcome[place])
                value, share = float(night.speedup[place]), float(night.half_width[place])
                found = [None] * 3 if failed else [value, value * (1 - share), value * (1 + share)]
                points.append([begun[place].timestamp(), FAILED[failed - 1].value if failed else "pass", *found])
            passed = self._passed_at[place]
            at = copy.moment(started[place]), passed and copy.moment(passed)
            values.append((points[-1][1], *at, with_result + place + 1, json.dumps(points), place + 1))
        copy.update("series", ("outcome", "last_at", "passed_at", "result_key", "recent"), values)


def _began(night: datetime, place: int) -> datetime:
    return night + timedelta(seconds=10 * place)


_RESULT = (
    *("key", "id", "run_key", "case_key", "series_key", "attempt", "started_at", "finished_at"),
    *("outcome", "stage", "text", "signature", "valid", "invalid_why", "emulated", "flags", "reference"),
    *("speedup", "speedup_low", "speedup_high", "speedup_n", "speedup_method"),
    *("eager_s", "eager_s_low", "eager_s_high", "compiled_s", "compiled_s_low", "compiled_s_high"),
    *("compile_wall_s", "compile_cpu_s", "graphs", "graph_breaks", "recompiles"),
    *("break_even_steps", "eager_peak_bytes", "compiled_peak_bytes", "memory_ratio"),
)


def first_run(planned: Sequence[Planned]) -> Run:
    """Return the run that the store itself takes: the plan of every night."""
    return Run(
        id=str(uuid.uuid5(uuid.NAMESPACE_OID, "before the first night")),
        started_at=next(nights(1, 1)).started_at - timedelta(days=1),
        command="bench run --suite all --fp32 --amp",
        profile=DeviceProfile(name="a100", kind="cuda", product="A100"),
        environment=Environment(
            host="made-up",
            system="Linux",
            kernel="6.1.0",
            cpu="made-up",
            cores_physical=16,
            cores_usable=16,
            memory_bytes=128 << 30,
            threads=16,
            python="3.11.7",
            versions={"torch": "2.14.1", "timm": "1.0.31", "transformers": "5.24.0"},
            product="NVIDIA A100-SXM4-80GB",
        ),
        protocol=Measuring(),
        plan=tuple(planned),
    )


def a_record(planned: Planned) -> Record:
    """Return a record of about the size that real ones have, but its samples."""
    at = next(nights(1, 1)).started_at
    return Record(
        id=record_id("0", planned.case.id, 1),
        run_id="0",
        case=planned.case,
        started_at=at,
        finished_at=at,
        outcome=Outcome.PASS,
        accuracy=Accuracy(reference=Reference.FLOAT64, tolerance=1e-3, leaves=1),
        stages=tuple(StageTime(stage=stage, wall_s=1.5) for stage in Stage),
        compile=CompileReport(
            wall_s=27.0,
            cpu_s=40.0,
            first_call_s=27.1,
            phases_s={f"phase_{number}": 1.25 for number in range(20)},
            graphs=1,
            operators=120,
            graph_breaks=0,
            cold=True,
            backend="inductor",
            frames=(Frame(name="forward", file="model.py", line=1, operators=120),),
        ),
        timing=Timing(
            eager_s=(), compiled_s=(), eager_first=(), inner_loops=1, warmup_s=1, sampling_s=9, stop_reason="precise"
        ),
        memory=Memory(eager_peak_bytes=1 << 30, compiled_peak_bytes=1 << 29),
        conditions=Conditions(readings=12, clock_median_mhz=1410.0),
        derived=Derived(valid=True, speedup=Estimate(1.25, 1.24, 1.26, PAIRS, METHOD)),
        log=Log(head="compiled\n" * 20, bytes=180),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("database", help="SQLAlchemy URL of an empty database")
    parser.add_argument("--nights", type=int, default=39)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    began = time.perf_counter()
    planned = plan()
    run = first_run(planned)
    store = Store.connect(asked.database)
    store.open(run)
    store.close(RunEnd(run_id=run.id, at=run.started_at, reason=EndReason.FINISHED))
    store.dispose()
    engine = db.connect(asked.database)
    Fill(engine, run).load(asked.nights, asked.seed)
    with engine.connect() as connection:
        connection.execution_options(isolation_level="AUTOCOMMIT").execute(text("ANALYZE"))
    print(f"{asked.nights * len(planned):,} results in {time.perf_counter() - began:.0f} s")


if __name__ == "__main__":
    main()
