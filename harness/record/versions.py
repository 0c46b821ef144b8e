"""The two numbers that travel with every result: of the lines, and of the way to measure."""

from __future__ import annotations

from typing import Literal

SCHEMA: Literal[1] = 1
"""Version of the lines of a journal."""

METHOD = 1
"""Version of how things are measured. Raised by every change that moves a number; part of the hard fingerprint."""
