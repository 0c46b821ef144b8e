"""Lines, cells, numbers and moments, as people and machines write them."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from harness.formats.text import Bad, header, number, table, when


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", None),
        (" 1.5 ", 1.5),
        ("1.2345x", 1.2345),
        ("0.97×", 0.97),
        ("1,234.5", 1234.5),
        ("1,234,567", 1234567.0),
        ("-0.25", -0.25),
        ("2e-3", 0.002),
        (".5", 0.5),
    ],
)
def test_numbers(text: str, value: float | None) -> None:
    """A number may be dressed: a sign of times behind it, thousands apart, blanks around it."""
    assert value == number(text)


@pytest.mark.parametrize("text", ["inf", "-inf", "nan", "NaN", "Infinity"])
def test_not_finite(text: str) -> None:
    """What is not finite is no number, and is called so."""
    with pytest.raises(ValueError, match="is not finite"):
        number(text)


@pytest.mark.parametrize("text", ["infra_error", "1_000", "1,23", "0x10", "1.2.3", "twelve", "xx"])
def test_words_are_no_numbers(text: str) -> None:
    """Nothing is cut off a word to make a number of it."""
    with pytest.raises(ValueError, match="is no number"):
        number(text)


def test_lines_know_their_numbers() -> None:
    """Blank lines, comments and line breaks inside quotes do not shift the numbers of the lines behind them."""
    found = table('# by hand\r\nname,why\r\n\r\na,"one\r\ntwo"\r\n# link\r\nb,three\r\n')

    assert ("name", "why") == found.header
    assert [(4, "one\r\ntwo"), (7, "three")] == [(row.line, row.text("why")) for row in found.rows]


def test_header_in_a_comment() -> None:
    """A header that is commented out is still the header; another comment is not."""
    assert (2, ("name", "speedup")) == header("# targets, by hand\n#name,speedup\nnet,1.5\n")


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_line_ends(end: str) -> None:
    """Every line end is one."""
    assert ["a", "b"] == [row.text("name") for row in table(end.join(["name,x", "a,1", "b,2", ""])).rows]


def test_bad_lines() -> None:
    """Rows with another number of cells, and marks of a merge conflict, are bad with their lines."""
    found = table("name,x\na,1\n<<<<<<< HEAD\nb\n>>>>>>> theirs\nc,1,2\n")

    assert [3, 4, 5, 6] == [bad.line for bad in found.bad]
    assert "a mark of a merge conflict (<<<<<<<)" == found.bad[0].why
    assert Bad(6, "3 cells, and the header has 2") == found.bad[-1]
    assert ["a"] == [row.text("name") for row in found.rows]


def test_unclosed_quote() -> None:
    """A quote that is never closed does not swallow the rest in silence."""
    found = table('name,x\na,"1\nb,2\n')

    assert found.bad
    assert [] == [*found.rows]


@pytest.mark.parametrize(
    ("text", "second"),
    [
        ("2024-03-10 02:30:00", 0),
        ("2024-03-10T02:30:00", 0),
        ("2024-03-10T02:30:00Z", 0),
        ("2024-03-10T08:00:00+05:30", 0),
        (1710037800, 0),
        ("1710037800", 0),
    ],
)
def test_moments(text: str | float, second: int) -> None:
    """A moment is one and the same however it is written; without a zone it is UTC."""
    assert datetime(2024, 3, 10, 2, 30, second, tzinfo=UTC) == when(text)


@pytest.mark.parametrize("text", ["yesterday", "2024-13-01", "1e40"])
def test_no_moment(text: str) -> None:
    """What is no moment is refused."""
    with pytest.raises(ValueError):  # noqa: PT011  (the message is Python's own)
        when(text)
