"""Figures are pure: answers in, plotly figure out. Plotly's own classes check every property of them here."""

from __future__ import annotations

import math
import re

import plotly.graph_objects as go
import pytest

from dashboards import figures, theme
from harness import stats
from harness.record import Derived, Outcome
from server.queries import Queries
from server.schemas import Estimate
from tests.server import factory


@pytest.fixture
def drawn(store):
    """Draw one run whose cases end as the records say."""

    def draw(*records, run=None):
        run = run or factory.make_run([record.case for record in records])
        store.open(run)
        for record in records:
            store.record(record)
        queries = Queries(store._engine)
        return go.Figure(figures.speedups(queries.results(), queries.run().summaries[0]))

    return draw


def marks(figure):
    return {trace.name: trace for trace in figure.data if trace.mode == "markers"}


def test_speedups_have_their_intervals(drawn):
    """A point lies at its speedup, with whiskers to the ends of its interval."""
    figure = drawn(factory.make_record(factory.make_case(), speedup=1.5))

    (points,) = marks(figure).values()
    assert (1.5,) == points.x
    assert 1.5 * 1.015 == pytest.approx(1.5 + points.error_x.array[0])
    assert 1.5 * 0.985 == pytest.approx(1.5 - points.error_x.arrayminus[0])


def test_stated_speedups_have_no_whiskers(drawn):
    """Figures of others are points without whiskers, and so is their mean: no interval is made up."""
    derived = Derived(valid=True, speedup=stats.Estimate(1.5, None, None, None, stats.STATED))
    figure = drawn(factory.make_record(factory.make_case(), derived=derived))

    (points,) = marks(figure).values()
    assert ((1.5,), (None,), (None,)) == (points.x, tuple(points.error_x.array), tuple(points.error_x.arrayminus))
    assert "n = " not in points.customdata[0][0]
    assert not [shape for shape in figure.layout.shapes if shape.type == "rect"]


def test_axis_is_logarithmic_with_one_in_its_middle(drawn):
    """The axis reaches as far below 1 as above, on a log scale, with ticks that read as ratios."""
    axis = drawn(factory.make_record(factory.make_case(), speedup=1.9)).layout.xaxis

    assert "log" == axis.type
    assert axis.range[0] == -axis.range[1]
    assert axis.range[1] > math.log10(1.9)
    assert ("0.5×", "0.67×", "0.8×", "1×", "1.25×", "1.5×", "2×") == axis.ticktext


def test_failures_are_words_not_numbers(drawn):
    """A failure has words in its row, and no point anywhere."""
    cases = [factory.make_case("a"), factory.make_case("b")]
    figure = drawn(factory.make_record(cases[0]), factory.make_record(cases[1], Outcome.TIMEOUT))

    assert [0] == [place for trace in marks(figure).values() for place in trace.y]
    assert "✕ timeout in compile" in [words.text for words in figure.layout.annotations if words.y == 1]


def test_invalid_times_of_a_failure_are_not_drawn(drawn):
    """A case that failed accuracy keeps its times in the record; the chart shows the failure."""
    record = factory.make_record(factory.make_case())
    failed = record.model_copy(
        update={"outcome": Outcome.FAIL_ACCURACY, "derived": record.derived.model_copy(update={"valid": False})}
    )

    assert {} == marks(drawn(failed))


def test_emulated_rows_are_hollow_and_in_no_mean(drawn):
    """Emulated rows are marked by shape and name, and no mean is drawn for them."""
    figure = drawn(factory.make_record(factory.make_case(precision="amp"), speedup=8.9, emulated=True))

    assert "circle-open" == marks(figure)["○ emulated, in no mean"].marker.symbol
    assert not [words for words in figure.layout.annotations if "mean" in words.text]


def test_classes_are_told_apart_by_interval(drawn):
    """Faster, slower and cannot-tell are decided by the interval, and differ in name and colour."""
    cases = [factory.make_case(name) for name in "abc"]
    speeds = (1.5, 0.7, 1.001)
    figure = drawn(*(factory.make_record(c, speedup=s) for c, s in zip(cases, speeds, strict=True)))

    found = {name[0]: (trace.x[0], trace.marker.color) for name, trace in marks(figure).items()}
    colours = theme.light()
    assert {
        "▲": (1.5, colours["faster"]),
        "▼": (0.7, colours["slower"]),
        "≈": (1.001, colours["same"]),
    } == found


def test_names_are_escaped(drawn):
    """Plotly reads tags in its texts: names and error texts arrive escaped."""
    case = factory.make_case("<a href='x'>m</a>")
    other = factory.make_case("<b>n</b>")
    untimed = factory.make_record(other, speedup=None)
    doubt = untimed.derived.model_copy(update={"invalid_why": "<i>why</i>"})
    figure = drawn(factory.make_record(case), untimed.model_copy(update={"derived": doubt}))

    assert "<" not in "".join(figure.layout.yaxis.ticktext)
    assert "<" not in "".join(words.text for words in figure.layout.annotations)
    assert "<" not in marks(figure)["▲ compiled is faster"].customdata[0][0]


def test_figure_names_its_colours(drawn):
    """Each colour of a figure is one of the theme's, so that the script can swap all of them."""
    failed = factory.make_record(factory.make_case("b"), Outcome.CRASH)
    figure = drawn(factory.make_record(factory.make_case(), speedup=1.5), failed)

    tokens = figure.layout.meta["tokens"]
    assert set(re.findall("#[0-9a-f]{6}", figure.to_json())) == set(tokens)
    assert set(tokens.values()) <= set(theme.dark())


def test_sentence_for_who_cannot_see(store, drawn):
    """A chart has a sentence with its range and its mean."""
    drawn(factory.make_record(factory.make_case(), speedup=1.5))
    queries = Queries(store._engine)

    sentence = figures.sentence(queries.results(), queries.run().summaries[0])
    assert sentence.startswith("Speedups of 1 of 1 models of toy, inference fp32, from 1.50× to 1.50×; geometric mean")


def test_whiskers_share_an_axis():
    """Tiles are drawn on one axis with 1x in its middle: equal ratios up and down are equally far away."""
    up = Estimate(value=2, low=1.9, high=2.1)
    down = Estimate(value=0.5, low=1 / 2.1, high=1 / 1.9)

    first, nothing, second = figures.whiskers([up, None, down])

    assert nothing is None
    assert 1 == pytest.approx(first.value + second.value, abs=1e-3)
    assert 0.5 < first.low < first.value < first.high < 1
