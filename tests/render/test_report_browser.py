"""The page in a real browser: every plot has the profile's numbers, tables work, nothing leaves the page.

The page is about a workflow of four traces; Chromium is started once for all tests.
"""

from __future__ import annotations

import math
import re
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from browsing import ARGUMENTS, NO_PROGRAM, PROGRAM, open_page, pages_of, unfold
from report_inputs import ROOT, hostile, inputs_of

import vani
from vani.render.plots.catalogue import draw, kinds
from vani.render.plots.drawing import Drawing
from vani.render.report.page import to_html as written

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed (the extra `test` has it)")
pytestmark = pytest.mark.skipif(PROGRAM is None, reason=NO_PROGRAM)

WIDTHS = (1280, 390)


@pytest.fixture(scope="module")
def workflow(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Any, Path]:
    """Profile and heat map of a workflow, and the page about it."""
    folder = tmp_path_factory.mktemp("report")
    store = folder / "store"
    profile = vani.profile(ROOT / "examples" / "coupled", store=store)
    path = folder / "report.html"
    path.write_text(vani.report(profile, system="generic-lustre", store=store))
    return profile, vani.heat_map(profile, store=store), path


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with sync_api.sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=PROGRAM, args=list(ARGUMENTS))
        yield chromium
        chromium.close()


@pytest.fixture(scope="module")
def opened(browser: Any) -> Iterator[Callable[..., Any]]:
    """Open a file with all its sections; `page.complaints` collects the browser's messages and network requests."""
    pages = []

    def opened_page(path: Path, width: int = 1280, scheme: str = "light", **options: Any) -> Any:
        pages.append(open_page(browser, path, width, scheme, **options))
        if options.get("java_script_enabled", True):
            unfold(pages[-1])
        return pages[-1]

    yield opened_page
    for page in pages:
        page.context.close()


@pytest.fixture(scope="module")
def shared(workflow: Any, opened: Callable[..., Any]) -> Any:
    """The page on a desktop in light colours, for tests that only look."""
    return opened(workflow[2])


@pytest.fixture(scope="module")
def used(workflow: Any, opened: Callable[..., Any]) -> Any:
    """A page for tests that click and type; each leaves it unchanged except for the order of rows."""
    return opened(workflow[2], permissions=["clipboard-read", "clipboard-write"])


def view_data(page: Any, kind: str) -> list[list[dict[str, Any]]]:
    """The rows of every table of a drawn plot, as Vega holds them."""
    return page.evaluate(
        """kind => {
          const data = document.querySelector(`figure[data-plot="${kind}"]`).drawn.view.getState({data: () => true, signals: () => false}).data;
          const plain = row => Object.fromEntries(Object.entries(row).filter(([, v]) => ["number", "string"].includes(typeof v)));
          return Object.values(data).filter(Array.isArray).map(rows => rows.map(plain));
        }""",
        kind,
    )


def rows_with(page: Any, kind: str, *fields: str) -> list[dict[str, Any]]:
    """The first table of a plot whose rows have these fields."""
    for rows in view_data(page, kind):
        if rows and set(fields) <= set(rows[0]):
            return rows
    raise AssertionError(f"{kind} has no rows with {fields}")


# --- nothing goes wrong, nothing goes out --------------------------------------------------------------


@pytest.mark.slow
def test_every_plot_of_the_workflow_is_drawn(workflow, shared):
    profile, heat, _ = workflow
    plots = {kind: draw(kind, profile, heat=heat) for kind in kinds()}
    # Traces of calls do not show which storage targets files are on.
    assert [kind for kind, plot in plots.items() if not isinstance(plot, Drawing)] == ["targets"]
    # Plots that one sentence can replace are a sentence.
    drawn = [kind for kind, plot in plots.items() if isinstance(plot, Drawing) and not plot.sentence]
    found = shared.evaluate("[...document.querySelectorAll('figure[data-plot]')].map(f => [f.dataset.plot, f.dataset.drawn, f.querySelectorAll('svg .mark-rect path, svg .mark-symbol path, svg .mark-rule line, svg .mark-line path, svg .mark-text text').length])")
    assert sorted(kind for kind, _, _ in found) == sorted(drawn)
    assert [kind for kind, theme, marks in found if theme != "light" or not marks] == []


@pytest.mark.slow
def test_browser_reports_no_errors_and_makes_no_requests(shared):
    assert shared.complaints == []


