"""The app that is served: the API, the pages and their files."""

from __future__ import annotations

import gzip
import json
import re
from importlib.resources import files

import plotly
import pytest

from dashboards import rendering


@pytest.mark.parametrize(
    ("path", "kind"),
    [("page.css", "text/css"), ("theme.css", "text/css"), ("plotly.css", "text/css"), ("page.js", "text/javascript")],
)
def test_static_files(client, path, kind):
    """Style and script come with their types, without which the browser refuses them."""
    answer = client.get(f"/static/{path}")

    assert 200 == answer.status_code
    assert answer.headers["content-type"].startswith(kind)


def test_plotly_comes_from_the_installed_package(client):
    """plotly.min.js is the package's own, compressed where asked for, kept for ever."""
    own = files("plotly").joinpath("package_data/plotly.min.js").read_bytes()
    path = f"/static/{rendering.PLOTLY_FILE}"
    plain = client.get(path, headers={"accept-encoding": "identity"})
    zipped = client.get(path)

    assert own == plain.content == zipped.content
    assert "gzip" == zipped.headers["content-encoding"]
    assert int(zipped.headers["content-length"]) == len(gzip.compress(own, 6))
    assert "immutable" in plain.headers["cache-control"]
    assert plotly.__version__ in path


def test_plotly_rules_are_the_packages(client):
    """The copy of plotly's style rules, which it may not insert itself, equals those in its script."""
    script = files("plotly").joinpath("package_data/plotly.min.js").read_text(encoding="utf-8")
    start = script.index('={"X,X div":') + 2
    body = script[start : script.index("}", start)]
    rules = re.findall(r"""(?:"([^"]+)"|(\w)):(?:"([^"]*)"|'([^']*)')""", body)
    expected = [
        (quoted or bare).replace("X", ".js-plotly-plot .plotly").replace("Y", ".plotly-notifier") + f"{{{one or two}}}"
        for quoted, bare, one, two in rules
    ]

    assert len(expected) > 50
    assert expected == client.get("/static/plotly.css").text.splitlines()[1:]


def test_plotly_finds_what_it_would_insert(client, finished):
    """The page has the elements by which plotly, and a map library in it, see that their rules are there."""
    script = files("plotly").joinpath("package_data/plotly.min.js").read_text(encoding="utf-8")
    (map_id,) = set(re.findall(r'getElementById\("([0-9a-f]{64})"\)', script))
    body = client.get("/runs/latest").text

    assert f'id="{map_id}"' in body
    assert 'id="plotly.js-style-global" class="no-inline-styles"' in body


def test_figures_travel_as_data(client, finished):
    """Each configuration has a figure as JSON that no reader of HTML could end early."""
    found = re.findall(r'<script type="application/json"[^>]*>(.*?)</script>', client.get("/runs/latest").text)

    assert 2 == len(found)
    assert all("<" not in text for text in found)
    assert all({"data", "layout"} <= set(json.loads(text)) for text in found)


@pytest.mark.parametrize(
    ("path", "status", "kind"),
    [
        ("/nowhere", 404, "text/html"),
        ("/runs/nope", 404, "text/html"),
        ("/runs?page=x", 422, "text/html"),
        ("/api/v1/nowhere", 404, "application/json"),
        ("/api/v1/runs/nope", 404, "application/json"),
        ("/api/v1/runs?limit=x", 422, "application/json"),
    ],
)
def test_errors_speak_the_askers_language(client, path, status, kind):
    """A reader gets a page, a program gets JSON."""
    answer = client.get(path)

    assert (status, True) == (answer.status_code, answer.headers["content-type"].startswith(kind))
