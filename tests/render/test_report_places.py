"""The page in the places where it is read: on two screens, without scripts, on a phone."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from browsing import ARGUMENTS, NO_PROGRAM, PROGRAM, open_page, unfold
from report_inputs import ROOT, TRACES, golden, hostile, inputs_of, seconds_like

import vani
from vani.render.report.page import to_html as written
from vani.schema.timeline import HeatMap, HeatRow, ProcessTotals

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed (the extra `test` has it)")
pytestmark = pytest.mark.skipif(PROGRAM is None, reason=NO_PROGRAM)

SIX = [
    "examples/coupled",
    *(
        pytest.param(f"tests/data/traces/{name}", marks=pytest.mark.slow)
        for name in (
            "v3-cm1like-16r",
            "v2-cm1like-8r",
            "v3-ckpt-then-restart-8r",
            "v3-ior-ssf-hdf5-4r",
            "v3-netcdf-pnetcdf-4r",
        )
    ),
    pytest.param("tests/data/darshan/v3-ior-ssf-posix-8r.darshan", marks=pytest.mark.slow),
]
"""A workflow, a run with nothing to do, an older Recorder, checkpoints, two libraries, and Darshan."""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with sync_api.sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=PROGRAM, args=list(ARGUMENTS))
        yield chromium
        chromium.close()


@pytest.fixture
def opened(browser: Any) -> Iterator[Callable[..., Any]]:
    pages = []

    def opened_page(path: Path, width: int = 1280, scheme: str = "light", **options: Any) -> Any:
        pages.append(open_page(browser, path, width, scheme, **options))
        return pages[-1]

    yield opened_page
    for page in pages:
        page.context.close()


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The page about a real trace."""
    folder = tmp_path_factory.mktemp("places")

    def report(name: str, system: str | None = "generic-lustre") -> Path:
        trace = ROOT / name if "/" in name else TRACES / name
        path = folder / f"{trace.name}.{system}.html"
        if not path.exists():
            (folder / "store").mkdir(exist_ok=True)
            path.write_text(vani.report(trace, system=system, store=folder / "store"))
        return path

    return report


def wait_until(page: Any, holds: str) -> None:
    """Playwright's own waiting evaluates text as code, which the page forbids."""
    for _ in range(100):
        if page.evaluate(holds):
            return
        page.wait_for_timeout(50)
    raise AssertionError(holds)


# --- two screens -----------------------------------------------------------------------------------------

THREE = ("vani/demo/ior-shared-file-8r", "tests/data/darshan/v3-ior-ssf-posix-8r.darshan", "examples/coupled")
"""A trace of one program, a Darshan log, and a workflow."""


@pytest.mark.parametrize(("width", "screens"), [(1280, 2), (390, 4)])
@pytest.mark.parametrize("name", THREE)
@pytest.mark.sampled(2)
def test_a_page_opens_with_two_screens_and_at_most_700_words(reports, opened, name, width, screens):
    page = opened(reports(name), width)
    assert page.evaluate("document.documentElement.scrollHeight") <= screens * 800
    words = page.evaluate("document.body.innerText")
    assert len(words.split()) <= 700
    # The cause, the command or line to paste, the picture over time, and the files that matter.
    assert page.locator("#h-verdict").is_visible() and "Why" in words
    assert page.locator(".todo pre").first.is_visible()
    assert page.locator("figure.first").get_by_text("over time").is_visible()
    assert 1 <= page.locator(".first-files tbody tr").count() <= 10
    assert page.complaints == []
    if folder := os.environ.get("SCREENSHOTS"):
        page.screenshot(path=Path(folder) / f"{Path(name).name}-{width}.png", full_page=True)


@pytest.mark.parametrize("name", THREE)
@pytest.mark.sampled(1)
def test_axe_finds_nothing_on_a_page_as_it_opens(reports, opened, name):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe-playwright-python is not installed")
    # The last rule compares names with visible labels; axe runs it only when it is named.
    options = {"rules": {"label-content-name-mismatch": {"enabled": True}}}
    found = axe.Axe().run(opened(reports(name), 1280), options=options).response["violations"]
    assert [(one["id"], [node["html"][:200] for node in one["nodes"][:3]]) for one in found] == []


def test_the_longest_names_still_open_with_few_screens(tmp_path, opened):
    path = tmp_path / "hostile.html"
    path.write_text(written(inputs_of(*hostile(50))))
    assert opened(path).evaluate("document.documentElement.scrollHeight") <= 4 * 800


@pytest.mark.parametrize("width", [1280, 390])
def test_page_without_actions_opens_each_section_with_its_plots(reports, opened, width):
    page = opened(reports("v3-cm1like-16r"), width)
    assert page.get_by_role("heading", name="Nothing needs to be done").is_visible()
    assert "31.5 MB written" in page.locator("#files summary").first.inner_text()
    page.locator("#time summary").first.click()
    page.wait_for_selector("figure[data-plot=heat-map][data-drawn] svg")
    assert page.complaints == []


