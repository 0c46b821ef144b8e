"""A server and its database give the same rows: the questions of `bench.connect`, put to the API itself."""

from __future__ import annotations

from datetime import timedelta

import pytest

from bench.client_http import Server
from server.analysis import Analysis, Asked
from tests.server import factory, library

ASKED = (
    Asked(),
    Asked(words={"suite": ("timm",), "source": ("",)}),
    Asked(words={"model": ("res*",), "branch": ("main", "fix")}),
    Asked(since=factory.BEGIN + timedelta(days=1), until=factory.BEGIN + timedelta(days=4)),
)


@pytest.fixture
def both(api):
    return Analysis(api.app.state.queries._engine), Server("http://testserver", transport=api._transport)


def rows(found):
    return sorted(map(repr, found))


@pytest.mark.parametrize("asked", ASKED)
def test_runs_and_results_are_the_same(both, asked):
    """Runs, and results over many runs, are the same rows from a server as from its database."""
    database, server = both

    assert rows(database.runs(asked)) == rows(server.runs(asked))
    assert rows(database.results(asked)) == rows(server.results(asked))


@pytest.mark.parametrize("asked", ASKED)
@pytest.mark.parametrize("metric", ["speedup", "memory_ratio"])
def test_series_are_the_same(both, asked, metric):
    """Points of series are the same rows from a server as from its database."""
    database, server = both

    assert rows(database.series(metric, asked)) == rows(server.series(metric, asked))


def test_samples_are_the_same(both):
    """Samples are the same pairs from a server as from its database."""
    database, server = both
    record_id = library.record_ids()[0]

    assert list(database.samples(record_id)) == list(server.samples(record_id))
