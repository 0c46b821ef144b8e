"""Stands in the root, as modules do that models import from there."""

WIDTH = 3
