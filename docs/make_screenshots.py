"""Make the pictures of `docs/report.md` again, from traces of this repository, in a headless Chromium.

python docs/make_screenshots.py
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from playwright.sync_api import Browser, sync_playwright

import vani

ROOT = Path(__file__).resolve().parents[1]
PICTURES = ROOT / "docs" / "images"
PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
ARGUMENTS = ("--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking")


@dataclass(frozen=True)
class Shot:
    """A part of the page about a trace."""

    name: str
    trace: str
    section: str
    width: int = 1280
    height: int = 800
    scheme: str = "light"
    system: str | Path = "generic-lustre"
    job: Path | None = None
    media: Literal["screen", "print"] = "screen"


STORY = ROOT / "vani" / "demo" / "striping"
DEMO = Shot(
    "report-demo",
    "vani/demo/striping/before/shared-write",
    "#summary",
    system=STORY / "system.yaml",
    job=STORY / "job.yaml",
)
SHOTS = (
    DEMO,
    Shot("report-workflow", "examples/coupled", "#time", height=900),
    replace(DEMO, name="report-phone", width=390),
    # A sheet of A4 within its margins.
    replace(DEMO, name="report-print", width=720, height=1020, media="print"),
    Shot("report-checkpoint", "tests/data/traces/v3-ckpt-then-restart-8r", "#files", height=700, scheme="dark"),
)


def main() -> int:
    """Write every picture; 2 where no browser is found."""
    program = next(filter(None, map(shutil.which, PROGRAMS)), None)
    if program is None:
        print(f"make_screenshots: none of {', '.join(PROGRAMS)} is on the PATH", file=sys.stderr)  # noqa: T201
        return 2
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:
        browser = playwright.chromium.launch(executable_path=program, args=list(ARGUMENTS))
        for shot in SHOTS:
            _take(shot, browser, Path(folder))
        browser.close()
    return 0


def _take(shot: Shot, browser: Browser, folder: Path) -> None:
    page_file = folder / f"{shot.name}.html"
    profile = vani.profile(ROOT / shot.trace, job=shot.job, store=folder / "store")
    page_file.write_text(vani.report(profile, system=shot.system, store=folder / "store"))
    page = browser.new_page(viewport={"width": shot.width, "height": shot.height}, color_scheme=shot.scheme)
    page.emulate_media(media=shot.media)
    page.goto(page_file.as_uri())
    page.wait_for_selector("html[data-drawn=all]")
    if shot.section != "#summary":
        page.evaluate("section => { document.querySelector(section + ' details').open = true; }", shot.section)
        page.wait_for_selector(f"body:not(:has({shot.section} figure[data-plot]:not([data-drawn])))")
        page.evaluate("section => document.querySelector(section).scrollIntoView()", shot.section)
    page.screenshot(path=PICTURES / f"{shot.name}.png")
    page.close()


if __name__ == "__main__":
    sys.exit(main())