def test_hostile_names_have_no_effect(tmp_path, opened):
    path = tmp_path / "hostile.html"
    path.write_text(written(inputs_of(*hostile(20))))
    page = opened(path)
    assert page.complaints == []
    assert page.evaluate("document.images.length") == 0
    assert page.evaluate("[document.documentElement.scrollWidth, innerWidth]") == [1280, 1280]
    page.locator("figure[data-plot=files] .mark-rect path").first.hover(force=True)
    assert page.complaints == []


# --- the numbers are those of the profile ----------------------------------------------------------------


def test_the_heat_map_has_all_bytes(workflow, shared):
    profile, _, _ = workflow
    cells = rows_with(shared, "heat-map", "f", "r", "t", "v")
    assert sum(cell["v"] for cell in cells) == profile.workflow.io.bytes.total
    assert {cell["r"] for cell in cells} <= set(range(profile.workflow.processes))


def test_cost_per_layer_matches_the_calls(workflow, shared):
    profile, _, _ = workflow
    rows = rows_with(shared, "layers", "layer", "kind", "seconds")
    seconds = dict.fromkeys(("read", "write", "sync", "metadata"), 0.0)
    for row in rows:
        if row["layer"].lower() in ("posix", "stdio"):
            seconds[row["kind"]] += row["seconds"]
    for kind, found in seconds.items():
        assert found == pytest.approx(getattr(profile.workflow.io.time_s, kind), rel=1e-3)


def test_transfer_sizes_match_the_histogram(workflow, shared):
    profile, _, _ = workflow
    sizes = profile.workflow.io.transfer_size
    wanted = {("read", size): n for size, n in sizes.read.histogram.items()} | {("write", size): n for size, n in sizes.write.histogram.items()}
    found = {(row["kind"], row["size"]): row["operations"] for row in rows_with(shared, "transfer-sizes", "kind", "size", "operations")}
    assert {key: n for key, n in found.items() if n} == {key: n for key, n in wanted.items() if n}


def test_phases_begin_and_end_as_in_the_profile(workflow, shared):
    profile, _, _ = workflow
    rows = rows_with(shared, "phases", "app", "kind", "from", "to")
    wanted = sorted((start, phase.kind) for phase in profile.phases for start, _ in phase.spans)
    assert len(rows) == len(wanted)
    for row, (start, kind) in zip(sorted(rows, key=lambda r: (r["from"], r["kind"])), wanted, strict=True):
        assert row["from"] == pytest.approx(start, rel=1e-5)
        assert row["kind"] == kind


def test_costs_of_files_equal_the_profile(workflow, shared):
    profile, _, _ = workflow
    seconds = sum(row["seconds"] for row in rows_with(shared, "files", "kind", "seconds"))
    kinds_of_calls = ("read", "write", "sync", "metadata")
    parts = sum(getattr(f.io.time_s, kind) for f in profile.files for kind in kinds_of_calls)
    assert math.isclose(seconds, parts, rel_tol=1e-3)


def test_the_slowest_process_of_each_app_is_marked(workflow, shared):
    profile, _, _ = workflow
    found = sorted(row["seconds"] for row in rows_with(shared, "processes", "app", "mark", "seconds") if row["mark"] == "slowest")
    assert found == pytest.approx(sorted(app.balance.slowest_io_time_s for app in profile.apps if app.balance), rel=1e-5)


def test_the_graph_has_every_app(workflow, shared):
    profile, _, _ = workflow
    names = {row["name"] for rows in view_data(shared, "apps") for row in rows if "name" in row}
    assert names >= {app.name for app in profile.apps}


# --- tables --------------------------------------------------------------------------------------------


def column(page: Any, place: int) -> list[float]:
    return page.evaluate(
        "place => [...document.querySelectorAll('#table-files > tbody > tr:first-child')].map(r => r.cells[place]).filter(c => c.dataset.value).map(c => Number(c.dataset.value))",
        place,
    )


def test_files_sort_by_numbers_and_by_names(used):
    heads = used.locator("#table-files thead th")
    size = [text.strip() for text in heads.all_inner_texts()].index("Written")
    heads.nth(size).get_by_role("button").click()
    assert heads.nth(size).get_attribute("aria-sort") == "descending"
    assert column(used, size) == sorted(column(used, size), reverse=True)
    heads.nth(size).get_by_role("button").click()
    assert heads.nth(size).get_attribute("aria-sort") == "ascending"
    assert column(used, size) == sorted(column(used, size))
    heads.nth(0).get_by_role("button").click()
    assert heads.nth(size).get_attribute("aria-sort") is None
    names = used.evaluate("[...document.querySelectorAll('#table-files tbody tr:first-child .path')].map(e => e.textContent)")
    assert names == used.evaluate("names => [...names].sort((a, b) => a.localeCompare(b, 'en', {numeric: true}))", names)


