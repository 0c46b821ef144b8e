"""Integer keys where there are millions of rows; entries, series, details, tokens, uploads, annotations; whose code a
run is of.

The tables are built anew beside the old ones and filled from them: neither database can change a primary key in place.
"""

from __future__ import annotations

import hashlib
import json
import uuid
import zlib
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC
from typing import Any

import sqlalchemy as sa
from alembic import op

from harness.record import Outcome, Stage
from harness.signature import signature

revision = "0003"
down_revision = "0002"

OLD = ("samples", "planned", "progress", "summary", "result", "case", "run", "environment")
"""Tables that are built anew, each before those it refers to."""

INDEXES = {
    "environment": ("hard",),
    "case": ("configuration_id", "suite_model"),
    "run": ("started_at",),
    "result": ("case_id", "run_id_case_id_attempt"),
    "planned": ("case_id", "run_id_position"),
}

KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
BATCH = 500
RECENT = 30


def upgrade() -> None:
    connection = op.get_bind()
    _set_aside(connection)
    _create(connection)
    _copy(connection)
    for table in OLD:
        op.drop_table(f"old_{table}")


def _set_aside(connection: sa.Connection) -> None:
    """Rename the old tables; the names of their indexes and constraints become free."""
    for table, names in INDEXES.items():
        for name in names:
            op.drop_index(f"ix_{table}_{name}", table_name=table)
    if connection.dialect.name == "postgresql":
        for table in OLD:
            op.execute(f'ALTER TABLE "{table}" DROP CONSTRAINT pk_{table} CASCADE')
        for table in OLD:
            for foreign in sa.inspect(connection).get_foreign_keys(table):
                op.execute(f'ALTER TABLE "{table}" DROP CONSTRAINT "{foreign["name"]}"')
    for table in OLD:
        op.rename_table(table, f"old_{table}")


# -- the new tables ---------------------------------------------------------------------------


def _key(table: str) -> list[Any]:
    return [sa.Column("key", KEY, nullable=False), sa.PrimaryKeyConstraint("key", name=f"pk_{table}")]


def _to(table: str, column: str, target: str, nullable: bool = False, type_: Any = KEY) -> list[Any]:
    """A column that refers to another table's key."""
    return [
        sa.Column(column, type_, nullable=nullable),
        sa.ForeignKeyConstraint([column], [target], name=f"fk_{table}_{column}"),
    ]


def _texts(*names: str, nullable: bool = True) -> list[sa.Column[Any]]:
    return [sa.Column(name, sa.Text(), nullable=nullable) for name in names]


def _moments(*names: str, nullable: bool = False) -> list[sa.Column[Any]]:
    return [sa.Column(name, sa.DateTime(timezone=True), nullable=nullable) for name in names]


def _integers(*names: str, nullable: bool = False, **options: Any) -> list[sa.Column[Any]]:
    return [sa.Column(name, sa.Integer(), nullable=nullable, **options) for name in names]


def _doubles(*names: str) -> list[sa.Column[Any]]:
    return [sa.Column(name, sa.Double(), nullable=True) for name in names]


def _documents(*names: str) -> list[sa.Column[Any]]:
    return [sa.Column(name, sa.JSON(), nullable=False) for name in names]


def _id(connection: sa.Connection) -> Any:
    return sa.Uuid() if connection.dialect.name == "postgresql" else sa.LargeBinary(16)


