"""The tables. Columns follow `harness.record`: units in the names, NULL for absent, never NaN.

    environment <- run <- planned -> case -> configuration      what was to be done
                          planned -> entry                      how a case is built and judged
                          planned -> result -> detail, samples  the newest attempt's result, and its bulk
                          result  -> series                     one case on one machine class over time
                   run <- summary                               kept by the store at each insert, as are
                          series' heads, a run's counts         the heads and counts
                   run <- progress                              what is in hand now, for the eye
                   run <- upload -> token                       how it came in; annotation: what people say of it

A result is never changed; a newer attempt adds a row, and `planned.result_key` points at it. Rows that there are
millions of refer to others by an integer `key`; what people and journals name has an `id` as well.
"""

from __future__ import annotations

import uuid
from datetime import UTC, datetime
from typing import Annotated, Any

from sqlalchemy import (
    JSON,
    BigInteger,
    DateTime,
    Dialect,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Text,
    TypeDecorator,
    UniqueConstraint,
    Uuid,
    true,
)
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column
from sqlalchemy.types import TypeEngine


class Moment(TypeDecorator[datetime]):
    """A point in time, UTC; SQLite forgets the zone, so it is put back on reading."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        return None if value is None else value.astimezone(UTC)

    def process_result_value(self, value: Any | None, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        moment: datetime = value
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


class RecordId(TypeDecorator[str]):
    """A UUID, text outside and 16 bytes inside: there are as many as results, and SQLite has no type for it."""

    impl = LargeBinary(16)
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        if dialect.name == "postgresql":
            return dialect.type_descriptor(Uuid())
        return dialect.type_descriptor(LargeBinary(16))

    def process_bind_param(self, value: str | None, dialect: Dialect) -> Any:
        if value is None:
            return None
        known = uuid.UUID(value)
        return known if dialect.name == "postgresql" else known.bytes

    def process_result_value(self, value: Any | None, dialect: Dialect) -> str | None:
        if value is None:
            return None
        return str(value if isinstance(value, uuid.UUID) else uuid.UUID(bytes=bytes(value)))


Whole = BigInteger().with_variant(Integer, "sqlite")
"""64 bits everywhere; SQLite numbers rows by itself only where the type is called INTEGER."""

Key = Annotated[int, mapped_column(Whole, primary_key=True, autoincrement=True)]
Reference = Annotated[int, mapped_column(Whole)]


class Base(DeclarativeBase):
    """Constraints are named, so that migrations can change them on SQLite too."""

    metadata = MetaData(
        naming_convention={
            "ix": "ix_%(table_name)s_%(column_0_N_name)s",
            "uq": "uq_%(table_name)s_%(column_0_N_name)s",
            "fk": "fk_%(table_name)s_%(column_0_N_name)s",
            "pk": "pk_%(table_name)s",
        }
    )
    type_annotation_map = {  # noqa: RUF012 - SQLAlchemy reads it from the class
        datetime: Moment,
        dict[str, Any]: JSON,
        list[Any]: JSON,
    }


# -- what was to be done ----------------------------------------------------------------------


class Environment(Base):
    """A machine with its software, as found; equal ones share a row."""

    __tablename__ = "environment"

    id: Mapped[str] = mapped_column(String(16), primary_key=True)
    hard: Mapped[str] = mapped_column(String(16), index=True)
    soft: Mapped[str] = mapped_column(String(16))
    host: Mapped[str | None] = mapped_column(Text)
    cpu: Mapped[str | None] = mapped_column(Text)
    torch: Mapped[str | None] = mapped_column(Text)
    document: Mapped[dict[str, Any]]


class Run(Base):
    """One execution of a plan. In progress: `ended_at` is NULL and `heartbeat_at` is fresh."""

    __tablename__ = "run"
    __table_args__ = (Index(None, "started_at", "id"), Index(None, "commit"))

    key: Mapped[Key]
    id: Mapped[str] = mapped_column(String(36), unique=True)
    environment_id: Mapped[str] = mapped_column(ForeignKey("environment.id"))
    started_at: Mapped[datetime]
    command: Mapped[str] = mapped_column(Text)
    device: Mapped[str] = mapped_column(Text)
    profile: Mapped[dict[str, Any]]
    protocol: Mapped[dict[str, Any]]
    doctor: Mapped[list[Any]] = mapped_column(server_default="[]")
    """Findings about the host, before the first case."""
    reference: Mapped[str | None] = mapped_column(Text)
    """Name of the reference configuration that was asked for."""
    source: Mapped[str | None] = mapped_column(Text)
    """The foreign format it was imported from; NULL: measured by us."""
    dated: Mapped[bool] = mapped_column(server_default=true())
    """False: nothing says when it was measured; `started_at` is when its file was written."""
    trigger: Mapped[str | None] = mapped_column(Text)
    """Why it ran, e.g. `nightly`."""
    branch: Mapped[str | None] = mapped_column(Text)
    commit: Mapped[str | None] = mapped_column(Text)
    """Of the code under test."""
    fork_point: Mapped[str | None] = mapped_column(Text)
    """Where its branch left the main line."""
    last_start_at: Mapped[datetime | None]
    heartbeat_at: Mapped[datetime]
    ended_at: Mapped[datetime | None]
    end_reason: Mapped[str | None] = mapped_column(String(16))
    planned: Mapped[int] = mapped_column(server_default="0")
    skipped: Mapped[int] = mapped_column(server_default="0")
    passed: Mapped[int] = mapped_column(server_default="0")
    missing: Mapped[int] = mapped_column(server_default="0")
    crashed: Mapped[int] = mapped_column(server_default="0")
    """These five: the sums over its summaries, renewed with them."""


class Configuration(Base):
    """Everything about a case but its model."""

    __tablename__ = "configuration"

    id: Mapped[str] = mapped_column(String(16), primary_key=True)
    label: Mapped[str] = mapped_column(Text)
    device: Mapped[str] = mapped_column(Text)
    mode: Mapped[str] = mapped_column(String(16))
    precision: Mapped[str] = mapped_column(String(8))
    backend: Mapped[str] = mapped_column(Text)
    document: Mapped[dict[str, Any]]


class Case(Base):
    """One model in one configuration; the same row in every run."""

    __tablename__ = "case"
    __table_args__ = (Index(None, "suite", "model"),)

    key: Mapped[Key]
    id: Mapped[str] = mapped_column(String(16), unique=True)
    configuration_id: Mapped[str] = mapped_column(ForeignKey("configuration.id"), index=True)
    suite: Mapped[str] = mapped_column(Text)
    model: Mapped[str] = mapped_column(Text)
    batch_size: Mapped[int | None]
    document: Mapped[dict[str, Any]]


class Entry(Base):
    """How a case is built and judged: the model's entry as it was planned. Equal ones share a row."""

    __tablename__ = "entry"

    key: Mapped[Key]
    id: Mapped[str] = mapped_column(String(16), unique=True)
    module: Mapped[str | None] = mapped_column(Text)
    tolerance: Mapped[float | None]
    timeout_s: Mapped[float | None]
    accuracy_batch: Mapped[int | None]
    skip: Mapped[str | None] = mapped_column(Text)
    expired: Mapped[str | None] = mapped_column(Text)
    spec: Mapped[dict[str, Any]]


