"""Compares the coverage of each folder, lines and branches together, with a threshold.

python .ci/coverage_of_folders.py --least PERCENT FOLDER ...: reads the results of the last `pytest --cov`. Exits
with status 1 and a line for each folder below the threshold.
"""

from __future__ import annotations

import argparse
import io
import sys

import coverage


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--least", type=float, required=True)
    parser.add_argument("folders", nargs="+")
    given = parser.parse_args()
    measured = coverage.Coverage()
    measured.load()
    percents = {folder: percent_of(measured, folder) for folder in given.folders}
    print("Coverage:", ", ".join(f"{folder} {percent:.1f} %" for folder, percent in percents.items()))
    below = [folder for folder, percent in percents.items() if percent < given.least]
    for folder in below:
        print(
            f"Tests cover {percents[folder]:.1f} % of {folder}, less than the {given.least:g} % that it needs;"
            f" what they leave out: coverage report --show-missing --skip-covered --include='{folder}/*'",
            file=sys.stderr,
        )
    return 1 if below else 0


def percent_of(measured: coverage.Coverage, folder: str) -> float:
    """Covered percentage of a folder; 0 if nothing in it was measured."""
    try:
        return measured.report(include=[f"{folder}/*"], file=io.StringIO())
    except coverage.exceptions.NoDataError:
        return 0.0


if __name__ == "__main__":
    sys.exit(main())
