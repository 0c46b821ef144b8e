"""Settings come from the environment; arguments win."""

from __future__ import annotations

import pytest

from harness.errors import BenchError
from server import db
from server.settings import Settings, secret


def test_default_is_a_file_in_the_working_directory(monkeypatch):
    """Without anything said, results lie beside the user's work."""
    monkeypatch.delenv("BENCH_DATABASE", raising=False)

    assert "sqlite:///bench.db" == Settings().database


def test_environment_and_arguments(monkeypatch):
    """The environment says where the database is, unless an argument does."""
    monkeypatch.setenv("BENCH_DATABASE", "sqlite:////data/bench.db")

    assert "sqlite:////data/bench.db" == Settings().database
    assert "sqlite:///here.db" == Settings(database="sqlite:///here.db").database


def test_secret_in_a_file(monkeypatch, tmp_path):
    """A secret is what its file holds, without the line's end; the file wins over the variable."""
    (tmp_path / "secret").write_text("s3cret\n")
    monkeypatch.setenv("BENCH_TOKEN", "other")
    assert "other" == secret("BENCH_TOKEN")
    monkeypatch.setenv("BENCH_TOKEN_FILE", str(tmp_path / "secret"))

    assert "s3cret" == secret("BENCH_TOKEN")
    assert secret("BENCH_DATABASE_PASSWORD") is None


@pytest.mark.parametrize(("content", "said"), [(None, "No such file"), ("\n", "is empty"), ("\udcff", "decode")])
def test_file_without_a_secret(monkeypatch, tmp_path, content, said):
    """A file that cannot be read, or holds nothing, is named with its variable."""
    path = tmp_path / "secret"
    if content is not None:
        path.write_bytes(content.encode(errors="surrogateescape"))
    monkeypatch.setenv("BENCH_TOKEN_FILE", str(path))

    with pytest.raises(BenchError, match=f"BENCH_TOKEN_FILE={path}: .*{said}"):
        secret("BENCH_TOKEN")


def test_password_of_the_database(monkeypatch, tmp_path):
    """A URL without a password takes the one of the file, which is never shown; one that has its own keeps it."""
    (tmp_path / "secret").write_text("s3cret")
    monkeypatch.setenv("BENCH_DATABASE_PASSWORD_FILE", str(tmp_path / "secret"))

    engines = [db.opened(f"postgresql+psycopg://bench{own}@nowhere/bench") for own in ("", ":mine")]

    assert ["s3cret", "mine"] == [engine.url.password for engine in engines]
    assert "s3cret" not in repr(engines[0])


def test_names_are_separated_by_commas(monkeypatch):
    """Hosts are a list in one variable, in small letters, without blanks."""
    monkeypatch.setenv("BENCH_HOSTS", "Bench.example, other.example,")

    assert ("bench.example", "other.example") == Settings().hosts
