"""What lies in a database, read past the code that is tested."""

from __future__ import annotations

from sqlalchemy import create_engine, inspect, text


def rows(url: str, sql: str) -> list[tuple]:
    engine = create_engine(url)
    with engine.connect() as connection:
        found = [tuple(row) for row in connection.execute(text(sql))]
    engine.dispose()
    return found


def everything(url: str) -> dict[str, list[tuple]]:
    """Every row of every table, but the schema's own number."""
    engine = create_engine(url)
    tables = sorted(set(inspect(engine).get_table_names()) - {"alembic_version"})
    engine.dispose()
    return {table: sorted(map(repr, rows(url, f'SELECT * FROM "{table}"'))) for table in tables}
