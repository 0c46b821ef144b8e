"""On which line of a TOML file does an entry stand? The standard library's parser does not say.

A scanner for text that this parser has already taken: it knows strings, comments, headers and
brackets, and leaves the reading of keys to the parser.
"""

from __future__ import annotations

import re
import tomllib
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

Where = tuple[str | int, ...]
"""Keys and indices from the file down to a value, e.g. `("model", 3, "batch", "training")`."""

_TOKEN = re.compile(
    r"""
      (?P<nothing> [ \t\r]+ | \#[^\n]* )
    | (?P<text> \"{3} (?: \\. | [^\\] )*? \"{3,5} | '{3} .*? '{3,5} | " (?: \\. | [^"\\\n] )* " | ' [^'\n]* ' )
    | (?P<mark> [\n\[\]{}=,] )
    | (?P<word> [^\s\[\]{}=,"'#]+ )
    """,
    re.VERBOSE | re.DOTALL,
)

_Tokens = deque[tuple[str, int]]
"""What is left of the file: each token with its line, counted from 1."""


def line_of(text: str, where: Sequence[str | int]) -> int:
    """Return the line of a value, or of the nearest thing around it that the file holds; 1 for the file itself.

    Args:
        text: of a valid TOML file, with any line ends.
    """
    known = positions(text)
    path = tuple(where)
    while path not in known:
        path = path[:-1]
    return known[path]


def positions(text: str) -> Mapping[Where, int]:
    """Return the line on which each table, key and element of a file begins."""
    tokens: _Tokens = deque(_tokens(text))
    found: dict[Where, int] = {(): 1}
    lengths: dict[Where, int] = {}
    table: Where = ()
    while tokens:
        mark, line = tokens[0]
        if mark == "\n":
            tokens.popleft()
        elif mark == "[":
            table = _header(tokens, lengths)
            _note(found, (), table, line)
        else:
            _pair(tokens, table, found)
    return found


def _tokens(text: str) -> Iterator[tuple[str, int]]:
    line = 1
    for token in _TOKEN.finditer(text):
        if token.lastgroup != "nothing":
            yield token[0], line
        line += token[0].count("\n")


def _header(tokens: _Tokens, lengths: dict[Where, int]) -> Where:
    """Take a header; `lengths` counts the tables of each array. A name of an array means its newest table."""
    text = "".join(_until(tokens, "\n"))
    names = _names(text[2:-2] if text.startswith("[[") else text[1:-1])
    path: Where = ()
    for name in names[:-1]:
        path = (*path, name)
        if path in lengths:
            path = (*path, lengths[path] - 1)
    path = (*path, names[-1])
    if not text.startswith("[["):
        return path
    lengths[path] = lengths.get(path, 0) + 1
    return (*path, lengths[path] - 1)


def _pair(tokens: _Tokens, table: Where, found: dict[Where, int]) -> None:
    line = tokens[0][1]
    names = _names("".join(_until(tokens, "=")))
    tokens.popleft()
    _note(found, table, names, line)
    _value(tokens, (*table, *names), found)


def _note(found: dict[Where, int], table: Where, names: Where, line: int) -> None:
    """A table may be there without a header of its own: by the header of one inside it, or by a dotted key."""
    for count in range(1, len(names) + 1):
        found.setdefault((*table, *names[:count]), line)


def _value(tokens: _Tokens, path: Where, found: dict[Where, int]) -> None:
    opening, _ = tokens[0]
    if opening not in "[{":
        for _ in _until(tokens, "\n,]}"):
            pass
        return
    tokens.popleft()
    index = 0
    while tokens[0][0] not in "]}":
        mark, line = tokens[0]
        if mark in "\n,":
            tokens.popleft()
        elif opening == "{":
            _pair(tokens, path, found)
        else:
            found[(*path, index)] = line
            _value(tokens, (*path, index), found)
            index += 1
    tokens.popleft()


def _until(tokens: _Tokens, marks: str) -> Iterator[str]:
    while tokens and tokens[0][0] not in marks:
        yield tokens.popleft()[0]


def _names(text: str) -> tuple[str, ...]:
    """Return the parts of a key such as `a."b.c"`."""
    names: list[str] = []
    value: Any = tomllib.loads(f"{text} = 0")
    while isinstance(value, dict):
        ((name, value),) = value.items()
        names.append(name)
    return tuple(names)
