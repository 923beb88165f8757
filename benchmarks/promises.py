"""`python -m benchmarks.promises [SHARED]`: what recommendations promise for the shared traces, by rule and by trace.

A recommendation has a number with a range, a direction with the reason why there is no number, or null if it is
unknown whether it makes the run faster. The rule on whether I/O matters (MAT001) is not a recommendation.
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import vani
from vani.errors import InputError

STATES: Final = ("null", "direction", "number")
MACHINES: Final = ("generic-lustre", "generic-gpfs")
FOLDERS: Final = ("traces", "traces-new", "traces-parquet")
_HEAD: Final = """
## Gains: shared traces

Gains of recommendations on the shared traces, for generic-lustre and generic-gpfs together (`python -m
benchmarks.promises` adds traces and reasons). A number has a range of at most a factor 10, a direction is faster
without a number, null is unknown. Most traces last milliseconds, and the generic descriptions have no rates, which
rules out many numbers.
"""

ROOT: Final = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Promise:
    """A recommendation on a trace; `why` is the reason for a missing number."""

    trace: str
    machine: str
    rule: str
    state: str
    why: str = ""


def promises(shared: Path, store: Path, machines: Sequence[str] = MACHINES) -> list[Promise]:
    """All recommendations on all readable traces."""
    rows = []
    for place in sorted(place for name in FOLDERS for place in (shared / name).glob("*/")):
        try:
            profile = vani.profile(place, store=store)
        except InputError:
            continue
        for machine in machines:
            for entry in vani.advise(profile, system=machine).recommendations:
                if entry.rule == "MAT001":
                    continue
                state = "number" if entry.gain else "direction" if entry.direction else "null"
                why = entry.direction.why_no_number if entry.direction else ""
                rows.append(Promise(place.name, machine, entry.rule, state, why))
    return rows


def _table(rows: Sequence[Promise], name: str) -> list[str]:
    counts = Counter((getattr(row, name), row.state) for row in rows)
    lines = [f"| {name} | {' | '.join(STATES)} |", "| --- | ---: | ---: | ---: |"]
    for key in sorted({key for key, _ in counts}):
        lines.append(f"| {key} | {' | '.join(str(counts[key, state]) for state in STATES)} |")
    total = Counter(row.state for row in rows)
    return [*lines, f"| all | {' | '.join(str(total[state]) for state in STATES)} |"]


def section(shared: Path, store: Path) -> list[str]:
    """A Markdown table by rule."""
    return [_HEAD, *_table(promises(shared, store), "rule")]


def main(arguments: Sequence[str] = ()) -> None:
    """Print the tables, and the reasons why numbers are missing."""
    shared = Path(arguments[0]) if arguments else ROOT.parent / "shared"
    with tempfile.TemporaryDirectory() as store:
        rows = promises(shared, Path(store))
    print("\n".join(_table(rows, "trace")), "\n\n", "\n".join(_table(rows, "rule")), sep="")
    reasons = Counter((row.rule, row.why) for row in rows if row.state != "number")
    print("\nWithout a number:")
    for (rule, why), count in sorted(reasons.items()):
        print(f"  {rule} {count}: {why or 'null'}")


if __name__ == "__main__":
    main(sys.argv[1:])