class Planned(Base):
    """A case of a run's plan, stored before the first case starts. Lies in the order of its key: a run in one piece."""

    __tablename__ = "planned"
    __table_args__ = {"sqlite_with_rowid": False}  # noqa: RUF012 - SQLAlchemy reads it from the class

    run_key: Mapped[Reference] = mapped_column(ForeignKey("run.key"), primary_key=True)
    case_key: Mapped[Reference] = mapped_column(ForeignKey("case.key"), primary_key=True)
    position: Mapped[int]
    entry_key: Mapped[Reference] = mapped_column(ForeignKey("entry.key"))
    attempt: Mapped[int] = mapped_column(default=0)
    """Newest attempt that was started or recorded; results of older ones are refused."""
    result_key: Mapped[int | None] = mapped_column(Whole)
    """The newest attempt's result; NULL: waiting or missing. No foreign key: each result that is pruned would have the
    database look through all plans for it. `bench db check` counts it anew."""


# -- what was found ---------------------------------------------------------------------------


class Result(Base):
    """One record's figures. Never changed; the whole record lies in `detail`, its samples in `samples`."""

    __tablename__ = "result"
    __table_args__ = (
        UniqueConstraint("run_key", "case_key", "attempt"),
        Index(None, "series_key", "started_at"),
    )

    key: Mapped[Key]
    id: Mapped[str] = mapped_column(RecordId, unique=True)
    run_key: Mapped[Reference] = mapped_column(ForeignKey("run.key"))
    case_key: Mapped[Reference] = mapped_column(ForeignKey("case.key"))
    series_key: Mapped[Reference] = mapped_column(ForeignKey("series.key"))
    attempt: Mapped[int]
    started_at: Mapped[datetime]
    """Of the case; a point of a series lies here."""
    finished_at: Mapped[datetime]
    outcome: Mapped[str] = mapped_column(String(24))
    stage: Mapped[str | None] = mapped_column(String(16))
    side: Mapped[str | None] = mapped_column(String(16))
    text: Mapped[str | None] = mapped_column(Text)
    signature: Mapped[str | None] = mapped_column(Text)
    """What failures of one cause have in common: see `harness.signature`."""
    valid: Mapped[bool]
    invalid_why: Mapped[str | None] = mapped_column(Text)
    emulated: Mapped[bool]
    flags: Mapped[list[Any]]
    reference: Mapped[str | None] = mapped_column(String(16))
    speedup: Mapped[float | None]
    speedup_low: Mapped[float | None]
    speedup_high: Mapped[float | None]
    speedup_n: Mapped[int | None]
    speedup_method: Mapped[str | None] = mapped_column(Text)
    no_estimate: Mapped[str | None] = mapped_column(Text)
    eager_s: Mapped[float | None]
    eager_s_low: Mapped[float | None]
    eager_s_high: Mapped[float | None]
    compiled_s: Mapped[float | None]
    compiled_s_low: Mapped[float | None]
    compiled_s_high: Mapped[float | None]
    compile_wall_s: Mapped[float | None]
    compile_cpu_s: Mapped[float | None]
    graphs: Mapped[int | None]
    graph_breaks: Mapped[int | None]
    recompiles: Mapped[int | None]
    break_even_steps: Mapped[float | None]
    eager_peak_bytes: Mapped[int | None] = mapped_column(BigInteger)
    compiled_peak_bytes: Mapped[int | None] = mapped_column(BigInteger)
    memory_ratio: Mapped[float | None]


