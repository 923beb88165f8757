"""A Chromium for the tests of pages: its path, starting it, opening a page, and what it shows."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

PROGRAM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
NO_PROGRAM = "no chromium, chromium-browser or google-chrome on the PATH"
ARGUMENTS = (
    "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--no-first-run",
)  # fmt: skip


def open_page(browser: Any, path: Path, width: int = 1280, scheme: str = "light", **options: Any) -> Any:
    """A page with all plots drawn; `page.complaints` collects the browser's messages and network requests."""
    context = browser.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme, **options)
    page = context.new_page()
    page.set_default_timeout(15_000)
    page.complaints = complaints = []
    page.on("console", lambda message: complaints.append(message.text) if message.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", lambda request: complaints.append(request.url) if request.url != path.as_uri() else None)
    page.goto(path.as_uri())
    if options.get("java_script_enabled", True):
        page.wait_for_selector("html[data-drawn=all]")
    return page


def pages_of(pdf: bytes) -> int:
    """Number of sheets in a PDF."""
    return len(re.findall(rb"/Type\s*/Page\b", pdf))


def unfold(page: Any) -> None:
    """Open everything folded, and wait for the plots in it."""
    page.evaluate("document.querySelectorAll('details').forEach(fold => { fold.open = true; })")
    page.wait_for_selector("body:not(:has(figure[data-plot]:not([data-drawn])))")
