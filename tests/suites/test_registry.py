"""Suites are found by the name of their module, which is imported only then."""

from __future__ import annotations

import sys

import pytest

from suites import toy
from suites.registry import LoadError, builder


def test_builder_of_a_module():
    """The builder is the module's function `build`."""
    assert toy.build is builder("suites.toy")


def test_module_in_the_working_directory(tmp_path, monkeypatch):
    """A suite's module may stand in the working directory; what is installed comes before it."""
    for name in ("a_suite_at_hand_4a.py", "json.py"):
        (tmp_path / name).write_text("def build(): ...\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [each for each in sys.path if each])

    with pytest.raises(LoadError, match="json has no function build"):
        builder("json")
    assert str(tmp_path) not in sys.path
    assert "a_suite_at_hand_4a" == builder("a_suite_at_hand_4a").__module__


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
