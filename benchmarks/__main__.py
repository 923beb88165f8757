"""`python -m benchmarks`: what Vani costs on this machine, as tables and as JSON.

Parts: what each stage costs (stages), how fast that is beside inflating the time stamps (rates), whole commands
(commands), memory over time (memory), how they grow (scaling, only if asked for), and other tools on the same files
(peers). Figures of one run can be compared with each other; machines are noisy, so those of two runs cannot.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, get_args

from benchmarks.commands import commands
from benchmarks.growth import growth
from benchmarks.machine import machine, versions
from benchmarks.memory import as_csv, as_vega_lite, memory
from benchmarks.peers import peers
from benchmarks.processes import CommandError
from benchmarks.rates import rates
from benchmarks.stages import stages
from benchmarks.tables import show
from tests.traces.trace_generator import Generated, GeneratedLayout, Pattern, Workload, count, generate_trace
from vani.atomic import write_text
from vani.errors import InputError, VaniError
from vani.readers.open import open_trace

__all__ = ["PARTS", "main"]

PARTS = ("stages", "rates", "commands", "memory", "scaling", "peers")

_SHARED = Path(__file__).resolve().parents[2] / "shared" / "traces" / "v3-large-smallio-8r"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--only",
        metavar="PART[,PART]",
        help=f"parts to run, of {', '.join(PARTS)}; by default all but scaling",
    )
    parser.add_argument("--scaling", action="store_true", help="run the part scaling, too")
    parser.add_argument("--rounds", type=int, default=3, metavar="N", help="repeat what is short; default 3")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures here, too")
    trace = parser.add_argument_group("trace", "by default one of 2 million calls is generated")
    trace.add_argument("--trace", type=Path, help="a trace that is there")
    trace.add_argument("--calls", type=count, help="calls of a generated trace, e.g. 5e8")
    trace.add_argument("--ranks", type=count, default=8)
    trace.add_argument("--files", type=count, default=32)
    trace.add_argument("--pattern", choices=get_args(Pattern), default="mixed")
    trace.add_argument("--layout", choices=get_args(GeneratedLayout), default="3.0")
    more = parser.add_argument_group("memory, scaling and commands")
    more.add_argument(
        "--scheduler", metavar="threads|processes|synchronous", help="where the part memory works"
    )
    more.add_argument("--memory-csv", type=Path, metavar="FILE", help="write memory over time here")
    more.add_argument("--memory-plot", type=Path, metavar="FILE", help="the same as a Vega-Lite plot")
    more.add_argument("--scaling-calls", type=count, default=10**6, help="calls of its base; default 1e6")
    more.add_argument("--quick-calls", type=count, default=10**9, help="calls of the quick trace; 0: none")
    others = parser.add_argument_group("peers")
    others.add_argument(
        "--peer-python",
        type=Path,
        action="append",
        default=[],
        metavar="FILE",
        help="interpreter of an environment with vani-io[peers]; may be given several times",
    )
    others.add_argument(
        "--peer-input",
        type=Path,
        action="append",
        default=[],
        metavar="PATH",
        help="one more trace, Parquet folder or Darshan log for them; may be given several times",
    )
    others.add_argument(
        "--peer-calls", type=count, default=100_000, help="calls of their traces; default 1e5"
    )
    others.add_argument(
        "--peer-limit", type=float, default=120.0, metavar="S", help="end a tool after so many seconds"
    )
    others.add_argument(
        "--peer-rounds", type=int, default=1, metavar="N", help="of N runs, tell that of least processor time"
    )
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; return the exit status."""
    parser = _parser()
    given = parser.parse_args(arguments)
    wanted = [part for part in PARTS if part != "scaling" or given.scaling]
    if given.only is not None:
        wanted = [part.strip() for part in given.only.split(",")] + ["scaling"] * given.scaling
        if unknown := set(wanted) - set(PARTS):
            parser.error(f"--only knows {', '.join(PARTS)}, not {', '.join(sorted(unknown))}")
    if min(given.rounds, given.peer_rounds) < 1:
        parser.error("--rounds and --peer-rounds are at least 1")
    if (given.memory_csv or given.memory_plot) and "memory" not in wanted:
        parser.error("--memory-csv and --memory-plot need the part memory")
    if given.trace is not None and given.calls is not None:
        parser.error("--trace or --calls, not both")
    try:
        with tempfile.TemporaryDirectory(prefix="vani-bench-") as folder:
            found = _measure(given, wanted, Path(folder))
        _write(given, found)
    except VaniError as error:
        print(f"benchmarks: {error}", file=sys.stderr)
        return error.exit_code
    except CommandError as error:
        print(f"benchmarks: {error}", file=sys.stderr)
        return 3
    except ValueError as error:
        # The generator's refusals: too few calls for so many files and ranks.
        print(f"benchmarks: {error}", file=sys.stderr)
        return 2
    show(found)
    return 0


