"""Records survive the way into rows and back."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import BenchError
from harness.record import Environment, Outcome
from server import rows
from server.queries import Queries
from server.store import Store
from tests.server import factory


@given(st.lists(st.floats(allow_nan=False), max_size=200))
def test_samples_survive_bit_by_bit(samples):
    """Packed samples come back as the same 64-bit numbers, signed zeros and infinities too."""
    found = rows.unpack(rows.pack(samples))

    assert list(map(float.hex, samples)) == list(map(float.hex, found))


def test_record_comes_back_whole(url):
    """What the reader answers equals the record that was stored, samples and order included."""
    store = Store.connect(url)
    run = factory.make_run(2)
    passed = factory.make_record(run.plan[0].case, speedup=math.pi)
    failed = factory.make_record(run.plan[1].case, Outcome.OOM)
    store.open(run)
    store.record(passed)
    store.record(failed)
    queries = Queries(store._engine)

    assert passed == queries.record(passed.id)
    assert failed == queries.record(failed.id)


def test_document_of_another_version_is_a_sentence():
    """A stored document with a field that this version does not know is named, not a traceback."""
    values = rows.document(factory.make_environment()) | {"moon_phase": "full"}

    with pytest.raises(BenchError, match=r"Environment of another version.*moon_phase"):
        rows.stored_as(Environment, values)


def test_fingerprint_ignores_order():
    """Equal values have equal fingerprints, whatever the order of their names."""
    assert rows.fingerprint({"a": 1, "b": None}) == rows.fingerprint({"b": None, "a": 1})
    assert rows.fingerprint({"a": 1}) != rows.fingerprint({"a": 2})
