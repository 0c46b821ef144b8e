"""Make sure that there is a browser: one that is here, else Playwright's own, else the system's package.

`python tests/browser/provide.py` prints the path of a Chromium or Chrome, or fails with what to do.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
REMEDY = "No Chromium or Chrome was found. Install one, or set BENCH_CHROMIUM to its path."


def found() -> str | None:
    """Return the path of a browser that is already here."""
    named = os.environ.get("BENCH_CHROMIUM")
    if named:
        return named if Path(named).is_file() else None
    own = next((path for name in NAMES if (path := shutil.which(name))), None)
    return own or _of_playwright()


def _of_playwright() -> str | None:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        path = playwright.chromium.executable_path
    return path if Path(path).is_file() else None


def _try(*command: str) -> bool:
    try:
        return (
            subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=600).returncode == 0
        )
    except (OSError, subprocess.TimeoutExpired):
        return False


def provide() -> str | None:
    """Return the path of a browser, after installing one where that is possible."""
    if (path := found()) is not None:
        return path
    if _try(sys.executable, "-m", "playwright", "install", "chromium") and (path := found()):
        return path
    if os.geteuid() == 0 and shutil.which("apt-get") and _try("apt-get", "update"):
        _try("apt-get", "install", "-y", "--no-install-recommends", "chromium", "fonts-dejavu-core")
    return found()


if __name__ == "__main__":
    browser = provide()
    print(browser or REMEDY)
    sys.exit(0 if browser else 1)
