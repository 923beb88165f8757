"""The cost of the report: time, memory and page size for a long profile as YAML and as JSON.

`python -m benchmarks.report [--files N] [--rounds N]` runs the whole command, including start-up and reading the
profile, and shows how much of it making the page takes. Bytecode is written and used whatever the environment says,
and the first run does not count.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

from benchmarks.costs import VANI
from benchmarks.data import ROOT
from benchmarks.processes import CommandRun, succeed
from vani.render.formats import PROFILE
from vani.schema.document import load
from vani.schema.profile import Profile

GOAL_S = 3.0
"""Target time of `vani report` for 50,000 files on an idle machine."""

_PAGE_ALONE = """
import sys, time
from vani.cli.report import report_inputs
from vani.render.formats import REPORT
found = report_inputs(sys.argv[1])
began = time.process_time(), time.perf_counter()
REPORT.render("html", found)
print(time.process_time() - began[0], time.perf_counter() - began[1])
"""


def long_profile(files: int) -> Profile:
    """A real profile extended to this many files, no two of which have equal times and bytes."""
    profile = load(ROOT / "tests" / "golden" / "v3-cm1like-16r.yaml", Profile)
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
    return profile.model_copy(update={"files": made, "workflow": workflow})


def _best_times(name: str, runs: list[CommandRun], alone: list[tuple[float, float]], megabytes: float) -> str:
    """The best of all rounds in two lines."""
    cpu_s, clock_s = min(run.cpu_s for run in runs), min(run.seconds for run in runs)
    memory = min(run.memory_bytes for run in runs) / 1e6
    page_cpu_s, page_clock_s = (min(times) for times in zip(*alone, strict=True))
    return (
        f"  {name}, {megabytes:.0f} MB: vani report {cpu_s:.2f} s of processor time, {clock_s:.2f} s by the clock, "
        f"{memory:.0f} MB of memory\n"
        f"    of which making the page {page_cpu_s:.2f} s of processor time, {page_clock_s:.2f} s by the clock"
    )


def measured(profile: Path, page: Path, rounds: int) -> str:
    """CommandRun the whole command on a profile in a file, and generate the page alone."""
    runs, alone = [], []
    for number in range(rounds + 1):
        run = succeed([*VANI, "report", profile, "-o", page, "-q"])
        made = succeed([sys.executable, "-c", _PAGE_ALONE, profile]).last_line
        if number:
            runs.append(run)
            alone.append((float(made.split()[0]), float(made.split()[1])))
    return _best_times(profile.suffix[1:].upper(), runs, alone, profile.stat().st_size / 1e6)


def main(arguments: list[str] | None = None) -> int:
    """Print the figures."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.report", description=__doc__)
    parser.add_argument("--files", type=int, default=50_000)
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args(arguments)
    # Commands inherit this variable.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        page = folder / "long.html"
        profile = long_profile(asked.files)
        print(
            f"profile of {asked.files:,} files, best of {asked.rounds}, goal {GOAL_S:.0f} s; "
            f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"
        )
        for kind in PROFILE:
            file = folder / f"long.{kind}"
            file.write_text(PROFILE.render(kind, profile), encoding="utf-8")
            print(measured(file, page, asked.rounds))
        print(f"  page {page.stat().st_size / 1e6:.2f} MB; load {os.getloadavg()[0]:.1f} at the end")
    return 0


if __name__ == "__main__":
    sys.exit(main())