def _create(connection: sa.Connection) -> None:
    record_id = _id(connection)
    op.create_table(
        "environment",
        sa.Column("id", sa.String(16), nullable=False),
        sa.Column("hard", sa.String(16), nullable=False),
        sa.Column("soft", sa.String(16), nullable=False),
        *_texts("host", "cpu", "torch"),
        *_documents("document"),
        sa.PrimaryKeyConstraint("id", name="pk_environment"),
    )
    op.create_index("ix_environment_hard", "environment", ["hard"])
    op.create_table(
        "run",
        *_key("run"),
        sa.Column("id", sa.String(36), nullable=False),
        *_to("run", "environment_id", "environment.id", type_=sa.String(16)),
        *_moments("started_at"),
        *_texts("command", "device", nullable=False),
        *_documents("profile", "protocol"),
        sa.Column("doctor", sa.JSON(), nullable=False, server_default="[]"),
        *_texts("reference", "source"),
        sa.Column("dated", sa.Boolean(), nullable=False, server_default=sa.true()),
        *_texts("trigger", "branch", "commit", "fork_point"),
        *_moments("last_start_at", nullable=True),
        *_moments("heartbeat_at"),
        *_moments("ended_at", nullable=True),
        sa.Column("end_reason", sa.String(16), nullable=True),
        *_integers("planned", "skipped", "passed", "missing", "crashed", server_default="0"),
        sa.UniqueConstraint("id", name="uq_run_id"),
    )
    op.create_index("ix_run_started_at_id", "run", ["started_at", "id"])
    op.create_index("ix_run_commit", "run", ["commit"])
    op.create_table(
        "case",
        *_key("case"),
        sa.Column("id", sa.String(16), nullable=False),
        *_to("case", "configuration_id", "configuration.id", type_=sa.String(16)),
        *_texts("suite", "model", nullable=False),
        *_integers("batch_size", nullable=True),
        *_documents("document"),
        sa.UniqueConstraint("id", name="uq_case_id"),
    )
    op.create_index("ix_case_suite_model", "case", ["suite", "model"])
    op.create_index("ix_case_configuration_id", "case", ["configuration_id"])
    op.create_table(
        "entry",
        *_key("entry"),
        sa.Column("id", sa.String(16), nullable=False),
        *_texts("module"),
        *_doubles("tolerance", "timeout_s"),
        *_integers("accuracy_batch", nullable=True),
        *_texts("skip", "expired"),
        *_documents("spec"),
        sa.UniqueConstraint("id", name="uq_entry_id"),
    )
    op.create_table(
        "series",
        *_key("series"),
        *_to("series", "case_key", "case.key"),
        sa.Column("hard", sa.String(16), nullable=False),
        *_texts("source", "branch", nullable=False),
        *_integers("results"),
        *_moments("first_at", "last_at"),
        sa.Column("result_key", KEY, nullable=True),
        sa.Column("outcome", sa.String(24), nullable=False),
        *_moments("passed_at", nullable=True),
        *_documents("recent"),
        sa.UniqueConstraint("case_key", "hard", "source", "branch", name="uq_series_case_key_hard_source_branch"),
    )
    op.create_table(
        "result",
        *_key("result"),
        sa.Column("id", record_id, nullable=False),
        *_to("result", "run_key", "run.key"),
        *_to("result", "case_key", "case.key"),
        *_to("result", "series_key", "series.key"),
        *_integers("attempt"),
        *_moments("started_at", "finished_at"),
        sa.Column("outcome", sa.String(24), nullable=False),
        sa.Column("stage", sa.String(16), nullable=True),
        sa.Column("side", sa.String(16), nullable=True),
        *_texts("text", "signature"),
        sa.Column("valid", sa.Boolean(), nullable=False),
        *_texts("invalid_why"),
        sa.Column("emulated", sa.Boolean(), nullable=False),
        *_documents("flags"),
        sa.Column("reference", sa.String(16), nullable=True),
        *_doubles("speedup", "speedup_low", "speedup_high"),
        *_integers("speedup_n", nullable=True),
        *_texts("speedup_method", "no_estimate"),
        *_doubles("eager_s", "eager_s_low", "eager_s_high", "compiled_s", "compiled_s_low", "compiled_s_high"),
        *_doubles("compile_wall_s", "compile_cpu_s"),
        *_integers("graphs", "graph_breaks", "recompiles", nullable=True),
        *_doubles("break_even_steps"),
        sa.Column("eager_peak_bytes", sa.BigInteger(), nullable=True),
        sa.Column("compiled_peak_bytes", sa.BigInteger(), nullable=True),
        *_doubles("memory_ratio"),
        sa.UniqueConstraint("id", name="uq_result_id"),
        sa.UniqueConstraint("run_key", "case_key", "attempt", name="uq_result_run_key_case_key_attempt"),
    )
    op.create_index("ix_result_series_key_started_at", "result", ["series_key", "started_at"])
    op.create_table(
        "detail",
        *_to("detail", "result_key", "result.key"),
        sa.Column("document", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("result_key", name="pk_detail"),
    )
    op.create_table(
        "samples",
        *_to("samples", "result_key", "result.key"),
        *_integers("pairs"),
        *[sa.Column(name, sa.LargeBinary(), nullable=False) for name in ("eager_s", "compiled_s", "eager_first")],
        sa.PrimaryKeyConstraint("result_key", name="pk_samples"),
    )
    op.create_table(
        "planned",
        *_to("planned", "run_key", "run.key"),
        *_to("planned", "case_key", "case.key"),
        *_integers("position"),
        *_to("planned", "entry_key", "entry.key"),
        *_integers("attempt"),
        sa.Column("result_key", KEY, nullable=True),
        sa.PrimaryKeyConstraint("run_key", "case_key", name="pk_planned"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "progress",
        *_to("progress", "run_key", "run.key"),
        *_to("progress", "case_key", "case.key"),
        *_integers("attempt"),
        *_moments("started_at"),
        sa.Column("stage", sa.String(16), nullable=True),
        *_moments("stage_since"),
        sa.PrimaryKeyConstraint("run_key", "case_key", name="pk_progress"),
    )
    op.create_table(
        "summary",
        *_to("summary", "run_key", "run.key"),
        *_texts("suite", nullable=False),
        *_to("summary", "configuration_id", "configuration.id", type_=sa.String(16)),
        *_integers("position", "planned", "skipped", "passed", "missing", "emulated", "unchecked"),
        *_documents("outcomes"),
        *_doubles("speedup_geomean", "speedup_geomean_low", "speedup_geomean_high"),
        *_integers("speedup_geomean_n", nullable=True),
        *_texts("speedup_geomean_method", "no_geomean"),
        *_documents("left_out"),
        *_doubles("compile_wall_s_median", "memory_ratio_median"),
        sa.PrimaryKeyConstraint("run_key", "suite", "configuration_id", name="pk_summary"),
    )
    op.create_index("ix_summary_configuration_id_suite", "summary", ["configuration_id", "suite"])
    op.create_table(
        "annotation",
        sa.Column("id", record_id, nullable=False),
        *_to("annotation", "run_key", "run.key", nullable=True),
        *_to("annotation", "series_key", "series.key", nullable=True),
        *_moments("at", "created_at"),
        *_texts("author", nullable=False),
        sa.Column("kind", sa.String(24), nullable=False),
        *_texts("text", nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_annotation"),
    )
    op.create_index("ix_annotation_run_key", "annotation", ["run_key"])
    op.create_index("ix_annotation_series_key", "annotation", ["series_key"])
    op.create_table(
        "token",
        sa.Column("id", sa.String(16), nullable=False),
        *_texts("name", nullable=False),
        sa.Column("scope", sa.String(8), nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        *_moments("created_at"),
        *_moments("expires_at", "revoked_at", "last_used_at", nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_token"),
        sa.UniqueConstraint("name", name="uq_token_name"),
    )
    op.create_table(
        "upload",
        sa.Column("id", record_id, nullable=False),
        *_to("upload", "run_key", "run.key", nullable=True),
        *_to("upload", "token_id", "token.id", nullable=True, type_=sa.String(16)),
        *_moments("received_at"),
        *_texts("source", "format", nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("bytes", sa.BigInteger(), nullable=False),
        *_integers("new", "known", "late"),
        sa.PrimaryKeyConstraint("id", name="pk_upload"),
    )
    op.create_index("ix_upload_run_key", "upload", ["run_key"])


# -- what lay in the old ones -----------------------------------------------------------------

_RUN = "id, environment_id, started_at, command, device, profile, protocol, doctor, reference, last_start_at, \
heartbeat_at, ended_at, end_reason"
_CASE = "id, configuration_id, suite, model, batch_size, document"
_SAME = "attempt, started_at, finished_at, outcome, stage, side, text, valid, invalid_why, emulated, flags, reference, \
speedup, speedup_low, speedup_high, speedup_n, speedup_method, no_estimate, eager_s, compiled_s, compile_wall_s, \
compile_cpu_s, graphs, graph_breaks, recompiles, break_even_steps, eager_peak_bytes, compiled_peak_bytes, memory_ratio"
_SUMMED = "planned, skipped, passed, missing, emulated, unchecked, outcomes, speedup_geomean, speedup_geomean_low, \
speedup_geomean_high, speedup_geomean_n, speedup_geomean_method, no_geomean, left_out, compile_wall_s_median, \
memory_ratio_median"


def _copy(connection: sa.Connection) -> None:
    say = connection.exec_driver_sql
    say("INSERT INTO environment SELECT id, hard, soft, host, cpu, torch, document FROM old_environment")
    say(f"INSERT INTO run ({_RUN}) SELECT {_RUN} FROM old_run ORDER BY started_at, id")
    say(f'INSERT INTO "case" ({_CASE}) SELECT {_CASE} FROM old_case ORDER BY id')
    keys = _Keys(connection)
    entries = _copy_entries(connection)
    _copy_results(connection, keys)
    stored = _table("result", "id", "key", id=_id(connection))
    results = {_text(id_): key for id_, key in connection.execute(sa.select(stored))}
    _copy_samples(connection, results)
    _copy_planned(connection, keys, entries, results)
    same = 'FROM old_progress o JOIN run r ON r.id = o.run_id JOIN "case" c ON c.id = o.case_id'
    say(f"INSERT INTO progress SELECT r.key, c.key, o.attempt, o.started_at, o.stage, o.stage_since {same}")
    first = (
        'SELECT MIN(p.position) FROM planned p JOIN "case" c ON c.key = p.case_key '
        "WHERE p.run_key = r.key AND c.suite = o.suite AND c.configuration_id = o.configuration_id"
    )
    say(
        f"INSERT INTO summary (run_key, suite, configuration_id, position, {_SUMMED}) "
        f"SELECT r.key, o.suite, o.configuration_id, COALESCE(({first}), 0), "
        + ", ".join(f"o.{name}" for name in _SUMMED.split(", "))
        + " FROM old_summary o JOIN run r ON r.id = o.run_id"
    )
    for name in ("planned", "skipped", "passed", "missing"):
        say(f"UPDATE run SET {name} = COALESCE((SELECT SUM(s.{name}) FROM summary s WHERE s.run_key = run.key), 0)")
    _count_crashes(connection)


class _Keys:
    """The new keys of runs and cases by their ids, and each run's hard fingerprint."""

    def __init__(self, connection: sa.Connection) -> None:
        self.runs = _pairs(connection, "SELECT id, key FROM run")
        self.cases = _pairs(connection, 'SELECT id, key FROM "case"')
        fingerprints = "SELECT r.id, e.hard FROM run r JOIN environment e ON e.id = r.environment_id"
        self.hard = _pairs(connection, fingerprints)


def _pairs(connection: sa.Connection, statement: str) -> dict[str, Any]:
    return {row[0]: row[1] for row in connection.exec_driver_sql(statement)}


def _table(name: str, *columns: str, **types: Any) -> sa.TableClause:
    return sa.table(name, *[sa.column(column, types.get(column)) for column in columns])


def _batches(connection: sa.Connection, statement: Any) -> Iterator[Sequence[Any]]:
    found = connection.execute(statement.execution_options(yield_per=BATCH))
    yield from found.partitions(BATCH)


_JSON = sa.JSON()
_MOMENT = sa.DateTime(timezone=True)


def _old(name: str) -> sa.TableClause:
    """An old table, whole, with the types that differ between the databases."""
    columns = {
        "old_planned": "run_id case_id position module tolerance timeout_s accuracy_batch skip spec attempt result_id "
        "expired",
        "old_result": f"id run_id case_id document {_SAME.replace(',', '')}",
        "old_samples": "result_id pairs eager_s compiled_s eager_first",
    }[name].split()
    types = {"spec": _JSON, "document": _JSON, "flags": _JSON, "started_at": _MOMENT, "finished_at": _MOMENT}
    return _table(name, *columns, **types)


def _copy_entries(connection: sa.Connection) -> dict[tuple[str, str], int]:
    """Return the key of each planned case's entry by run and case id."""
    names = ("module", "tolerance", "timeout_s", "accuracy_batch", "skip", "expired", "spec")
    entry = _table("entry", "key", "id", *names, spec=_JSON)
    known: set[str] = set()
    of: dict[tuple[str, str], str] = {}
    for batch in _batches(connection, sa.select(_old("old_planned"))):
        for row in batch:
            values = {name: getattr(row, name) for name in names}
            text = json.dumps(values, sort_keys=True, separators=(",", ":"))
            id_ = of[row.run_id, row.case_id] = hashlib.sha256(text.encode()).hexdigest()[:16]
            if id_ not in known:
                known.add(id_)
                connection.execute(entry.insert().values(id=id_, **values))
    keys = dict(connection.execute(sa.select(entry.c.id, entry.c.key)).all())
    return {place: keys[id_] for place, id_ in of.items()}


def _copy_results(connection: sa.Connection, keys: _Keys) -> None:
    old = _old("old_result")
    heads = _Heads(connection)
    new = _table(
        "result",
        "id",
        "run_key",
        "case_key",
        "series_key",
        "signature",
        "eager_s_low",
        "eager_s_high",
        "compiled_s_low",
        "compiled_s_high",
        *_SAME.split(", "),
        id=_id(connection),
        flags=_JSON,
        started_at=_MOMENT,
        finished_at=_MOMENT,
    )
    detail = _table("detail", "result_key", "document", document=sa.LargeBinary())
    stored = _table("result", "id", "key", id=_id(connection))
    for batch in _batches(connection, sa.select(old).order_by(old.c.started_at, old.c.id)):
        ids = {row.id: _uuid(connection, row.id) for row in batch}
        rows = []
        for row in batch:
            row_values = {name: getattr(row, name) for name in _SAME.split(", ")}
            derived = row.document.get("derived") or {}
            for side in ("eager_s", "compiled_s"):
                estimate = derived.get(side) or {}
                row_values |= {f"{side}_{end}": estimate.get(end) for end in ("low", "high")}
            rows.append(
                row_values
                | {
                    "id": ids[row.id],
                    "run_key": keys.runs[row.run_id],
                    "case_key": keys.cases[row.case_id],
                    "series_key": heads.key(keys.cases[row.case_id], keys.hard[row.run_id], row),
                    "signature": signature(Outcome(row.outcome), row.stage and Stage(row.stage), row.text),
                }
            )
        connection.execute(new.insert(), rows)
        found = connection.execute(sa.select(stored.c.id, stored.c.key).where(stored.c.id.in_(ids.values())))
        by_id = {_text(id_): key for id_, key in found}
        packed = [
            {"result_key": by_id[row.id], "document": zlib.compress(json.dumps(row.document).encode())} for row in batch
        ]
        connection.execute(detail.insert(), packed)
        for row in batch:
            heads.add(keys.cases[row.case_id], keys.hard[row.run_id], row, by_id[row.id])
    heads.store()


class _Heads:
    """The series and their heads, while results go by in the order of time."""

    def __init__(self, connection: sa.Connection) -> None:
        self._connection = connection
        names = ("case_key", "hard", "source", "branch", "results", "first_at", "last_at", "result_key", "outcome")
        types = {"first_at": _MOMENT, "last_at": _MOMENT, "passed_at": _MOMENT, "recent": _JSON}
        self._table = _table("series", "key", *names, "passed_at", "recent", **types)
        self._heads: dict[tuple[int, str], dict[str, Any]] = {}

    def key(self, case_key: int, hard: str, row: Any) -> int:
        if (case_key, hard) not in self._heads:
            head = {
                "case_key": case_key,
                "hard": hard,
                "source": "",
                "branch": "",
                "results": 0,
                "first_at": row.started_at,
                "last_at": row.started_at,
                "outcome": row.outcome,
                "recent": [],
            }
            self._connection.execute(self._table.insert().values(**head))
            where = (self._table.c.case_key == case_key, self._table.c.hard == hard)
            head["key"] = self._connection.scalar(sa.select(self._table.c.key).where(*where))
            self._heads[case_key, hard] = head | {"result_key": None, "passed_at": None}
        return int(self._heads[case_key, hard]["key"])

    def add(self, case_key: int, hard: str, row: Any, result_key: int) -> None:
        head = self._heads[case_key, hard]
        head["results"] += 1
        head |= {"last_at": row.started_at, "outcome": row.outcome, "result_key": result_key}
        if row.outcome == Outcome.PASS:
            head["passed_at"] = row.started_at
        started = row.started_at if row.started_at.tzinfo else row.started_at.replace(tzinfo=UTC)
        point = [started.timestamp(), row.outcome, row.speedup, row.speedup_low, row.speedup_high]
        head["recent"] = [*head["recent"], point][-RECENT:]

    def store(self) -> None:
        for head in self._heads.values():
            values = {name: value for name, value in head.items() if name != "key"}
            self._connection.execute(self._table.update().where(self._table.c.key == head["key"]).values(**values))


def _copy_samples(connection: sa.Connection, results: Mapping[str, int]) -> None:
    names = ("pairs", "eager_s", "compiled_s", "eager_first")
    new = _table("samples", "result_key", *names)
    for batch in _batches(connection, sa.select(_old("old_samples"))):
        rows = [{"result_key": results[row.result_id]} | {name: getattr(row, name) for name in names} for row in batch]
        connection.execute(new.insert(), rows)


def _copy_planned(
    connection: sa.Connection, keys: _Keys, entries: Mapping[tuple[str, str], int], results: Mapping[str, int]
) -> None:
    new = _table("planned", "run_key", "case_key", "position", "entry_key", "attempt", "result_key")
    for batch in _batches(connection, sa.select(_old("old_planned"))):
        connection.execute(
            new.insert(),
            [
                {
                    "run_key": keys.runs[row.run_id],
                    "case_key": keys.cases[row.case_id],
                    "position": row.position,
                    "entry_key": entries[row.run_id, row.case_id],
                    "attempt": row.attempt,
                    "result_key": row.result_id and results[row.result_id],
                }
                for row in batch
            ],
        )


def _count_crashes(connection: sa.Connection) -> None:
    summary = _table("summary", "run_key", "outcomes", outcomes=_JSON)
    run = _table("run", "key", "crashed")
    crashes: dict[int, int] = {}
    for row in connection.execute(sa.select(summary)):
        crashes[row.run_key] = crashes.get(row.run_key, 0) + row.outcomes.get(Outcome.CRASH.value, 0)
    for key, count in crashes.items():
        connection.execute(run.update().where(run.c.key == key).values(crashed=count))


def _uuid(connection: sa.Connection, text: str) -> Any:
    return uuid.UUID(text) if connection.dialect.name == "postgresql" else uuid.UUID(text).bytes


def _text(stored: Any) -> str:
    return str(stored if isinstance(stored, uuid.UUID) else uuid.UUID(bytes=bytes(stored)))
