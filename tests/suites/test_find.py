"""Modules are located without being imported."""

from __future__ import annotations

import subprocess
import sys

import pytest

from suites.find import locate, missing_part


@pytest.fixture
def package(tmp_path):
    """A package and a namespace whose modules cannot be imported."""
    inside = ("ours/inner/__init__.py", "ours/inner/leaf.py", "spread/wide/leaf.py", "torch/leaf.py", "json.py")
    for name in ("ours/__init__.py", *inside):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("raise RuntimeError\n")
    return tmp_path


def test_located(package):
    """A module is located below packages that cannot be imported, and below a folder that is no package."""
    assert str(package / "ours/inner/leaf.py") == locate("ours.inner.leaf", package).origin
    assert str(package / "ours/inner/__init__.py") == locate("ours.inner", package).origin
    assert str(package / "spread/wide/leaf.py") == locate("spread.wide.leaf", package).origin
    assert [str(package / "spread/wide")] == locate("spread.wide", package).submodule_search_locations


def test_a_folder_hides_nothing(package):
    """A mere folder does not stand in for what is installed; a file does, unless the module is imported already."""
    code = "from suites.find import locate; print(*(locate(name, '.').origin for name in ('torch.nn', 'sqlite3')))"
    (package / "sqlite3.py").write_text("")
    done = subprocess.run([sys.executable, "-P", "-c", code], cwd=package, capture_output=True, text=True, check=True)

    torch, sqlite = done.stdout.split()
    assert torch.endswith("/torch/nn/__init__.py")
    assert str(package) not in torch
    assert str(package / "sqlite3.py") == sqlite
    assert str(package / "json.py") != locate("json", package).origin


def test_spread_over_two_folders(package, tmp_path_factory, monkeypatch):
    """Folders of one name, here and installed, are one module."""
    other = tmp_path_factory.mktemp("other")
    (other / "spread").mkdir()
    (other / "spread" / "further.py").touch()
    monkeypatch.syspath_prepend(other)

    assert str(other / "spread/further.py") == locate("spread.further", package).origin
    assert str(package / "spread/wide/leaf.py") == locate("spread.wide.leaf", package).origin


@pytest.mark.parametrize(
    ("module", "missing"),
    [
        ("ours.inner.leaf", None),
        ("ours.inner.laef", "ours.inner.laef"),
        ("ours.iner.leaf", "ours.iner"),
        ("ours.inner.leaf.more", "ours.inner.leaf.more"),
        ("no_such_package_4a", "no_such_package_4a"),
        ("no_such_package_4a.deeper", "no_such_package_4a"),
    ],
)
def test_missing_part(package, module, missing):
    """The first part that is not there is named."""
    assert missing == missing_part(module, package)


def test_installed():
    """Without a folder, what is installed is located; what is imported already stays what it is."""
    assert locate("suites.spec").origin == sys.modules["suites.spec"].__file__
    assert locate("suites.spec", "/nowhere").origin == sys.modules["suites.spec"].__file__
    assert locate("sys") is not None
    assert locate("sys.path") is None


def test_torch_is_not_imported():
    """A module inside torch is located without importing torch."""
    code = "import sys; from suites.find import locate; sys.exit(not locate('torch.nn') or 'torch' in sys.modules)"

    assert 0 == subprocess.run([sys.executable, "-c", code], check=False).returncode
