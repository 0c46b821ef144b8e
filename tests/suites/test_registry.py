"""Suites are found by the name of their module, which is imported only then."""

from __future__ import annotations

import sys

import pytest

from suites import toy
from suites.registry import LoadError, builder


def test_builder_of_a_module():
    """The builder is the module's function `build`."""
    assert toy.build is builder("suites.toy")


def test_missing_module():
    """A module that is not installed is named, with what to do."""
    with pytest.raises(LoadError, match=r"no_such_package_4a.* not installed .* correct `module`"):
        builder("no_such_package_4a.suite")


def test_missing_library(tmp_path, monkeypatch):
    """A suite whose library is absent names the library, not itself."""
    (tmp_path / "a_suite_of_tests.py").write_text("import another_missing_package_4a\n")
    monkeypatch.syspath_prepend(tmp_path)

    with pytest.raises(LoadError, match="a_suite_of_tests needs 'another_missing_package_4a'"):
        builder("a_suite_of_tests")


def test_missing_extra(monkeypatch):
    """Where timm is absent, the remedy is the extra of this project."""
    monkeypatch.setitem(sys.modules, "timm", None)
    monkeypatch.delitem(sys.modules, "suites.timm", raising=False)

    with pytest.raises(LoadError, match=r"needs 'timm'.*extra \[run\]"):
        builder("suites.timm")


def test_module_without_builder():
    """A module that builds nothing is no suite."""
    with pytest.raises(LoadError, match=r"suites\.spec has no function build"):
        builder("suites.spec")
