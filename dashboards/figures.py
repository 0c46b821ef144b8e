"""Answers in, a plotly figure out: `data` and `layout` as plain values, in plotly's own words. Pure.

Plotly's Python classes check every property while they are built, 20 ms for a chart of sixty models; what is built here
is the same for all, so a test has them check it once.

Colours are the light theme's; `layout.meta.tokens` maps each back to its name, so that the page's
script can swap in those of the reader's theme. Every text from outside is escaped: plotly reads tags.
"""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from dashboards import theme, words
from server.schemas import Estimate, Result, Status, Summary

Figure = dict[str, Any]
"""`{"data": [...], "layout": {...}}`."""

ROW_PX = 24
_TICKS = (0.125, 0.25, 0.5, 0.67, 0.8, 1, 1.25, 1.5, 2, 4, 8, 16)
_WIDE_TICKS = (0.0625, 0.125, 0.25, 0.5, 1, 2, 4, 8, 16, 32)
_LEAST_REACH = 1.5
"""The axis shows at least from 1/1.5 to 1.5: noise around 1x shall look like noise."""

_EMULATED = "○ emulated, in no mean"
_CLASSES = {
    "faster": "▲ compiled is faster",
    "same": "≈ cannot be told from 1×",
    "slower": "▼ compiled is slower",
}


@dataclass(frozen=True)
class Whisker:
    """An interval on a log axis with 1x in its middle, as shares of its width."""

    value: float
    low: float
    high: float


def whiskers(estimates: Sequence[Estimate | None]) -> list[Whisker | None]:
    """Return where each estimate lies on one axis that all of them share."""
    reach = math.log(_reach(estimate for estimate in estimates if estimate))

    def share(value: float) -> float:
        return round(0.5 + 0.5 * math.log(value) / reach, 4)

    return [Whisker(share(e.value), *map(share, _ends(e))) if e else None for e in estimates]


def _ends(estimate: Estimate) -> tuple[float, float]:
    """The interval; of a figure that others state without one, the point itself."""
    return estimate.bounds or (estimate.value, estimate.value)


def speedups(results: Sequence[Result], summary: Summary) -> Figure:
    """Return the speedups of one suite and configuration, one row a model, in the order given.

    A point with its interval for what was timed; words for what has no valid time, so that a
    failure never looks like a number; hollow points for emulated rows, which no mean contains.
    """
    colours = theme.light()
    timed = {place: result.speedup for place, result in enumerate(results) if result.speedup and _drawn(result)}
    data: list[dict[str, Any]] = []
    for name, label in _CLASSES.items():
        places = _of_class(results, timed, name, emulated=False)
        data += _points(results, places, timed, colours[name], label)
    for name in _CLASSES:
        places = _of_class(results, timed, name, emulated=True)
        already = any(trace.get("name") == _EMULATED for trace in data)
        data += _points(results, places, timed, colours[name], _EMULATED, hollow=True, listed=not already)
    shown = list(timed.values()) + ([summary.speedup] if summary.speedup else [])
    layout = _layout(results, _reach(shown), colours)
    layout["annotations"] = [
        _words_instead(result, place, colours) for place, result in enumerate(results) if place not in timed
    ]
    layout["shapes"] = [_upright(1, {"color": colours["muted"], "width": 1.5})]
    if summary.speedup:
        layout["annotations"].append(_mean_in_words(summary.speedup, summary.rule, colours))
        layout["shapes"] += _mean_shapes(summary.speedup, colours)
    return {"data": data, "layout": layout}


def sentence(results: Sequence[Result], summary: Summary) -> str:
    """Return what the chart shows, for who cannot see it."""
    timed = [result.speedup.value for result in results if result.speedup and _drawn(result)]
    reach = f", from {words.ratio(min(timed))} to {words.ratio(max(timed))}" if timed else ""
    mean = f"; geometric mean, {summary.rule}, {words.interval(summary.speedup)}" if summary.speedup else ""
    return f"Speedups of {len(timed)} of {len(results)} models of {summary.suite}, {summary.label}{reach}{mean}."


def _drawn(result: Result) -> bool:
    return result.status == Status.PASS and (bool(result.valid) or result.emulated)


def _of_class(results: Sequence[Result], timed: dict[int, Estimate], name: str, *, emulated: bool) -> list[int]:
    return [p for p, speedup in timed.items() if words.verdict(speedup) == name and results[p].emulated == emulated]


def _points(
    results: Sequence[Result],
    places: Sequence[int],
    timed: dict[int, Estimate],
    colour: str,
    label: str,
    hollow: bool = False,
    listed: bool = True,
) -> list[dict[str, Any]]:
    """Two traces: the stems from 1x, and the points with their intervals. `listed`: in the legend."""
    if not places:
        return []
    found = [timed[place] for place in places]
    ends = [(speedup.value, speedup.bounds) for speedup in found]
    stems_x: list[float | None] = []
    stems_y: list[float | None] = []
    for place, speedup in zip(places, found, strict=True):
        stems_x += [1, speedup.value, None]
        stems_y += [place, place, None]
    line = {"color": colour, "width": 1 if hollow else 3, "dash": "dot" if hollow else "solid"}
    stems = {
        "type": "scatter",
        "x": stems_x,
        "y": stems_y,
        "mode": "lines",
        "line": line,
        "hoverinfo": "skip",
        "showlegend": False,
        "opacity": 0.45,
    }
    points = {
        "type": "scatter",
        "x": [speedup.value for speedup in found],
        "y": list(places),
        "mode": "markers",
        "name": label,
        "showlegend": listed,
        "legendgroup": label,
        "marker": {
            "size": 10,
            "symbol": "circle-open" if hollow else "circle",
            "color": colour,
            "line": {"color": colour, "width": 2},
        },
        "error_x": {
            "type": "data",
            "symmetric": False,
            "array": [bounds[1] - value if bounds else None for value, bounds in ends],
            "arrayminus": [value - bounds[0] if bounds else None for value, bounds in ends],
            "color": colour,
            "thickness": 1.5,
            "width": 4,
        },
        "customdata": [[html.escape(_hover(results[place]))] for place in places],
        "hovertemplate": "%{customdata[0]}<extra></extra>",
    }
    return [stems, points]


