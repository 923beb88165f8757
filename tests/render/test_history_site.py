"""Pages about a history in a real browser: drawn charts, no network requests, accessibility."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from browsing import ARGUMENTS, NO_PROGRAM, PROGRAM

from tests.history.test_story import NOVEMBER, a_run
from vani import centre
from vani.centre.history.runs import write
from vani.centre.history.runs.store import Store

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed (the extra `test` has it)")
pytestmark = [pytest.mark.slow, pytest.mark.skipif(PROGRAM is None, reason=NO_PROGRAM)]

HOSTILE = "</script><script>document.title='broken'</script>\n\"'"
PAGES = {
    "/": ["days", "months"],
    "/ranking": [],
    "/application?name=app": ["months", "runs"],
    "/targets": ["targets"],
    "/letter?name=app&user=u1": [],
    f"/run?id={1:064x}": [],
}


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    place = tmp_path_factory.mktemp("site") / "h.sqlite"
    times = "[" + ", ".join(f"[{target}, 1.0, {100.0 if target == 3 else 1.0}, 1e6]" for target in range(8)) + "]"
    runs = [a_run(n, submitted=NOVEMBER + n * 86400 / 2 + 60, target_times=times) for n in range(80)]
    runs += [a_run(500, application=HOSTILE, user=HOSTILE, waiting_s=1e5, submitted=NOVEMBER + 40 * 86400)]
    with Store(place).writing(make=True) as connection:
        write.add_runs(connection, runs)
    with centre.history_server(db=place, port=0, open=True, clock=lambda: datetime(2026, 12, 9, tzinfo=UTC)) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server.url.rstrip("/")
        server.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with sync_api.sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=PROGRAM, args=list(ARGUMENTS))
        yield chromium
        chromium.close()


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (1280, "dark"), (390, "light")])
@pytest.mark.parametrize("path", PAGES)
def test_a_page_is_drawn_and_readable(browser, url, path, width, scheme):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    context = browser.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme)
    page = context.new_page()
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text) if message.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", lambda request: complaints.append(request.url) if not request.url.startswith((url, "data:")) else None)
    page.goto(url + path)
    page.wait_for_selector("html[data-drawn=all]")
    assert complaints == []
    assert page.title().endswith("Vani history")
    for kind in PAGES[path]:
        assert page.locator(f'figure[data-plot="{kind}"] svg .mark-symbol path, figure[data-plot="{kind}"] svg .mark-rect path').count() > 0
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert [(found["id"], [node["target"] for node in found["nodes"]]) for found in axe.run(page).response["violations"]] == []
    context.close()


def test_site_links_other_days_and_applications(browser, url):
    page = browser.new_page()
    page.goto(url + "/")
    page.fill("input[name=since]", "2026-11-02")
    page.fill("input[name=until]", "2026-11-03")
    page.click("main form button")
    assert "since=2026-11-02&until=2026-11-03" in page.url
    assert page.inner_text(".facts dd") == "4"
    page.click("text=app >> nth=1")
    page.click("tbody th a >> nth=0")
    page.wait_for_load_state()
    assert page.inner_text("h1").startswith(("app", "A run of app"))
    page.close()
