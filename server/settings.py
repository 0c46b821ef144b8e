"""Settings of the server, from the environment: `BENCH_DATABASE`, `BENCH_PUBLIC_READ`."""

from __future__ import annotations

from pydantic_settings import BaseSettings, SettingsConfigDict

DEFAULT_DATABASE = "sqlite:///bench.db"
"""A file in the working directory, so that two projects do not mix their runs."""

LOOPBACK = ("127.0.0.1", "localhost", "::1", "[::1]")


class Settings(BaseSettings):
    """How the app is served. Arguments win over the environment."""

    model_config = SettingsConfigDict(env_prefix="BENCH_", frozen=True, extra="ignore")

    database: str = DEFAULT_DATABASE
    """SQLAlchemy URL, e.g. `sqlite:////data/bench.db` or `postgresql+psycopg://bench@db/bench`."""

    public_read: bool = False
    """Anyone who can reach the port may read; off, only requests addressed to this machine are answered."""
