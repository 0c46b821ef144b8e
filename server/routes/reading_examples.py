"""What answers look like, for the API's description: taken from journals under `examples/`, and shortened."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any

_FILE = files("server.routes").joinpath("reading_examples.json")
EXAMPLES: dict[str, Any] = json.loads(_FILE.read_text(encoding="utf-8"))

HEALTH = EXAMPLES["health"]
RUNS = EXAMPLES["runs"]
RUN = EXAMPLES["run"]
RESULTS = EXAMPLES["results"]
SUMMARIES = EXAMPLES["summaries"]
SERIES = EXAMPLES["series"]
TRENDS = EXAMPLES["trends"]
FACETS = EXAMPLES["facets"]
COMPARISON = EXAMPLES["comparison"]
RECORD = EXAMPLES["record"]
SAMPLES = EXAMPLES["samples"]
LOG = EXAMPLES["log"]
