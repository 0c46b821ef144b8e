"""Modules that a forkserver might be asked to import beforehand."""
