"""Numbers and moments as a reader sees them. Nothing is compared after it was rounded."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from harness.beside import Compared
from harness.reference import Quantity, Read
from server import schemas

NONE = "–"
"""Absent: not zero, not unknown by accident."""

READ = {
    Read.PRIMARY: "read in its source",
    Read.SECONDARY: "read at second hand",
    Read.INFERRED: "inferred",
}
"""Where a published figure was read."""


def ratio(number: float | None, decimals: int = 2) -> str:
    return NONE if number is None else f"{number:.{decimals}f}×"


def interval(estimate: schemas.Estimate) -> str:
    """Return `1.25× (1.23–1.27)`, or `1.25×` of a figure that others state without an interval."""
    return f"{value(estimate)} {bounds(estimate)}".rstrip()


def value(estimate: schemas.Estimate) -> str:
    return ratio(estimate.value, _decimals(estimate))


def bounds(estimate: schemas.Estimate) -> str:
    if estimate.bounds is None:
        return ""
    decimals = _decimals(estimate)
    low, high = estimate.bounds
    return f"({low:.{decimals}f}–{high:.{decimals}f})"


def _decimals(estimate: schemas.Estimate) -> int:
    """A third decimal where the second would hide the interval."""
    return 3 if estimate.bounds and estimate.bounds[1] - estimate.bounds[0] < 0.02 else 2


def verdict(estimate: schemas.Estimate) -> str:
    """Return `faster`, `slower` or `same`: whether the interval lies on one side of 1, or without one the value."""
    low, high = estimate.bounds or (estimate.value, estimate.value)
    if low > 1:
        return "faster"
    return "slower" if high < 1 else "same"


def percent(share: float | None) -> str:
    if share is None:
        return NONE
    text = f"{100 * share:.1f}"
    return f"{text.removesuffix('.0')} %"


def pass_rate(rate: schemas.PassRate) -> str:
    """Return `93.3 % (70.2–98.8)`."""
    if rate.share is None or rate.low is None or rate.high is None:
        return NONE
    return f"{percent(rate.share)} ({100 * rate.low:.0f}–{100 * rate.high:.0f})"


def ours(compared: Compared) -> str:
    """Return our figure beside a published one, or why there is none."""
    if compared.ours is None:
        return f"none ({compared.why_not})"
    return percent(compared.ours) if compared.published.of == Quantity.PASS_RATE else ratio(compared.ours)


def milliseconds(value_s: float | None) -> str:
    """Return milliseconds with three significant digits: `12.3`, `1 230`."""
    return NONE if value_s is None else _three(value_s * 1000)


def seconds(value_s: float | None) -> str:
    return NONE if value_s is None else _three(value_s)


def whole(number: float | None) -> str:
    return NONE if number is None else _spaced(f"{number:.0f}")


def gibibytes(value: int) -> str:
    return f"{value / 2**30:.1f} GiB"


def moment(value: datetime) -> str:
    return f"{value.astimezone(UTC):%-d %b %Y, %H:%M} UTC"


def span(length: timedelta) -> str:
    """Return a length of time in its largest unit that counts two or more: `90 s`, `3 h`."""
    value = max(0, int(length.total_seconds()))
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if value >= 2 * size:
            return f"{value // size} {unit}"
    return f"{value} s"


def plural(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _three(value: float) -> str:
    if value >= 100:
        return _spaced(f"{value:.0f}")
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}" if value >= 0.1 else f"{value:.2g}"


def _spaced(digits: str) -> str:
    return f"{int(digits):,}".replace(",", "\u202f")
