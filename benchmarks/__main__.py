"""`python -m benchmarks`: the cost of Vani on this machine, as text and as JSON.

Parts: speed relative to inflating the time stamps (rates), memory over time (memory), and other tools on the same
files (peers). Figures can be compared within a run, but not between two runs, because machines are noisy.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, get_args

from benchmarks import costs, peers
from benchmarks.data import SHARED
from benchmarks.processes import CommandError
from tests.traces.trace_generator import Generated, GeneratedLayout, Pattern, Workload, count, generate_trace
from vani.atomic import write_text
from vani.errors import VaniError
from vani.readers.open import open_trace

PARTS = ("rates", "memory", "peers")

_LARGE = SHARED / "traces" / "v3-large-smallio-8r"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--only", metavar="PART[,PART]", default=",".join(PARTS), help="parts to run; all by default")
    add("--rounds", type=int, default=3, metavar="N", help="repeat what is short; default 3")
    add("--json", type=Path, metavar="FILE", help="write all figures here, too")
    add("--scheduler", metavar="threads|processes|synchronous", help="where the part memory works")
    add = parser.add_argument_group("trace", "by default one of 2 million calls is generated").add_argument
    add("--trace", type=Path, help="a trace that is there")
    add("--calls", type=count, help="calls of a generated trace, e.g. 5e8")
    add("--ranks", type=count, default=8)
    add("--files", type=count, default=32)
    add("--pattern", choices=get_args(Pattern), default="mixed")
    add("--layout", choices=get_args(GeneratedLayout), default="3.0")
    add = parser.add_argument_group("peers").add_argument
    several: dict[str, Any] = {"type": Path, "action": "append", "default": []}
    add("--peer-python", metavar="FILE", help="interpreter of an environment with vani-io[peers]", **several)
    add("--peer-input", metavar="PATH", help="one more trace, Parquet folder or Darshan log", **several)
    add("--peer-calls", type=count, default=100_000, help="calls of their traces; default 1e5")
    add("--peer-limit", type=float, default=120.0, metavar="S", help="end a tool after so many seconds")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; return the exit status."""
    parser = _parser()
    options = parser.parse_args(arguments)
    parts = [part.strip() for part in options.only.split(",")]
    if unknown := set(parts) - set(PARTS):
        parser.error(f"--only knows {', '.join(PARTS)}, not {', '.join(sorted(unknown))}")
    if options.rounds < 1:
        parser.error("--rounds is at least 1")
    if options.trace is not None and options.calls is not None:
        parser.error("--trace or --calls, not both")
    try:
        with tempfile.TemporaryDirectory(prefix="vani-bench-") as folder:
            found = _measure(options, parts, Path(folder))
        if options.json:
            write_text(options.json, json.dumps(found, indent=1) + "\n")
    except (VaniError, CommandError, ValueError) as error:
        # The generator raises ValueError for too few calls for this number of files and ranks.
        print(f"benchmarks: {error}", file=sys.stderr)
        return getattr(error, "exit_code", 3 if isinstance(error, CommandError) else 2)
    return 0


def _measure(options: argparse.Namespace, parts: Sequence[str], folder: Path) -> dict[str, Any]:
    generated: Generated | None = None
    trace = options.trace or (_LARGE if options.calls is None and _LARGE.is_dir() else None)
    if trace is None:
        trace = folder / "generated"
        workload = Workload(
            calls=options.calls or 2_000_000, ranks=options.ranks, files=options.files,
            pattern=options.pattern, layout=options.layout, zlib_level=1,
        )  # fmt: skip
        generated = generate_trace(trace, workload)
    reader = open_trace(trace)
    found: dict[str, Any] = {
        "schema": "vani.benchmark/1",
        "machine": costs.machine(),
        "versions": costs.versions(),
        "trace": {
            "name": trace.resolve().name,
            "calls": int(reader.calls_per_rank().sum()),
            "ranks": reader.ranks,
            "generated": None if generated is None else vars(generated),
        },
    }
    for name in ("machine", "versions", "trace"):
        print(", ".join(f"{key} {value}" for key, value in found[name].items() if key != "generated"))
    if "rates" in parts:
        found["rates"] = costs.rates(trace, folder, rounds=options.rounds)
        print(f"\n{costs.rates_as_text(found['rates'])}")
    if "memory" in parts:
        found["memory"] = costs.memory(trace, folder, scheduler=options.scheduler)
        _compare(found["memory"], generated)
        print(f"\n{costs.memory_as_text(found['memory'])}")
    if "peers" in parts:
        found["peers"] = peers.peers(
            folder, calls=options.peer_calls, limit_s=options.peer_limit, rounds=options.rounds,
            pythons=options.peer_python, inputs=options.peer_input,
        )  # fmt: skip
        print(f"\n{peers.as_text(found['peers'])}")
    return found


def _compare(found: dict[str, Any], generated: Generated | None) -> None:
    """Check the results: the speed of a wrong result is worthless."""
    if generated is None:
        return
    written = [generated.calls, generated.bytes_read, generated.bytes_written]
    profiled = [found["records"], *found["bytes"]]
    if written != profiled:
        raise CommandError(f"the profile has {profiled} (calls, bytes read, written), the trace {written}")


if __name__ == "__main__":
    sys.exit(main())
