"""What the report costs: processor time and size of the page of a long profile, and how soon its plots are drawn.

`python -m benchmarks.report [--files N] [--rounds N]`; plots are timed in a headless Chromium, where there is one.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.processes import succeed
from benchmarks.rates import VANI
from vani import api
from vani.schema.document import dump, load
from vani.schema.profile import Profile

__all__ = ["drawn_ms", "long_profile", "main"]

_ROOT = Path(__file__).resolve().parents[1]
_PROGRAMS = ("chromium", "chromium-browser", "google-chrome")


def long_profile(path: Path, files: int) -> None:
    """Write a real profile with so many files, no two of which are alike in times and bytes."""
    profile = load(_ROOT / "tests" / "golden" / "v3-cm1like-16r.yaml", Profile)
    model = profile.files[0]
    made = []
    for number in range(files):
        io = model.io
        seconds = 1.0 - number / (2 * files)
        times = io.time_s.model_copy(update={"total": seconds, "write": seconds})
        moved = io.bytes.model_copy(update={"written": number, "total": number})
        io = io.model_copy(update={"time_s": times, "bytes": moved})
        made.append(
            model.model_copy(update={"path": f"/scratch/run/d{number // 1000}/out.{number:06d}", "io": io})
        )
    workflow = profile.workflow
    counts = workflow.files.model_copy(update={"total": files})
    workflow = workflow.model_copy(update={"files": counts})
    dump(profile.model_copy(update={"files": made, "workflow": workflow}), path)


def drawn_ms(page_file: Path, rounds: int) -> float | None:
    """Milliseconds from the start of loading until all plots in sight are drawn, best of `rounds`; None: no browser."""
    program = next(filter(None, map(shutil.which, _PROGRAMS)), None)
    if program is None:
        return None
    from playwright.sync_api import sync_playwright  # noqa: PLC0415 - an extra

    times = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
        for _ in range(rounds):
            page: Any = browser.new_page(viewport={"width": 1280, "height": 800})
            page.goto(page_file.as_uri())
            page.wait_for_selector("html[data-drawn=all]")
            times.append(page.evaluate("performance.getEntriesByName('drawn')[0].startTime"))
            page.close()
        browser.close()
    return min(times)


def main(arguments: list[str] | None = None) -> int:
    """Print the figures."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.report", description=__doc__)
    parser.add_argument("--files", type=int, default=50_000)
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        long_profile(folder / "long.yaml", asked.files)
        page = folder / "long.html"
        runs = [
            succeed([*VANI, "report", folder / "long.yaml", "-o", page, "-q"]) for _ in range(asked.rounds)
        ]
        megabytes = (folder / "long.yaml").stat().st_size / 1e6
        print(f"profile of {asked.files:,} files, {megabytes:.0f} MB: best of {asked.rounds}")
        print(f"  processor time {min(run.cpu_s for run in runs):.2f} s")
        print(f"  page {page.stat().st_size / 1e6:.2f} MB")
        coupled = folder / "coupled.html"
        coupled.write_text(api.report(_ROOT / "examples" / "coupled", store=folder / "store"))
        print(f"report about examples/coupled: {coupled.stat().st_size / 1e6:.2f} MB")
        found = drawn_ms(coupled, asked.rounds)
        print("  plots: no browser here" if found is None else f"  plots drawn after {found:.0f} ms")
    return 0


if __name__ == "__main__":
    sys.exit(main())
