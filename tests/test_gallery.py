"""docs/gallery.md: the table and the expected gains agree with the traces, and the lines with the advice.

`UPDATE_DOCS=1` writes new figures into the page. Cases without their logs are skipped.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

import pytest

import vani
from vani.schema.profile import Profile
from vani.units import format_seconds

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "gallery.md"
STORY = ROOT / "vani" / "demo" / "striping"
HEAT = ROOT / "examples" / "ci" / "traces"
AIIO = ROOT.parent / "shared" / "data" / "aiio-darshan"
_GAIN = re.compile(r"[\d.]+ times as fast \([\d.]+ to [\d.]+\)")


@dataclass(frozen=True)
class Case:
    number: int
    runs: tuple[Path, Path]
    rule: str
    job: Path | None = None
    system: str | Path = "generic-lustre"
    counted: str = "writes"

    def profile(self, run: Path) -> Profile:
        return vani.profile(run, job=self.job)

    def calls(self, profile: Profile) -> str:
        ops = profile.workflow.io.ops
        return f"{ops.write:,} writes" if self.counted == "writes" else f"{ops.metadata:,} {self.counted}"


def log(job: str) -> Path:
    """The log of an AIIO job."""
    return next(AIIO.glob(f"*_id{job}-*.darshan"), AIIO / job)


CASES = [
    Case(1, (STORY / "before/shared-write", STORY / "after/shared-write"), "LUS002", STORY / "job.yaml", STORY / "system.yaml"),
    Case(2, (log("66186370"), log("66184525")), "POS009"),
    Case(3, (log("66168155"), log("66168349")), "MIO001"),
    Case(4, (log("66082102"), log("66089597")), "MIO001"),
    Case(6, (HEAT / "after/heat", HEAT / "before/heat"), "POS003", counted="metadata operations"),
]  # fmt: skip


def section(page: str, number: int) -> str:
    return re.search(rf"^## {number}\. .*?(?=^## |\Z)", page, re.MULTILINE | re.DOTALL)[0]


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, id=f"case-{case.number}", marks=() if case.runs[0].is_relative_to(ROOT) else pytest.mark.slow)
        for case in CASES
    ],
)
def test_a_case_has_the_figures_of_its_runs_and_the_line_of_its_advice(case, tmp_path, monkeypatch):
    if not all(run.exists() for run in case.runs):
        pytest.skip("the logs of AIIO are not here")
    monkeypatch.setenv("VANI_CACHE", str(tmp_path))
    before, after = profiles = [case.profile(run) for run in case.runs]
    advice = vani.advise(before, system=case.system)
    page = PAGE.read_text()
    row = re.search(rf"^\| \[{case.number}\]\(#.*$", page, re.MULTILINE)[0]
    cells = [format_seconds(profile.workflow.runtime_s) for profile in profiles]
    cells += [f"{100 * profile.workflow.io_time_share:.0f} %" for profile in profiles]
    cells += [case.calls(profile) for profile in profiles]
    wanted = " | ".join((*row.split(" | ")[:2], *cells)) + " |"
    text = section(page, case.number)
    found = next(one for one in advice.recommendations if one.rule != "MAT001")
    gain = found.gain
    expected = ""
    if gain is not None:
        best, low, high = (f"{float(f'{factor:.2g}'):g}" for factor in (gain.speedup, gain.low, gain.high))
        expected = f"{best} times as fast ({low} to {high})"
    if os.environ.get("UPDATE_DOCS"):
        PAGE.write_text(page.replace(row, wanted).replace(text, _GAIN.sub(expected, text)))
        return
    assert row == wanted
    assert found.rule == case.rule
    assert _GAIN.findall(text) in ([], [expected])
    (lines,) = re.findall(r"```text\n(.*?)```", text, re.DOTALL)
    assert all(any(line in one for one in found.apply) for line in lines.splitlines())
    assert after.workflow.runtime_s < before.workflow.runtime_s


def test_the_workflow_has_the_times_of_its_example():
    measured = (ROOT / "examples" / "closed-loop" / "README.md").read_text().partition("three runs took")[2]
    before, _, after = measured.partition("after:")[0].partition("before")
    row = re.search(r"^\| \[5\]\(#.*$", PAGE.read_text(), re.MULTILINE)[0]
    ranges = re.findall(r"([\d.]+) to ([\d.]+) s", row)
    times = [sorted(map(float, re.findall(r"([\d.]+) s", part))) for part in (before, after)]
    assert [(float(low), float(high)) for low, high in ranges] == [(part[0], part[-1]) for part in times]
