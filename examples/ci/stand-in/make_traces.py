"""Makes the traces that stand in where Recorder is not installed: run the program, list its calls, encode them.

    PYTHONPATH=. python examples/ci/stand-in/make_traces.py [FOLDER]

`calls.so` lists what the program really called, and when; `tests/traces/recorder_writer.py` writes that in Recorder's
format 3.0. Needs a C compiler; the program runs in FOLDER (/scratch/heat), whose name goes into the traces.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.traces.recorder_writer import Call, write_trace

HERE = Path(__file__).resolve().parent
EXAMPLE = HERE.parent
# Recorder's own resolution.
TICK_NS = 100
# The tracer's clock starts a little before the first call.
LEAD_NS = 1_000_000


def listed_calls(source: Path, folder: Path) -> list[tuple[str, int, int, tuple[str, ...]]]:
    """Compile and run `source` in `folder`: (function, start and end in ns of a steady clock, arguments)."""
    with tempfile.TemporaryDirectory() as build:
        program, shim, found = (Path(build) / name for name in ("heat", "calls.so", "calls"))
        compiler = os.environ.get("CC", "cc")
        subprocess.run([compiler, "-O2", "-o", program, source], check=True)
        subprocess.run(
            [compiler, "-O2", "-shared", "-fPIC", "-o", shim, HERE / "calls.c", "-ldl"], check=True
        )
        settings = os.environ | {"LD_PRELOAD": str(shim), "CALLS": str(found)}
        subprocess.run([program, "heat.out"], cwd=folder, env=settings, check=True)
        rows = [line.split("\t") for line in found.read_text().splitlines()]
    return [(function, int(start), int(end), tuple(rest)) for function, start, end, *rest in rows]


def encode(calls: list[tuple[str, int, int, tuple[str, ...]]], trace: Path) -> None:
    """Write the calls of one process as a trace directory of Recorder 3.0."""
    zero = calls[0][1] - LEAD_NS
    write_trace(
        trace,
        [
            [
                Call(function, args, start=(start - zero) // TICK_NS, end=(end - zero) // TICK_NS)
                for function, start, end, args in calls
            ]
        ],
        layout="3.0",
        interprocess=False,
    )


def main() -> None:
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "/scratch/heat")
    folder.mkdir(parents=True, exist_ok=True)
    for version in ("before", "after"):
        trace = EXAMPLE / "traces" / version / "heat"
        shutil.rmtree(trace, ignore_errors=True)
        calls = listed_calls(EXAMPLE / version / "heat.c", folder)
        encode(calls, trace)
        print(f"{trace.relative_to(EXAMPLE)}: {len(calls)} calls")


if __name__ == "__main__":
    main()
