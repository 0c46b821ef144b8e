"""How fit the host was, which reference was asked for, and skips whose date has passed."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    op.add_column("run", sa.Column("doctor", sa.JSON(), nullable=False, server_default="[]"))
    op.add_column("run", sa.Column("reference", sa.Text(), nullable=True))
    op.add_column("planned", sa.Column("expired", sa.Text(), nullable=True))
