"""Fixtures that several folders share."""
