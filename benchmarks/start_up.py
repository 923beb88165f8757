"""What starting costs: `python -m benchmarks.start_up`, processor seconds of commands on the smallest inputs.

Bytecode is written and used, whatever the environment says, and the first run of each is not counted. No command that
needs all libraries can be faster than these alone; the cost over theirs says more on a busy machine.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

from benchmarks.processes import succeed
from benchmarks.rates import VANI
from tests.traces.trace_generator import Workload, generate_trace

__all__ = ["main"]

GOAL_S = 0.35
"""Of `vani profile`, on an idle machine."""
_LIBRARIES = """
import os
os.environ["OPENBLAS_NUM_THREADS"] = "1"
import click, numpy, pyarrow.parquet, pydantic.main
"""


def main() -> None:
    """Measure, and print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=10)
    rounds = parser.parse_args().rounds
    # What commands inherit.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        generate_trace(folder / "trace", Workload(calls=1000, ranks=2, files=2))
        profile = str(folder / "profile.yaml")
        commands = {
            "python": [sys.executable, "-c", "pass"],
            "libraries": [sys.executable, "-c", _LIBRARIES],
            "vani profile": [*VANI, "profile", str(folder / "trace"), "-o", profile, "-q"],
            "vani advise": [*VANI, "advise", profile, "-o", str(folder / "advice.yaml"), "-q"],
            "vani --help": [*VANI, "--help"],
        }
        os.environ["VANI_CACHE"] = str(folder / "cache")
        found: dict[str, list[float]] = {}
        for number in range(rounds + 1):
            for command, words in commands.items():
                spent = succeed(words).cpu_s
                if number:
                    found.setdefault(command, []).append(spent)
    floor = min(found["libraries"])
    for command, every in found.items():
        goal = f", goal {GOAL_S} s" if command == "vani profile" else ""
        least, middle = min(every), sorted(every)[len(every) // 2]
        print(
            f"{command:12} {least:6.3f} s at least, {middle:6.3f} s in the middle, "
            f"{least / floor:5.2f} times the libraries{goal}"
        )


if __name__ == "__main__":
    main()