@pytest.mark.parametrize(("name", "title"), [("calls", "Calls"), ("folders", "Files"), ("metadata", "Time")])
def test_calls_metadata_and_folders_sort_by_numbers(used, name, title):
    heads = used.locator(f"#table-{name} thead th")
    place = [text.strip() for text in heads.all_inner_texts()].index(title)
    heads.nth(place).get_by_role("button").click()
    cells = used.evaluate(
        """([name, place]) => [...document.querySelectorAll(`#table-${name} tbody tr`)]
          .map(row => Number(row.cells[place].dataset.value))""",
        [name, place],
    )
    assert len(cells) > 1 and cells == sorted(cells, reverse=True)


def test_filter_keeps_matches_and_their_number(used):
    total = used.locator("#table-files > tbody").count()
    used.get_by_label("Show rows with").fill("chk")
    shown = used.locator("#table-files > tbody:visible")
    assert 0 < shown.count() < total
    assert all("chk" in text for text in shown.all_inner_texts())
    assert used.locator("[data-count]").inner_text() == f"{shown.count()} of {total} rows"
    used.get_by_label("Show rows with").fill("no such file")
    assert shown.count() == 0
    used.get_by_label("Show rows with").fill("")
    assert shown.count() == total


def test_a_filter_that_matches_a_member_opens_its_dataset(used):
    member = used.evaluate("document.querySelector('tbody.group .member .path').textContent")
    used.get_by_label("Show rows with").fill(member)
    assert member in used.locator("#table-files .member:visible").first.inner_text()
    used.get_by_label("Show rows with").fill("")
    assert used.locator("#table-files .member:visible").count() == 0


def test_dataset_opens_by_keyboard_and_moves_as_a_unit(used):
    button = used.locator("tbody.group .open").first
    members = used.locator("tbody.group").first.locator(".member")
    assert button.get_attribute("aria-expanded") == "false"
    assert not members.first.is_visible()
    button.focus()
    used.keyboard.press("Enter")
    assert button.get_attribute("aria-expanded") == "true"
    assert members.first.is_visible()
    used.locator("#table-files thead button").first.click()
    assert used.evaluate("[...document.querySelectorAll('.member')].every(r => r.parentNode.rows[0] !== r)")
    used.locator(".open[aria-expanded=true]").click()
    assert used.locator(".member:visible").count() == 0


# --- for everybody ----------------------------------------------------------------------------------------


def test_everything_that_acts_is_reached_by_tab_and_shows_focus(shared):
    shared.evaluate("document.activeElement.blur()")
    shared.keyboard.press("Tab")
    assert shared.evaluate("document.activeElement.className") == "skip"
    assert shared.evaluate("document.activeElement.getBoundingClientRect().left") >= 0
    # In page order, everything interactive and visible, and regions that scroll.
    wanted = shared.evaluate(
        """() => {
          window.acting = [...document.querySelectorAll("a[href], button, input, summary, [tabindex='0']")].filter(e => e.checkVisibility() && !e.classList.contains("skip"));
          window.acting.forEach(e => e.addEventListener("focus", () => { window.reached = [window.acting.indexOf(e), getComputedStyle(e).outlineStyle]; }));
          return window.acting.length;
        }"""
    )
    assert wanted > 50
    for place in range(wanted):
        shared.keyboard.press("Tab")
        assert shared.evaluate("window.reached[0]") == place
        assert shared.evaluate("window.reached[1]") != "none"


def test_controls_have_names_and_images_have_words(shared):
    nameless = shared.evaluate(
        """() => [...document.querySelectorAll("button, a, input, [role=img], [role=region], summary")]
          .filter(e => !(e.getAttribute("aria-label") || e.labels?.length || e.textContent.trim())).map(e => e.outerHTML)"""
    )
    assert nameless == []


