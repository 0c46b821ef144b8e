"""The pages in a real browser: charts are drawn, nothing is refused, new rows arrive by themselves."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from bench.serve import start_in_background
from harness.record import Outcome, Stage, now
from server.store import Store
from tests.browser.provide import REMEDY, found
from tests.server import factory

pytestmark = pytest.mark.browser

ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
PATHS = ("/", "/runs", "/runs/latest", "/methods")
PATIENCE_MS = 20_000
"""The machine may be busy measuring; a chart takes about a second on an idle one."""


@dataclass
class Site:
    """A dashboard on a database of its own, and a page that remembers every complaint of the browser."""

    store: Store
    address: str
    complaints: list[str] = field(default_factory=list)

    def watch(self, page: Page) -> Page:
        page.set_default_timeout(PATIENCE_MS)
        page.on("console", lambda message: self.complaints.append(message.text) if message.type != "log" else None)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("requestfailed", lambda request: self.complaints.append(f"failed: {request.url}"))
        page.on("request", lambda request: self._here(request.url))
        return page

    def _here(self, url: str) -> None:
        if not url.startswith((self.address, "data:")):
            self.complaints.append(f"asked elsewhere: {url}")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    path = found()
    if path is None:
        pytest.fail(REMEDY)
    expect.set_options(timeout=PATIENCE_MS)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(ARGUMENTS))
        yield browser
        browser.close()


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    url = f"sqlite:///{tmp_path}/bench.db"
    process, address = start_in_background(url, 0)
    store = Store.connect(url)
    yield Site(store, address)
    store.dispose()
    process.terminate()
    process.wait(20)


@pytest.fixture
def finished(site: Site):
    """Ten models in two configurations: faster, slower, failed, skipped, emulated; one has a hostile name."""
    names = [f"model_{number}" for number in range(9)] + ["<img src=x onerror=alert(1)>" * 3]
    cases = [factory.make_case(name, "timm", precision) for precision in ("fp32", "amp") for name in names]
    run = factory.make_run(cases, skip={"model_7": "over the time limit"})
    site.store.open(run)
    for number, planned in enumerate(run.plan):
        emulated = planned.case.precision == "amp"
        outcome = Outcome.SKIPPED if planned.skip else Outcome.TIMEOUT if planned.case.model == "model_3" else "pass"
        speedup = (8 if emulated else 0.8) + number / 10
        site.store.record(factory.make_record(planned.case, outcome, speedup, emulated=emulated))
    site.store.close(factory.make_end())
    return run


def test_chart_is_drawn(browser, site, finished):
    """Each configuration has its chart: a point for each timed model, words for the others, and no complaint."""
    page = site.watch(browser.new_page())
    page.goto(f"{site.address}runs/latest")

    points = page.locator("#chart-0 svg .scatterlayer .points path.point")
    expect(points).to_have_count(8)
    expect(page.locator("#chart-1 svg .scatterlayer .points path.point")).to_have_count(8)
    expect(page.locator("#chart-0 svg .annotation-text", has_text="timeout")).to_have_count(1)
    assert page.locator("#chart-0 svg").first.bounding_box()["width"] > 300
    page.close()
    assert [] == site.complaints


def test_chart_takes_the_colours_of_the_theme(browser, site, finished):
    """In the dark theme a chart is drawn in the dark theme's colours, and follows when the theme changes."""
    page = site.watch(browser.new_page(color_scheme="dark"))
    page.goto(f"{site.address}runs/latest")
    ink = page.locator("#chart-0 svg .ytick text").first

    expect(ink).to_have_css("fill", "rgb(232, 235, 240)")
    page.emulate_media(color_scheme="light")
    expect(ink).to_have_css("fill", "rgb(27, 31, 38)")
    page.close()
    assert [] == site.complaints


def test_rows_arrive_without_reload(browser, site):
    """While a run goes on its page shows stage and results as they are stored, then the end, and stops asking."""
    run = factory.make_run(2, at=now() - timedelta(minutes=1))
    site.store.open(run)
    page = site.watch(browser.new_page())
    page.goto(f"{site.address}runs/latest")
    page.evaluate("window.untouched = true")
    row = page.locator(f"#row-{run.plan[0].case.id}")
    expect(row).to_contain_text("waiting")

    start = factory.make_start(run.plan[0].case, at=now())
    site.store.start(start)
    site.store.stage(start, Stage.COMPILE)
    expect(page.locator(".going")).to_contain_text("toy/model_0 inference fp32, compile")
    expect(row).to_contain_text("going on")

    site.store.record(factory.make_record(run.plan[0].case, speedup=1.5, at=now()))
    expect(row).to_contain_text("1.50×")
    expect(page.locator("#chart-0 svg .scatterlayer .points path.point")).to_have_count(1)

    site.store.record(factory.make_record(run.plan[1].case, Outcome.CRASH, at=now()))
    site.store.close(factory.make_end(at=now()))
    expect(page.locator("h1")).to_have_text("1 of 2 passed")
    assert page.evaluate("window.untouched")
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    page.wait_for_timeout(2500)
    page.close()
    assert [] == asked
    assert [] == site.complaints


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [320, 1280])
def test_no_page_scrolls_sideways(browser, site, finished, width, scheme):
    """No page is wider than its window, in both themes, on a phone and on a desk."""
    page = site.watch(browser.new_page(viewport={"width": width, "height": 800}, color_scheme=scheme))
    for path in PATHS:
        page.goto(site.address.rstrip("/") + path)
        page.wait_for_load_state("networkidle")
        assert width == page.evaluate("document.documentElement.scrollWidth"), path
        paper = "rgb(255, 255, 255)" if scheme == "light" else "rgb(20, 23, 28)"
        expect(page.locator("body")).to_have_css("background-color", paper)
    page.close()
    assert [] == site.complaints


def test_without_scripts_the_table_is_complete(browser, site, finished):
    """With scripts off the page still has every row, and sorts by its links."""
    page = browser.new_page(java_script_enabled=False)
    page.goto(f"{site.address}runs/latest")
    page.locator("thead a", has_text="Speedup").click()

    rows = page.locator("table.results tbody tr")
    expect(rows).to_have_count(20)
    expect(rows.first).to_contain_text("▲")
    expect(rows.last).to_contain_text("–")
    page.close()


def test_nothing_ran_yet(browser, site):
    """An empty dashboard is a page without complaints, with the command that fills it."""
    page = site.watch(browser.new_page())
    page.goto(site.address)

    expect(page.locator("pre")).to_have_text("bench run --suite toy")
    page.close()
    assert [] == site.complaints