@pytest.mark.slow
def test_remarks_are_folded_to_one_line_each(reports, opened):
    # Without a machine, rules have no rate by which a change would gain almost nothing.
    page = opened(reports("v3-cm1like-16r", system=None))
    page.locator("#advice > details > summary").click()
    lines = page.locator("details.advice.line")
    assert [text.split()[-1] for text in lines.all_inner_texts()] == ["POS004", "POS002", "POS001", "POS001"]
    assert all(lines.nth(i).evaluate("e => e.getBoundingClientRect().height") < 60 for i in range(4))
    # A link from the first screen opens the section it points to.
    page.locator("ul.noticed a").nth(1).click()
    page.wait_for_selector("details.advice.line[open]")
    assert page.locator("details.advice.line[open]").count() == 1


# --- without scripts ------------------------------------------------------------------------------------------

JENKINS = "sandbox allow-same-origin; default-src 'none'; img-src 'self'; style-src 'self';"
"""Header that Jenkins sends with every file of a job, unless its administrator allows more."""


@pytest.mark.parametrize("policy", [JENKINS, "script-src 'none'"])
def test_page_without_scripts_has_pictures_and_tables(reports, browser, policy):
    text = reports("v3-ckpt-then-restart-8r").read_text()
    context = browser.new_context(viewport={"width": 1280, "height": 800}, color_scheme="dark")
    page = context.new_page()
    page.route("**/*", lambda route: route.fulfill(body=text, content_type="text/html", headers={"Content-Security-Policy": policy}))
    page.goto("https://ci.example/report.html")
    assert page.locator("html.no-js").count() == 1
    page.evaluate("document.querySelectorAll('details').forEach(fold => { fold.open = true; })")
    pictures = page.locator("figure .picture svg")
    assert pictures.count() >= 5
    for place in range(pictures.count()):
        box = pictures.nth(place).bounding_box()
        assert box["width"] > 300 and box["height"] > 50
    assert page.locator("figure[data-plot=heat-map] .picture").is_visible()
    assert page.locator("#table-files").is_visible()
    # Nothing that would not work is offered.
    assert page.locator("button:visible:not(.sort):not(.open)").count() == 0
    context.close()


def test_pictures_contain_no_foreign_element_and_no_text():
    text = written(inputs_of(*hostile(20)))
    for svg in re.findall(r"<svg xmlns.*?</svg>", text, re.DOTALL):
        assert not re.search(r"<(?!/?(?:svg|g|path|text|tspan|line|rect|defs|linearGradient|stop|clipPath)\b)", svg)
        assert not re.search(r"\s(?:on\w+|href|style|class|role|aria-\w+)=", re.sub(r">[^<]*<", "><", svg))


# --- a phone ---------------------------------------------------------------------------------------------

OVERLAPS = """() => {
  const found = [];
  for (const svg of document.querySelectorAll(".canvas svg")) {
    const texts = [...svg.querySelectorAll("text")].filter(t => t.textContent.trim() && t.getAttribute("opacity") !== "0")
      .map(t => [t, t.getBoundingClientRect()]).filter(([, b]) => b.width && b.height);
    for (let i = 0; i < texts.length; i += 1) for (let j = i + 1; j < texts.length; j += 1) {
      const [a, p] = texts[i], [b, q] = texts[j];
      const wide = Math.min(p.right, q.right) - Math.max(p.left, q.left), high = Math.min(p.bottom, q.bottom) - Math.max(p.top, q.top);
      const halo = a.textContent === b.textContent && Math.abs(p.left - q.left) < 1;
      const turned = [a, b].some(t => /rotate/.test(t.getAttribute("transform") || ""));
      if (!halo && !turned && wide > 1 && high > 3) found.push([svg.closest("figure").dataset.plot, a.textContent, b.textContent]);
    }
  }
  return found;
}"""
"""Pairs of texts with overlapping boxes; letters have up to 3 px of space above and below."""


PHRASES = """() => {
  document.querySelectorAll("details:not(.data)").forEach(fold => { fold.open = true; });
  const blocks = "p, li, dd, dt, td, th, h1, h2, h3, summary, figcaption, pre";
  return [...document.querySelectorAll(blocks)]
    .filter(e => e.checkVisibility() && !e.closest(".sr, svg, .data, pre") && !e.querySelector(blocks)).map(e => e.innerText);
}"""
"""Blocks of text with everything unfolded except the data of plots; lines to paste are complete in each remark."""


@pytest.mark.parametrize("name", SIX)
def test_a_phone_shows_verdict_first_and_the_page_repeats_little(reports, opened, name):
    page = opened(reports(name), 390)
    assert page.locator("#h-verdict").evaluate("e => e.getBoundingClientRect().bottom") < 664
    # Sentences of four words or more: formerly 18 in 100 occurred twice, before rules and unknown values were
    # grouped.
    texts = [re.sub(r"\s+", " ", text).strip().lower() for block in page.evaluate(PHRASES) for text in re.split(r"(?<=[.;:!?])\s+|\n", block)]
    phrases = [text for text in texts if len(text.split()) >= 4]
    assert len(phrases) > 200 and len(phrases) - len(set(phrases)) < 0.06 * len(phrases)


