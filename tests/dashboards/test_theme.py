"""The colours can be read in both themes."""

from __future__ import annotations

import pytest

from dashboards import theme

THEMES = {"light": theme.light(), "dark": theme.dark()}


def luminance(colour: str) -> float:
    """Relative luminance of WCAG 2."""
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def test_contrast_of_black_on_white():
    """The formula gives 21 for black on white, as WCAG says."""
    assert 21 == pytest.approx(contrast("#000000", "#ffffff"))


def test_themes_have_the_same_names():
    """Every colour has a light and a dark form."""
    assert set(theme.light()) == set(theme.dark())


@pytest.mark.parametrize("name", THEMES)
@pytest.mark.parametrize("step", range(1, 10))
def test_text_on_steps(name, step):
    """Text on each of the nine steps has a contrast of 4.5 or more."""
    colours = THEMES[name]

    assert contrast(colours[f"step-{step}"], colours[f"step-{step}-ink"]) >= 4.5


@pytest.mark.parametrize("name", THEMES)
@pytest.mark.parametrize("ink", ["ink", "muted", "link", "failed", "faster", "slower"])
@pytest.mark.parametrize("ground", ["paper", "panel"])
def test_text_on_grounds(name, ink, ground):
    """Every colour of text has a contrast of 4.5 or more on every ground."""
    assert contrast(THEMES[name][ink], THEMES[name][ground]) >= 4.5
