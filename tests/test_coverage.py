"""The output of `make coverage` about each folder."""

import subprocess
import sys
from pathlib import Path

import coverage

ROOT = Path(__file__).resolve().parent.parent


def test_each_folder_below_the_threshold_gives_one_line(tmp_path):
    measured = coverage.CoverageData(str(tmp_path / ".coverage"))
    for folder, arcs in {"all": [(-1, 1), (1, 2), (1, -1), (2, -1)], "half": [(-1, 1), (1, -1)]}.items():
        (tmp_path / folder).mkdir()
        file = tmp_path / folder / "one.py"
        file.write_text("if __doc__:\n    a = 1\n")
        measured.add_arcs({str(file): arcs})
    measured.write()
    command = [
        sys.executable,
        ROOT / ".ci" / "coverage_of_folders.py",
        "--least",
        "90",
        "all",
        "half",
        "none",
    ]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stdout == "Coverage: all 100.0 %, half 50.0 %, none 0.0 %\n"
    below = [line.partition(";")[0] for line in done.stderr.splitlines()]
    assert below == [
        "Tests cover 50.0 % of half, less than the 90 % that it needs",
        "Tests cover 0.0 % of none, less than the 90 % that it needs",
    ]
    assert (
        subprocess.run([*command[:5]], cwd=tmp_path, stdout=subprocess.DEVNULL, check=False).returncode == 0
    )