@pytest.mark.parametrize("name", SIX)
@pytest.mark.slow
def test_labels_do_not_overlap_on_a_phone(reports, opened, name):
    page = opened(reports(name), 390)
    unfold(page)
    assert page.evaluate(OVERLAPS) == []


# --- for everybody --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SIX)
@pytest.mark.slow
@pytest.mark.parametrize("width", [1280, pytest.param(390, marks=pytest.mark.slow)])
def test_axe_finds_no_violation_of_wcag_2_2_aa(reports, opened, name, width):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe-playwright-python is not installed")
    page = opened(reports(name), width)
    unfold(page)
    tags = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        page.wait_for_selector(f"body:not(:has(figure[data-plot]:not([data-drawn={scheme}])))")
        found = axe.Axe().run(page, options={"runOnly": {"type": "tag", "values": tags}}).response["violations"]
        assert [(one["id"], [node["html"][:200] for node in one["nodes"][:3]]) for one in found] == []


# --- plots ---------------------------------------------------------------------------------------------------


def lone_writer(ranks: int, writer: int) -> HeatMap:
    """One of many ranks writes, in one of 150 bins; three share a row."""
    rows = [
        HeatRow(app="a", trace=0, first_process=i, processes=min(3, ranks - i), ranks=(i, min(i + 3, ranks) - 1))
        for i in range(0, ranks, 3)
    ]
    none = [[0] * 150 for _ in rows]
    written = [list(row) for row in none]
    written[writer // 3][75] = 1 << 20
    each = [0] * ranks
    return HeatMap(
        bin_s=1, bins=150, runtime_s=150, rows=rows, read=none, written=written, busy_s=none,
        seconds=seconds_like(none, written),
        processes=ProcessTotals(bytes_read=each, bytes_written=each, operations=each, io_s=[0.0] * ranks),
        app_of_trace=["a"], first_process=[0], layers=[], uses=[],
    )  # fmt: skip


@pytest.mark.parametrize(("writer", "width"), [(777, 1280), (1279, 390)])
@pytest.mark.slow
def test_the_only_writer_among_1280_ranks_is_seen(tmp_path, opened, writer, width):
    path = tmp_path / "report.html"
    path.write_text(written(inputs_of(golden(), heat=lone_writer(1280, writer))))
    page = opened(path, width)
    unfold(page)
    cell, frame = page.evaluate(
        """() => {
          const paths = [...document.querySelectorAll("figure[data-plot=heat-map] .canvas .mark-rect path")];
          const box = e => { const b = e.getBoundingClientRect(); return [b.width, b.height, b.top, b.bottom]; };
          return [box(paths.find(e => e.getAttribute("fill").startsWith("rgb"))), box(paths.find(e => !e.getAttribute("fill")?.startsWith("rgb")))];
        }"""
    )
    assert cell[0] >= 1.5 and cell[1] >= 2
    assert frame[2] - 1 <= cell[2] and cell[3] <= frame[3] + 1


@pytest.mark.slow
def test_plots_over_time_share_the_chosen_range(tmp_path, opened):
    store, path = tmp_path / "store", tmp_path / "report.html"
    path.write_text(vani.report(ROOT / "examples" / "coupled", store=store))
    page = opened(path)
    ends = """() => ["heat-map", "io-time", "phases", "bandwidth"].map(kind =>
      document.querySelector(`figure[data-plot="${kind}"]`).drawn.view.scale("x").domain())"""
    whole = page.evaluate(ends)
    page.get_by_label("Show seconds from").fill("0.25")
    page.locator("#zoom-to").fill("0.5")
    page.locator("#zoom button[type=submit]").click()
    wait_until(page, f"JSON.stringify(({ends})()) === JSON.stringify(Array(4).fill([0.25, 0.5]))")
    page.get_by_role("button", name="Whole run").click()
    wait_until(page, f"JSON.stringify(({ends})()) === JSON.stringify({whole})")
    # The mouse: dragging in one plot moves all.
    box = page.locator("figure[data-plot=bandwidth] .canvas").bounding_box()
    page.locator("figure[data-plot=bandwidth]").scroll_into_view_if_needed()
    box = page.locator("figure[data-plot=bandwidth] .canvas").bounding_box()
    page.mouse.move(box["x"] + 500, box["y"] + 100)
    page.mouse.down()
    page.mouse.move(box["x"] + 400, box["y"] + 100, steps=4)
    page.mouse.up()
    wait_until(page, f"({ends})().every(ends => ends[0] > 0.05)")
    assert page.complaints == []


@pytest.mark.slow
def test_plots_are_drawn_within_a_second_of_loading(reports, browser):
    """On an idle core, the fastest of several loads counts."""
    path = reports("examples/coupled")
    times = []
    for _ in range(4):
        page = open_page(browser, path)
        times.append(page.evaluate("performance.getEntriesByName('drawn')[0].startTime"))
        page.context.close()
        if min(times) <= 1000:
            break
    print(f"\nfastest of {len(times)}: {min(times):.0f} ms")  # noqa: T201
    # Other load on the machine makes it slower.
    assert min(times) < 3000
