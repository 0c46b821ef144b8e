"""Rows are plain lines in a pipe; objects are JSON lines."""

from __future__ import annotations

import json
import sys

import pytest

from bench import output


def test_plain_rows(capsys):
    """In a pipe: a heading and aligned columns, numbers flush right, nothing at the ends of lines."""
    output.rows(("name", "count", "note"), [("a", "1", ""), ("länger", "1,000", "[x]")])

    assert "name    count  note\na           1\nlänger  1,000  [x]\n" == capsys.readouterr().out


def test_table_on_a_terminal(capsys, monkeypatch):
    """On a terminal the same cells, whatever they contain."""
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    output.rows(("name",), [("[bold]x",)])

    assert "[bold]x" in capsys.readouterr().out


def test_json_line(capsys):
    """An object carries schema and type; a number that is none is refused, not written."""
    output.json_line("thing", {"value": None, "name": "ü"})

    assert {"schema": 1, "type": "thing", "value": None, "name": "ü"} == json.loads(capsys.readouterr().out)
    with pytest.raises(ValueError, match="JSON compliant"):
        output.json_line("thing", {"value": float("nan")})