def least_contrast(page: Any) -> tuple[float, str]:
    """The least readable text, by the contrast ratio of WCAG 2.2, 1.4.3."""
    return page.evaluate(
        """() => {
          const rgb = text => text.match(/[\\d.]+/g).map(Number);
          const light = c => { const f = c.slice(0, 3).map(v => (v /= 255) <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4); return .2126 * f[0] + .7152 * f[1] + .0722 * f[2]; };
          const ground = e => { for (; e; e = e.parentElement) { const c = rgb(getComputedStyle(e).backgroundColor); if (c.length < 4 || c[3] > 0) return c; } return [255, 255, 255]; };
          let least = [99, ""];
          for (const e of document.querySelectorAll("main *, header *, footer *")) {
            if (![...e.childNodes].some(n => n.nodeType === 3 && n.data.trim()) || e.closest("svg") || !e.checkVisibility()) continue;
            const [a, b] = [light(rgb(getComputedStyle(e).color)), light(ground(e))].sort((x, y) => y - x);
            const ratio = (a + .05) / (b + .05);
            if (ratio < least[0]) least = [ratio, e.outerHTML.slice(0, 200)];
          }
          return least;
        }"""
    )


def test_both_themes_have_contrast(used):
    button = used.get_by_role("button", name="Dark")
    assert button.get_attribute("aria-pressed") == "false"
    assert least_contrast(used)[0] >= 4.5, least_contrast(used)
    button.click()
    used.wait_for_selector("figure[data-plot=files][data-drawn=dark]")
    assert button.get_attribute("aria-pressed") == "true"
    assert used.evaluate("getComputedStyle(document.documentElement).colorScheme") == "dark"
    assert least_contrast(used)[0] >= 4.5, least_contrast(used)
    button.click()
    used.wait_for_selector("figure[data-plot=files][data-drawn=light]")


def test_term_is_explained_by_mouse_keys_and_touch(workflow, used, opened):
    tip = used.locator("#tip")
    term = used.locator("main a.term:visible").first
    meaning = used.locator(f"#{term.get_attribute('aria-describedby')}").text_content()
    term.hover()
    assert tip.inner_text() == meaning
    used.keyboard.press("Escape")
    assert not tip.is_visible()
    used.mouse.move(0, 0)
    term.focus()
    assert tip.is_visible()
    touched = opened(workflow[2], 390, has_touch=True)
    touched.locator("main a.term:visible").first.tap()
    assert touched.locator("#tip").inner_text() == meaning
    assert "#" not in touched.url
    box = touched.locator("#tip").bounding_box()
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= 390


def test_lines_are_copied_unchanged(used):
    page = used
    button = page.locator("[data-copy]").first
    button.click()
    page.wait_for_selector("[data-copy]:has-text('Copied')")
    code = page.locator(f"#{button.get_attribute('data-copy')}").text_content()
    assert page.evaluate("navigator.clipboard.readText()") == code


def test_a_plot_is_saved_as_svg(used, tmp_path):
    with used.expect_download() as waiting:
        used.get_by_role("button", name="Save as SVG: I/O cost per layer").click()
    assert waiting.value.suggested_filename == "layers.svg"
    waiting.value.save_as(tmp_path / "layers.svg")
    assert (tmp_path / "layers.svg").read_text().startswith("<svg")


def test_first_screen_has_verdict_and_actions(tmp_path, opened):
    store, path = tmp_path / "store", tmp_path / "report.html"
    profile = vani.profile(ROOT / "vani" / "demo" / "ior-shared-file-8r", store=store)
    path.write_text(vani.report(profile, system="generic-lustre", store=store))
    page = opened(path)
    # The minimum that a laptop shows of a page.
    assert page.viewport_size == {"width": 1280, "height": 800}
    bottom = "e => e.getBoundingClientRect().bottom"
    assert page.locator("#h-verdict").evaluate(bottom) < 400
    items = page.locator(".todo > li")
    assert items.count() == 1
    for item in items.all():
        assert item.locator("h3").evaluate(bottom) < 800
        assert item.locator("pre").evaluate("e => e.getBoundingClientRect().top") < 800


