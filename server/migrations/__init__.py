"""The schema's history, applied when a database is opened; runs from a checkout and from a wheel.

A change of `server.tables` gets the next file in `versions/`, its number below, and `HEAD`; a test
compares what the migrations build with what the tables say.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import Connection

if TYPE_CHECKING:
    from alembic.config import Config

REVISIONS = ("0001", "0002", "0003")
"""Revisions this version knows, oldest first. Kept here so that an up-to-date database opens without Alembic (2 s)."""

HEAD = REVISIONS[-1]


def configuration(connection: Connection) -> Config:
    """Return Alembic's configuration for this folder and an open connection."""
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent).replace("%", "%%"))
    config.attributes["connection"] = connection
    return config


def upgrade(connection: Connection) -> None:
    """Bring the schema to `HEAD` inside the connection's transaction: all of it, or nothing."""
    from alembic import command

    command.upgrade(configuration(connection), HEAD)
