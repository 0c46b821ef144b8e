"""What is pinned was found to install on ARM Linux; `make aarch64` asks the package index and makes the page."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.aarch64 import Package, pinned

PAGE = Path(__file__).parents[1] / "docs" / "results" / "aarch64.md"
ROWS = [[cell.strip() for cell in line.strip("|").split("|")] for line in PAGE.read_text().splitlines() if "|" in line]
TABLE = {name: cells for name, *cells in ROWS[2:]}


@pytest.mark.parametrize(("name", "number"), pinned().items())
def test_every_pin_was_looked_at(name, number):
    """Each line of constraints.txt stands in the table with its version, and with a wheel where it is needed."""
    version, extra, platform, _, is_pinned = TABLE[name]

    assert (number, "yes") == (version, is_pinned)
    assert extra in ("run", "dev", "not needed there")
    assert (extra == "not needed there") == (platform == "")


def test_wheels_fit():
    """No wheel in the table is for another processor or another system."""
    platforms = {cells[2] for cells in TABLE.values()}

    assert all(
        each in ("", "any") or (each.startswith("manylinux") and each.endswith("_aarch64")) for each in platforms
    )
    assert "run" == TABLE["torch"][1]


def test_platform_of_a_wheel():
    """The platform is the last part of a wheel's name, the first where it is for several."""
    several = Package(
        "psutil", "7.2.2", "psutil-7.2.2-cp36-abi3-manylinux2014_aarch64.manylinux_2_28_aarch64.whl", None
    )

    assert "manylinux2014_aarch64" == several.platform
    assert "any" == Package("a", "1", "a-1-py3-none-any.whl", 5).platform
