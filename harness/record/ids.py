"""Ids of runs and records, and the clock that dates them."""

from __future__ import annotations

import secrets
import time
import uuid
from datetime import UTC, datetime

_NAMESPACE = uuid.UUID("6f0f3c1e-6a53-4c57-9d0b-3f4f6d6f2b10")


def now() -> datetime:
    return datetime.now(UTC)


def new_run_id() -> str:
    """Return a UUIDv7 (RFC 9562): sorts by time of creation."""
    milliseconds = time.time_ns() // 1_000_000
    value = (milliseconds << 80) | (0x7 << 76) | (secrets.randbits(12) << 64) | (0b10 << 62) | secrets.randbits(62)
    return str(uuid.UUID(int=value))


def record_id(run_id: str, case_id: str, attempt: int) -> str:
    """Return the id of a record: derived, so that sending it twice is harmless."""
    return str(uuid.uuid5(_NAMESPACE, f"{run_id}/{case_id}/{attempt}"))


def content_id(text: str) -> str:
    """Return the id of a run that others measured: derived, so that importing the same facts twice is harmless."""
    return str(uuid.uuid5(_NAMESPACE, text))
