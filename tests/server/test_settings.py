"""Settings come from the environment; arguments win."""

from __future__ import annotations

from server.settings import Settings


def test_default_is_a_file_in_the_working_directory(monkeypatch):
    """Without anything said, results lie beside the user's work."""
    monkeypatch.delenv("BENCH_DATABASE", raising=False)

    assert "sqlite:///bench.db" == Settings().database


def test_environment_and_arguments(monkeypatch):
    """The environment says where the database is, unless an argument does."""
    monkeypatch.setenv("BENCH_DATABASE", "sqlite:////data/bench.db")

    assert "sqlite:////data/bench.db" == Settings().database
    assert "sqlite:///here.db" == Settings(database="sqlite:///here.db").database