class Detail(Base):
    """The whole record but its samples: JSON, zlib. May be pruned before its result is."""

    __tablename__ = "detail"

    result_key: Mapped[Reference] = mapped_column(ForeignKey("result.key"), primary_key=True)
    document: Mapped[bytes] = mapped_column(LargeBinary)


class Samples(Base):
    """Every sample of a result: little-endian float64, zlib; `eager_first` one byte a pair, zlib."""

    __tablename__ = "samples"

    result_key: Mapped[Reference] = mapped_column(ForeignKey("result.key"), primary_key=True)
    pairs: Mapped[int]
    eager_s: Mapped[bytes] = mapped_column(LargeBinary)
    compiled_s: Mapped[bytes] = mapped_column(LargeBinary)
    eager_first: Mapped[bytes] = mapped_column(LargeBinary)


class Progress(Base):
    """A case in hand: its stage, and since when."""

    __tablename__ = "progress"

    run_key: Mapped[Reference] = mapped_column(ForeignKey("run.key"), primary_key=True)
    case_key: Mapped[Reference] = mapped_column(ForeignKey("case.key"), primary_key=True)
    attempt: Mapped[int]
    started_at: Mapped[datetime]
    stage: Mapped[str | None] = mapped_column(String(16))
    stage_since: Mapped[datetime]


# -- what pages need, kept at each insert -----------------------------------------------------


