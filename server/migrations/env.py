"""Run by Alembic; the connection comes from `server.migrations`, with its transaction already begun."""

from __future__ import annotations

from alembic import context

from server.tables import Base

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=Base.metadata,
    render_as_batch=True,
    transactional_ddl=True,
)
with context.begin_transaction():
    context.run_migrations()
