"""The tables. Columns follow `harness.record`: units in the names, NULL for absent, never NaN.

    environment <- run <- planned -> case -> configuration
                          planned -> result -> samples        the newest attempt's result
                   run <- summary                             kept by the store at each insert
                   run <- progress                            what is in hand now, for the eye

A result is never changed; a newer attempt adds a row, and `planned.result_id` points at it.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import (
    JSON,
    BigInteger,
    DateTime,
    Dialect,
    ForeignKey,
    Index,
    LargeBinary,
    MetaData,
    String,
    Text,
    TypeDecorator,
)
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column


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


class Environment(Base):
    """A machine with its software, as found; equal ones share a row."""

    __tablename__ = "environment"

    id: Mapped[str] = mapped_column(String(16), primary_key=True)
    hard: Mapped[str] = mapped_column(String(16), index=True)
    soft: Mapped[str] = mapped_column(String(16))
    host: Mapped[str] = mapped_column(Text)
    cpu: Mapped[str] = mapped_column(Text)
    torch: Mapped[str | None] = mapped_column(Text)
    document: Mapped[dict[str, Any]]


class Run(Base):
    """One execution of a plan. In progress: `ended_at` is NULL and `heartbeat_at` is fresh."""

    __tablename__ = "run"

    id: Mapped[str] = mapped_column(String(36), primary_key=True)
    environment_id: Mapped[str] = mapped_column(ForeignKey("environment.id"))
    started_at: Mapped[datetime] = mapped_column(index=True)
    command: Mapped[str] = mapped_column(Text)
    device: Mapped[str] = mapped_column(Text)
    profile: Mapped[dict[str, Any]]
    protocol: Mapped[dict[str, Any]]
    doctor: Mapped[list[Any]] = mapped_column(server_default="[]")
    """Findings about the host, before the first case."""
    reference: Mapped[str | None] = mapped_column(Text)
    """Name of the reference configuration that was asked for."""
    last_start_at: Mapped[datetime | None]
    heartbeat_at: Mapped[datetime]
    ended_at: Mapped[datetime | None]
    end_reason: Mapped[str | None] = mapped_column(String(16))


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

    id: Mapped[str] = mapped_column(String(16), primary_key=True)
    configuration_id: Mapped[str] = mapped_column(ForeignKey("configuration.id"), index=True)
    suite: Mapped[str] = mapped_column(Text)
    model: Mapped[str] = mapped_column(Text)
    batch_size: Mapped[int | None]
    document: Mapped[dict[str, Any]]


class Planned(Base):
    """A case of a run's plan, stored before the first case starts."""

    __tablename__ = "planned"
    __table_args__ = (Index(None, "run_id", "position"),)

    run_id: Mapped[str] = mapped_column(ForeignKey("run.id"), primary_key=True)
    case_id: Mapped[str] = mapped_column(ForeignKey("case.id"), primary_key=True, index=True)
    position: Mapped[int]
    module: Mapped[str] = mapped_column(Text)
    tolerance: Mapped[float]
    timeout_s: Mapped[float]
    accuracy_batch: Mapped[int | None]
    skip: Mapped[str | None] = mapped_column(Text)
    expired: Mapped[str | None] = mapped_column(Text)
    spec: Mapped[dict[str, Any]]
    attempt: Mapped[int] = mapped_column(default=0)
    """Newest attempt that was started or recorded; results of older ones are refused."""
    result_id: Mapped[str | None] = mapped_column(ForeignKey("result.id"))
    """The newest attempt's result; NULL: waiting or missing."""


class Result(Base):
    """One record. Never changed; `document` is the whole of it but the samples."""

    __tablename__ = "result"
    __table_args__ = (Index(None, "run_id", "case_id", "attempt", unique=True),)

    id: Mapped[str] = mapped_column(String(36), primary_key=True)
    run_id: Mapped[str] = mapped_column(ForeignKey("run.id"))
    case_id: Mapped[str] = mapped_column(ForeignKey("case.id"), index=True)
    attempt: Mapped[int]
    started_at: Mapped[datetime]
    finished_at: Mapped[datetime]
    outcome: Mapped[str] = mapped_column(String(24))
    stage: Mapped[str | None] = mapped_column(String(16))
    side: Mapped[str | None] = mapped_column(String(16))
    text: Mapped[str | None] = mapped_column(Text)
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
    compiled_s: Mapped[float | None]
    compile_wall_s: Mapped[float | None]
    compile_cpu_s: Mapped[float | None]
    graphs: Mapped[int | None]
    graph_breaks: Mapped[int | None]
    recompiles: Mapped[int | None]
    break_even_steps: Mapped[float | None]
    eager_peak_bytes: Mapped[int | None] = mapped_column(BigInteger)
    compiled_peak_bytes: Mapped[int | None] = mapped_column(BigInteger)
    memory_ratio: Mapped[float | None]
    document: Mapped[dict[str, Any]] = mapped_column(JSON, deferred=True)


class Samples(Base):
    """Every sample of a result: little-endian float64, zlib; `eager_first` one byte a pair, zlib."""

    __tablename__ = "samples"

    result_id: Mapped[str] = mapped_column(ForeignKey("result.id"), primary_key=True)
    pairs: Mapped[int]
    eager_s: Mapped[bytes] = mapped_column(LargeBinary)
    compiled_s: Mapped[bytes] = mapped_column(LargeBinary)
    eager_first: Mapped[bytes] = mapped_column(LargeBinary)


class Progress(Base):
    """A case in hand: its stage, and since when."""

    __tablename__ = "progress"

    run_id: Mapped[str] = mapped_column(ForeignKey("run.id"), primary_key=True)
    case_id: Mapped[str] = mapped_column(ForeignKey("case.id"), primary_key=True)
    attempt: Mapped[int]
    started_at: Mapped[datetime]
    stage: Mapped[str | None] = mapped_column(String(16))
    stage_since: Mapped[datetime]


class Summary(Base):
    """A run's results in one suite and configuration, renewed in the transaction of each insert."""

    __tablename__ = "summary"

    run_id: Mapped[str] = mapped_column(ForeignKey("run.id"), primary_key=True)
    suite: Mapped[str] = mapped_column(Text, primary_key=True)
    configuration_id: Mapped[str] = mapped_column(ForeignKey("configuration.id"), primary_key=True)
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
