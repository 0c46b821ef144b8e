"""The colours, named once: as custom properties in `static/theme.css`, read from there for figures."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files


@cache
def light() -> dict[str, str]:
    """Return the light theme's colours by name, e.g. `faster` -> `#14518c`."""
    text = files("dashboards").joinpath("static/theme.css").read_text(encoding="utf-8")
    return dict(_TOKEN.findall(text.split("@media")[0]))


@cache
def dark() -> dict[str, str]:
    """Return the dark theme's colours by name."""
    text = files("dashboards").joinpath("static/theme.css").read_text(encoding="utf-8")
    return dict(_TOKEN.findall(text.split("@media")[1]))


_TOKEN = re.compile(r"--([a-z0-9-]+):\s*(#[0-9a-f]{6});")
