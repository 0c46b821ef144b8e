"""Text of a comparison: what a reader sees first, and nothing that could steer a terminal or a page."""

from __future__ import annotations

import pytest

from harness.compare import WITHIN_ONE_LAUNCH, Comparison, Refused, compare
from harness.report_compare import Side, counts_line, lines, nothing_common, refusal, shown
from harness.report_markdown import COLUMNS, markdown
from tests.harness.points import make_failure, make_point
from tests.server.factory import make_environment

BASE, HEAD = Side("0194a3f2", "2026-08-12 01:00 UTC, cpu, torch 2.14.1"), Side("0194a3f3", "torch \x1b[2J2.15.0")


def compared(base, head, **options) -> Comparison:
    found = compare(base, head, **options)
    assert isinstance(found, Comparison)
    return found


@pytest.fixture
def comparison() -> Comparison:
    """One case of every kind."""
    base = [
        make_point("same", width=0.002),
        make_point("slower"),
        make_point("both", width=0.002),
        make_point("broken"),
        make_point("gone"),
        make_point("unsure", width=0.04),
        make_point("better"),
    ]
    head = [
        make_point("same", width=0.002, compile_wall_s=41.0),
        make_point("slower", 1.3, graph_breaks=3, compiled_peak_bytes=200 << 20),
        make_point("both", width=0.002, eager_s=0.04),
        make_failure("broken"),
        make_point("unsure", width=0.04),
        make_point("better", 1.5),
        make_point("new|x\x1b[1m"),
    ]
    environments = make_environment(), make_environment(versions={"torch": "2.15.0"})
    return compared(base, head, environments=environments, families={})


def test_first_lines(comparison):
    """First come the sides, then what differs between them, then the counts of all verdicts."""
    found = lines(comparison, BASE, HEAD)

    assert "base  0194a3f2  2026-08-12 01:00 UTC, cpu, torch 2.14.1" == found[0]
    assert "head  0194a3f3  torch ?[2J2.15.0" == found[1]
    assert found[2].startswith("differs: versions.torch 2.14.1 -> 2.15.0; versions.torchvision 0.29.1 -> unknown")
    assert (
        "regressed 1, improved 1, same 2, inconclusive 1, status changed 1, only left 1, only right 1"
        == found[3]
        == counts_line(comparison)
    )
    assert WITHIN_ONE_LAUNCH == found[-1]


def test_rows(comparison):
    """What needs a look comes first; unchanged cases are counted, unless both sides moved or they are asked for."""
    some, every = shown(comparison), shown(comparison, unchanged=True)

    names = ["slower", "broken", "better", "unsure", "both", "gone", "new|x\x1b[1m"]
    assert names == [each.point.model for each in some]
    assert {"same"} == {each.point.model for each in every} - {*names}


def row_of(comparison, name):
    (row,) = (line for line in lines(comparison, BASE, HEAD, unchanged=True) if f"toy/{name} " in line)
    return " ".join(row.split())


@pytest.mark.parametrize(
    ("name", "row"),
    [
        (
            "slower",
            "regressed toy/slower inference fp32 1.40x [1.39, 1.41] -> 1.30x [1.29, 1.31] -7.1 % [-8.4, -5.8], "
            "floor 2 % eager 20.0 -> 20.0 ms compiled 14.3 -> 15.4 ms peak memory 100 MiB -> 200 MiB (worse) "
            "graph breaks 0 -> 3 (worse)",
        ),
        ("broken", "status changed toy/broken inference fp32 pass -> fail_to_run: no such operator (worse)"),
        (
            "same",
            "same toy/same inference fp32 1.40x [1.40, 1.40] -> 1.40x [1.40, 1.40] 0.0 % [-0.3, +0.3], floor 2 % "
            "eager 20.0 -> 20.0 ms compiled 14.3 -> 14.3 ms compile time 20.0 s -> 41.0 s (worse)",
        ),
        ("gone", "only left toy/gone inference fp32 pass"),
        ("new|x?[1m", "only right toy/new|x?[1m inference fp32 pass"),
    ],
)
def test_row(comparison, name, row):
    """A row says the verdict, then its figures with interval and floor, then what else changed."""
    assert row == row_of(comparison, name)


def test_both_sides_slower(comparison):
    """Where both sides are slower the row says where to look."""
    assert row_of(comparison, "both").endswith("both sides slower: look at the host and the libraries first")


def test_reasons():
    """What cannot be told says why, and a figure without an interval is marked."""
    base = [make_point("a"), make_point("b", speedup_low=None)]
    head = [make_point("a", valid=False, text="recompiled \x07"), make_point("b")]
    found = compared(base, head)

    assert "no speedup to compare: the head is not valid: recompiled ?" in row_of(found, "a")
    assert "0.0 % (no interval), floor 2 %" in row_of(found, "b")


def test_metrics_and_means(comparison):
    """Below the rows each metric that moved is counted, and the means over the common models have both intervals."""
    text = "\n".join(lines(comparison, BASE, HEAD))

    assert "  compile time: 1 worse, 4 same, 1 absent" in text
    assert "toy inference fp32: geometric mean 1.40x [1.39, 1.41] -> 1.40x [1.39, 1.41] over the 5 models valid" in text
    assert "these models [-1.3, +1.1]; models like these: no interval (5 families, at least 6 are needed)" in text
    assert "left out: broken (fail_to_run in the head), gone (only in the base), new|x?[1m (only in the head)" in text


def test_refusal():
    """A refusal names what is in the way and how to compare nevertheless."""
    environments = make_environment(), make_environment(cpu="Arm")
    with_fields, without = (
        compare([make_point(hard="x")], [make_point(hard="y")], environments=given) for given in (environments, None)
    )
    assert isinstance(with_fields, Refused)
    assert isinstance(without, Refused)

    assert "cpu AMD EPYC 7R13 -> Arm" in refusal(with_fields)
    assert "fingerprint x -> fingerprint y" in refusal(without)
    assert "--across" in refusal(without)


def test_nothing_common():
    """Sides without a common case are told how many each has, and about `--across` where it is not yet asked for."""
    assert "the base has 3, the head 4" in nothing_common(3, 4, across=False)
    assert "--across" in nothing_common(3, 4, across=False)
    assert "--across" not in nothing_common(3, 4, across=True)


def test_markdown(comparison):
    """Markdown is a sentence of counts, a table of the same rows, the means and the caveat; names are text."""
    text = markdown(comparison, BASE, HEAD)
    table = [line for line in text.splitlines() if line.startswith("| ")]

    assert text.startswith("**0194a3f2 → 0194a3f3**: regressed 1, improved 1, ")
    assert len(shown(comparison)) + 2 == len(table)
    assert {len(COLUMNS) + 1} == {line.replace("\\|", "").count("|") for line in table}
    assert table[2].startswith(
        "| toy/slower inference fp32 | **regressed** | 1.40x [1.39, 1.41] → 1.30x [1.29, 1.31] | -7.1 %"
    )
    assert "toy/new\\|x?\\[1m inference fp32" in text
    assert text.endswith(WITHIN_ONE_LAUNCH)


def test_markdown_without_rows():
    """When nothing changed there is no empty table."""
    text = markdown(compared([make_point(width=0.001)], [make_point(width=0.001)]), BASE, HEAD)

    assert "|" not in text
    assert "same 1" in text