@pytest.mark.parametrize(("width", "scheme", "background"), [(1280, "light", "rgb(255, 255, 255)"), (390, "dark", "")])
def test_the_first_screen_is_painted(tmp_path, browser, width, scheme, background):
    """A screenshot, kept in build/screenshots for people who look at a failure."""
    story, path = ROOT / "vani" / "demo" / "striping", tmp_path / "report.html"
    profile = vani.profile(story / "before" / "shared-write", job=story / "job.yaml")
    path.write_text(vani.report(profile, system=story / "system.yaml"))
    page = open_page(browser, path, width, scheme)
    picture = ROOT / "build" / "screenshots" / f"report-{width}-{scheme}.png"
    content = page.screenshot(path=picture)
    assert (int.from_bytes(content[16:20], "big"), int.from_bytes(content[20:24], "big")) == (width, 800)
    # A blank screen of this size has some 3 kB.
    assert len(content) > 30_000
    shown = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (shown == background) is (scheme == "light")
    assert page.locator(".todo pre").first.inner_text().startswith("lfs setstripe -c 16 -S 4M")
    assert page.complaints == []
    page.context.close()


# --- places where it is read -----------------------------------------------------------------------------


@pytest.mark.parametrize("width", WIDTHS)
def test_nothing_is_wider_than_the_window_in_light_and_dark(workflow, opened, width):
    page = opened(workflow[2], width)
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        page.wait_for_selector(f"body:not(:has(figure[data-plot]:not([data-drawn={scheme}])))")
        assert page.evaluate("document.documentElement.scrollWidth") == width
        beyond = page.evaluate(
            """() => [...document.querySelectorAll("main *")].filter(e => !e.closest(".scroll, pre, .sr, svg") && e.checkVisibility()
              && e.getBoundingClientRect().right > innerWidth + 1).map(e => e.outerHTML.slice(0, 120))"""
        )
        assert beyond == []
        plots = page.evaluate("[...document.querySelectorAll('.canvas svg')].map(s => s.getBoundingClientRect().width)")
        assert all(width * 0.5 < found <= width for found in plots)
    assert page.complaints == []


def test_what_is_open_is_printed_with_plots_for_paper(workflow, opened):
    # The width of A4 without its margins.
    page = opened(workflow[2], 696, "dark")
    content = page.pdf(format="A4", prefer_css_page_size=True, print_background=True)
    assert content.startswith(b"%PDF-")
    assert pages_of(content) > 5
    colours = colours_of(content)
    assert "#0072b2" in colours  # reading, on light
    assert not colours & {"#56b4e9", "#15181b", "#e8e8e8"}  # reading, ground and letters, on dark
    # Afterwards it is unchanged.
    page.wait_for_selector("body:not(:has(figure[data-plot]:not([data-drawn=dark])))")
    page.emulate_media(media="print")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.evaluate("document.documentElement.scrollWidth") <= 696
    assert not page.locator("#find").is_visible()
    page.emulate_media(media="screen")
    page.evaluate("document.querySelectorAll('details').forEach(fold => { fold.open = false; })")
    assert pages_of(page.pdf(format="A4", prefer_css_page_size=True)) <= 3


def test_the_search_field_opens_sections_with_all_words(used):
    field = used.get_by_label("Find in all sections")
    field.fill("slowest CALLS")
    opened_folds = used.locator("details.fold[open]")
    assert 0 < opened_folds.count() < used.locator("details.fold").count()
    assert all("slowest" in text.lower() for text in opened_folds.all_text_contents())
    field.fill("no such words anywhere")
    assert used.locator("details.fold:visible").count() == 0
    field.fill("")
    assert used.locator("details.fold:visible").count() == used.locator("details.fold").count()
    unfold(used)


def colours_of(pdf: bytes) -> set[str]:
    """Colours with which the streams of a PDF fill or draw."""
    found = set()
    for packed in re.findall(rb"stream\r?\n(.*?)\r?\nendstream", pdf, re.DOTALL):
        try:
            text = zlib.decompress(packed)
        except zlib.error:
            continue
        for colour in re.findall(rb"([\d.]+) ([\d.]+) ([\d.]+) (?:rg|RG)\b", text):
            found.add("#" + "".join(f"{round(float(part) * 255):02x}" for part in colour))
    return found


@pytest.mark.slow
def test_texts_and_tables_exist_without_scripts(workflow, opened):
    profile, _, path = workflow
    page = opened(path, java_script_enabled=False)
    words = page.locator("body").inner_text()
    for app in profile.apps:
        assert app.name in words
    page.evaluate("document.querySelectorAll('details').forEach(fold => { fold.open = true; })")
    assert page.locator("#table-files .member").first.is_visible()
    assert page.locator(".picture[aria-label*='Heat map of']").is_visible()
    assert page.get_by_role("button", name="Dark").count() == 0
    assert not page.locator("#filter-files").is_visible()
