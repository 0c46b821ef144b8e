"""The line of everything that a TOML file says, whatever else the file holds."""

from __future__ import annotations

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.lines import line_of, positions

TEXT = '''# [[model]]                                1
about = """
[[model]]
name = "no entry"
"""  # [[model]]
a . "b.c" = 1  #                               6
[tolerance]
inference = 1e-3
[[model]]  # the first                         9
name = '[[model]]'
batch = { training = 1, "in#f" = [1,
    2] }
why = "a \\" [[model]] # no comment"
[model.deep]  #                               14
er = {}
[[model]]
name = "two"
skip = [
    # ] no end, { no beginning
    { why = "a ] b", mode = 'x' },  #         20
    { why = "c" }, { until = 2026-12-31 },
]
batch.training = 3
[tier.quick]
models = ["a",  #                             25
    "b"]
[[model.sub]]
x = 1
[["odd]".array]]
x = """one quote at the end""""
y = 2  #                                      31'''


@pytest.mark.parametrize("ends", ["\n", "\r\n"], ids=["unix", "dos"])
@pytest.mark.parametrize(
    ("where", "line"),
    [
        ((), 1),
        (("about",), 2),
        (("a", "b.c"), 6),
        (("tolerance",), 7),
        (("tolerance", "inference"), 8),
        (("tolerance", "training"), 7),
        (("model", 0), 9),
        (("model", 0, "name"), 10),
        (("model", 0, "build"), 9),
        (("model", 0, "batch", "training"), 11),
        (("model", 0, "batch", "in#f", 1), 12),
        (("model", 0, "why"), 13),
        (("model", 0, "deep"), 14),
        (("model", 0, "deep", "er"), 15),
        (("model", 1), 16),
        (("model", 1, "skip"), 18),
        (("model", 1, "skip", 0, "mode"), 20),
        (("model", 1, "skip", 1), 21),
        (("model", 1, "skip", 2, "until"), 21),
        (("model", 1, "skip", 2, "until", "[key]"), 21),
        (("model", 1, "batch", "training"), 23),
        (("tier",), 24),
        (("tier", "quick", "models", 0), 25),
        (("tier", "quick", "models", 1), 26),
        (("tier", "quick", "modes"), 24),
        (("model", 1, "sub", 0, "x"), 28),
        (("odd]", "array", 0), 29),
        (("odd]", "array", 0, "y"), 31),
        (("model", 7), 9),
        (("nothing",), 1),
    ],
)
def test_lines(where, line, ends):
    """Headers, keys, elements and parts of inline tables have their line; what is not there has that around it."""
    assert line == line_of(TEXT.replace("\n", ends), where)


def walk(value, where=()):
    """Yield the place of everything that the library's parser found."""
    yield where
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in pairs:
        yield from walk(inner, (*where, key))


def test_everything_is_found():
    """What the library's parser finds in a file has a line, and nothing else has."""
    assert {*walk(tomllib.loads(TEXT))} == {*positions(TEXT)}


STRINGS = st.text(st.characters(blacklist_categories=("Cc", "Cs"), blacklist_characters='"\\'), max_size=8)


@given(values=st.lists(st.one_of(STRINGS, st.lists(STRINGS, max_size=3)), min_size=1, max_size=6))
def test_any_text_in_strings(values):
    """Whatever strings hold, the next key is on the next line."""

    def written(value):
        return f"[{', '.join(map(written, value))}]" if isinstance(value, list) else f'"{value}"'

    text = "\n".join(f"k{place} = {written(value)}  # {value!r}" for place, value in enumerate(values))

    assert {f"k{place}": place + 1 for place in range(len(values))} == {
        where[0]: line for where, line in positions(text).items() if len(where) == 1
    }