def _measure(given: argparse.Namespace, wanted: Sequence[str], folder: Path) -> dict[str, Any]:
    generated: Generated | None = None
    trace = given.trace or (_SHARED if given.calls is None and _SHARED.is_dir() else None)
    if trace is None:
        trace = folder / "generated"
        generated = generate_trace(
            trace,
            Workload(
                calls=given.calls or 2_000_000,
                ranks=given.ranks,
                files=given.files,
                pattern=given.pattern,
                layout=given.layout,
                zlib_level=1,
            ),
        )
    calls = int(open_trace(trace).calls_per_rank().sum())
    found: dict[str, Any] = {
        "schema": "vani.benchmark/1",
        "machine": machine(),
        "versions": versions(),
        "trace": {
            "name": trace.resolve().name,
            "calls": calls,
            "ranks": open_trace(trace).ranks,
            "generated": None if generated is None else vars(generated),
        },
    }
    for part in PARTS:
        if part not in wanted:
            continue
        print(f"measuring {part} ...", file=sys.stderr)
        if part == "stages":
            found[part] = stages(trace, folder, rounds=given.rounds)
        elif part == "rates":
            found[part] = rates(trace, folder, rounds=given.rounds)
        elif part == "commands":
            found[part] = commands(trace, folder, rounds=given.rounds, quick_calls=given.quick_calls)
        elif part == "memory":
            found[part] = memory(trace, folder, scheduler=given.scheduler)
            _compare(found[part], generated)
        elif part == "scaling":
            found[part] = growth(folder, calls=given.scaling_calls)
        else:
            found[part] = peers(
                folder,
                calls=given.peer_calls,
                limit_s=given.peer_limit,
                rounds=given.peer_rounds,
                pythons=given.peer_python,
                given=given.peer_input,
            )
    return found


def _compare(found: dict[str, Any], generated: Generated | None) -> None:
    """A speed is worth nothing if the result is wrong."""
    if generated is None:
        return
    written = [generated.calls, generated.bytes_read, generated.bytes_written]
    profiled = [found["records"], *found["bytes"]]
    if written != profiled:
        raise CommandError(
            f"the profile tells {profiled} (calls, bytes read, written); {written} are in the trace"
        )


def _write(given: argparse.Namespace, found: dict[str, Any]) -> None:
    texts: list[tuple[Path | None, str]] = [(given.json, json.dumps(found, indent=1) + "\n")]
    if "memory" in found:
        title = f"Memory of vani profile: {found['trace']['calls']:,} calls"
        texts.append((given.memory_csv, as_csv(found["memory"])))
        texts.append((given.memory_plot, json.dumps(as_vega_lite(found["memory"], title), indent=1) + "\n"))
    for place, text in texts:
        if place is None:
            continue
        if not place.absolute().parent.is_dir():
            raise InputError("its folder does not exist", where=place, todo="make it first")
        write_text(place, text)


if __name__ == "__main__":
    sys.exit(main())