class Summary(Base):
    """A run's results in one suite and configuration, renewed in the transaction of each insert."""

    __tablename__ = "summary"
    __table_args__ = (Index(None, "configuration_id", "suite"),)

    run_key: Mapped[Reference] = mapped_column(ForeignKey("run.key"), primary_key=True)
    suite: Mapped[str] = mapped_column(Text, primary_key=True)
    configuration_id: Mapped[str] = mapped_column(ForeignKey("configuration.id"), primary_key=True)
    position: Mapped[int]
    """Of its first case in the plan."""
    planned: Mapped[int]
    skipped: Mapped[int]
    passed: Mapped[int]
    missing: Mapped[int]
    emulated: Mapped[int]
    unchecked: Mapped[int]
    """Ended as pass, but held against nothing: no plain pass."""
    outcomes: Mapped[dict[str, Any]]
    """Outcome -> count; they add up to `planned`."""
    speedup_geomean: Mapped[float | None]
    speedup_geomean_low: Mapped[float | None]
    speedup_geomean_high: Mapped[float | None]
    speedup_geomean_n: Mapped[int | None]
    speedup_geomean_method: Mapped[str | None] = mapped_column(Text)
    no_geomean: Mapped[str | None] = mapped_column(Text)
    left_out: Mapped[list[Any]]
    """`{"model", "why"}` of each planned case that is not in the geometric mean."""
    compile_wall_s_median: Mapped[float | None]
    memory_ratio_median: Mapped[float | None]


class Series(Base):
    """One case on one class of machine, from one source and branch, over time: and its head, renewed at each insert.

    The hard fingerprint of the environment is part of what it is (statistics: another machine or method starts another
    series), the soft one is not.
    """

    __tablename__ = "series"
    __table_args__ = (UniqueConstraint("case_key", "hard", "source", "branch"),)

    key: Mapped[Key]
    case_key: Mapped[Reference] = mapped_column(ForeignKey("case.key"))
    hard: Mapped[str] = mapped_column(String(16))
    source: Mapped[str] = mapped_column(Text)
    """Empty: measured by us."""
    branch: Mapped[str] = mapped_column(Text)
    """Empty: none was named."""
    results: Mapped[int]
    first_at: Mapped[datetime]
    last_at: Mapped[datetime]
    result_key: Mapped[int | None] = mapped_column(Whole)
    """The newest, by the time its case started. No foreign key: results point here, and a circle could not be built."""
    outcome: Mapped[str] = mapped_column(String(24))
    passed_at: Mapped[datetime | None]
    """When it last passed; NULL: never."""
    recent: Mapped[list[Any]]
    """The newest thirty, oldest first: `[started_at as Unix seconds, outcome, speedup, low, high]`."""


# -- who wrote what ---------------------------------------------------------------------------


class Annotation(Base):
    """A remark about a run or a series at a point in time."""

    __tablename__ = "annotation"

    id: Mapped[str] = mapped_column(RecordId, primary_key=True)
    run_key: Mapped[int | None] = mapped_column(Whole, ForeignKey("run.key"), index=True)
    series_key: Mapped[int | None] = mapped_column(Whole, ForeignKey("series.key"), index=True)
    at: Mapped[datetime]
    created_at: Mapped[datetime]
    author: Mapped[str] = mapped_column(Text)
    kind: Mapped[str] = mapped_column(String(24))
    text: Mapped[str] = mapped_column(Text)


class Token(Base):
    """A key to the API: what it opens, until when. Of the secret only a hash is kept."""

    __tablename__ = "token"

    id: Mapped[str] = mapped_column(String(16), primary_key=True)
    name: Mapped[str] = mapped_column(Text, unique=True)
    scope: Mapped[str] = mapped_column(String(8))
    digest: Mapped[str] = mapped_column(String(64))
    """SHA-256 of the secret: it is 256 random bits, so there is nothing to stretch."""
    created_at: Mapped[datetime]
    expires_at: Mapped[datetime | None]
    revoked_at: Mapped[datetime | None]
    last_used_at: Mapped[datetime | None]


class Upload(Base):
    """Lines that came in one piece: a batch over the API, or a file that was imported."""

    __tablename__ = "upload"

    id: Mapped[str] = mapped_column(RecordId, primary_key=True)
    run_key: Mapped[int | None] = mapped_column(Whole, ForeignKey("run.key"), index=True)
    token_id: Mapped[str | None] = mapped_column(ForeignKey("token.id"))
    received_at: Mapped[datetime]
    source: Mapped[str] = mapped_column(Text)
    """`api`, or the name of the file."""
    format: Mapped[str] = mapped_column(Text)
    digest: Mapped[str] = mapped_column(String(64))
    """SHA-256 of what was received."""
    bytes: Mapped[int] = mapped_column(BigInteger)
    new: Mapped[int]
    known: Mapped[int]
    late: Mapped[int]