def _hover(result: Result) -> str:
    assert result.speedup is not None
    times = f"{words.milliseconds(result.eager_s)} → {words.milliseconds(result.compiled_s)} ms"
    samples = "" if result.speedup.n is None else f"n = {result.speedup.n}, "
    return f"{result.model}: {words.interval(result.speedup)}, {samples}{times}"


def _words_instead(result: Result, place: int, colours: dict[str, str]) -> dict[str, Any]:
    quiet = result.status in (Status.WAITING, Status.RUNNING, Status.SKIPPED, Status.MISSING, Status.PASS)
    sign = "" if quiet else "✕ "
    status = result.status.value.replace("_", " ")
    text = sign + status
    if result.status == Status.PASS:
        text += f", {result.invalid_why or result.no_estimate or 'not timed'}"
    elif result.stage and not quiet:
        text += f" in {result.stage.value.replace('_', ' ')}"
    return {
        "x": 0,
        "xref": "paper",
        "xanchor": "left",
        "xshift": 4,
        "name": html.escape(sign + status),
        "y": place,
        "text": html.escape(text if len(text) <= 60 else text[:59] + "…"),
        "showarrow": False,
        "font": {"size": 12, "color": colours["muted" if quiet else "failed"]},
    }


def _upright(x: float, line: dict[str, Any]) -> dict[str, Any]:
    return {"type": "line", "x0": x, "x1": x, "y0": 0, "y1": 1, "yref": "y domain", "line": line, "layer": "below"}


def _mean_shapes(mean: Estimate, colours: dict[str, str]) -> list[dict[str, Any]]:
    """A line, and its interval as a band where it has one."""
    line = _upright(mean.value, {"color": colours["ink"], "width": 1.5, "dash": "dash"})
    if not mean.bounds:
        return [line]
    low, high = mean.bounds
    band = {"type": "rect", "x0": low, "x1": high, "y0": 0, "y1": 1, "yref": "y domain", "layer": "below"}
    return [band | {"fillcolor": colours["muted"], "opacity": 0.2, "line": {"width": 0}}, line]


def _mean_in_words(mean: Estimate, rule: str, colours: dict[str, str]) -> dict[str, Any]:
    return {
        "x": math.log10(mean.value),
        "xanchor": "right" if mean.value > 1 else "left",  # towards the middle: at an edge it would be cut off
        "y": 1,
        "yref": "paper",
        "yanchor": "bottom",
        "text": f"mean {words.ratio(mean.value)}, {rule}",
        "showarrow": False,
        "font": {"size": 12, "color": colours["ink"]},
    }


def _layout(results: Sequence[Result], reach: float, colours: dict[str, str]) -> dict[str, Any]:
    edge = math.log10(reach)
    ticks = [tick for tick in (_TICKS if reach <= 4 else _WIDE_TICKS) if 1 / reach <= tick <= reach]
    return {
        "template": {},  # plotly's own has twenty colours and says nothing that is not said here
        "height": 110 + ROW_PX * max(1, len(results)),
        "margin": {"l": 8, "r": 16, "t": 62, "b": 40},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {"family": "system-ui, sans-serif", "size": 13, "color": colours["ink"]},
        "hoverlabel": {"bgcolor": colours["panel"], "bordercolor": colours["line"], "font": {"color": colours["ink"]}},
        "legend": {"orientation": "h", "x": 0, "xanchor": "left", "y": 0.995, "yanchor": "top", "yref": "container"},
        "meta": {"tokens": {colours[name]: name for name in _TOKENS}},
        "dragmode": False,
        "xaxis": {
            "type": "log",
            "range": [-edge, edge],
            "tickvals": ticks,
            "ticktext": [f"{tick:g}×" for tick in ticks],
            "tickangle": 0,
            "gridcolor": colours["line"],
            "zeroline": False,
            "fixedrange": True,
        },
        "yaxis": {
            "range": [len(results) - 0.4, -0.6],
            "tickvals": list(range(len(results))),
            "ticktext": [html.escape(_short(result.model)) for result in results],
            "automargin": True,
            "showgrid": False,
            "zeroline": False,
            "fixedrange": True,
            "ticklabelstandoff": 6,
        },
    }


_TOKENS = ("ink", "muted", "line", "panel", "faster", "slower", "same", "failed")


def _short(name: str) -> str:
    return name if len(name) <= 28 else name[:27] + "…"


def _reach(estimates: Iterable[Estimate]) -> float:
    """Return how far from 1x the axis must go, to both sides alike."""
    ends = [_ends(estimate) for estimate in estimates]
    farthest = max((max(high, 1 / low) for low, high in ends if low > 0), default=_LEAST_REACH)
    return max(_LEAST_REACH, farthest * 1.08)
