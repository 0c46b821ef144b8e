"""Settings of the server, from the environment (`BENCH_DATABASE`, `BENCH_READ`, `BENCH_HOSTS`, ...); and secrets."""

from __future__ import annotations

import os
from enum import StrEnum
from pathlib import Path
from typing import Annotated

from pydantic import NonNegativeInt, field_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from harness.errors import BenchError

DEFAULT_DATABASE = "sqlite:///bench.db"
"""A file in the working directory, so that two projects do not mix their runs."""

LOOPBACK = ("127.0.0.1", "localhost", "::1", "[::1]")


class Reading(StrEnum):
    """What reading needs; writing always needs a token."""

    OPEN = "open"
    TOKEN = "token"


class Settings(BaseSettings):
    """How the app is served. Arguments win over the environment."""

    model_config = SettingsConfigDict(env_prefix="BENCH_", frozen=True, extra="ignore")

    database: str = DEFAULT_DATABASE
    """SQLAlchemy URL, e.g. `sqlite:////data/bench.db` or `postgresql+psycopg://bench@db/bench`."""

    public_read: bool = False
    """Anyone who can reach the port may read; off, only requests addressed to this machine are answered."""

    upgrade: bool = True
    """A database with an older schema is upgraded at the start; off, one on PostgreSQL is refused: see
    `bench db upgrade`."""

    read: Reading = Reading.OPEN
    """`token`: reading needs a token too, and then requests addressed to any name are answered."""

    hosts: Annotated[tuple[str, ...], NoDecode] = ()
    """Names by which the server may be addressed beside those of this machine, separated by commas; where none is
    given and reading is public or needs a token, any name."""

    rate: NonNegativeInt = 6000
    """Requests a minute for each token, and for each address without one; 0: no limit."""

    @field_validator("hosts", mode="before")
    @classmethod
    def _split(cls, value: object) -> object:
        return (
            tuple(part.strip().lower() for part in value.split(",") if part.strip())
            if isinstance(value, str)
            else value
        )


def secret(name: str) -> str | None:
    """Return a secret from the file that `NAME_FILE` names, else from the variable `NAME`; None without either.

    Raises:
        BenchError: the file cannot be read, or is empty.
    """
    path = os.environ.get(f"{name}_FILE")
    if not path:
        return os.environ.get(name) or None
    try:
        found = Path(path).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        cause = getattr(error, "strerror", None) or error
        raise BenchError(f"{name}_FILE={path}: {cause}. Name a file that may be read.") from None
    if not found:
        raise BenchError(f"{name}_FILE={path}: is empty. Write the secret into it.")
    return found
