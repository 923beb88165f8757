"""Whether a call of a larger trace costs more: `python -m benchmarks.larger`, processor time per call.

Traces of the same pattern, ranks and files, which differ in the number of calls, are inflated, converted and profiled
in turn; what starting takes is measured on a trace of 1,000 calls in each round, and subtracted. Inflating the time
stamps, which cannot depend on the size, shows how far the machine's own noise goes.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import get_args

from isal import isal_zlib

from benchmarks.machine import machine
from benchmarks.rates import inflated_rate, run_anew
from tests.traces.trace_generator import Pattern, Workload, count, generate_trace
from vani.kernels.loader import state

__all__ = ["larger", "main"]

GOAL = 1.1
"""Processor time per call of the largest trace over that of the smallest, start-up apart."""


def larger(folder: Path, workloads: Sequence[Workload], *, rounds: int) -> dict[str, list[dict[int, float]]]:
    """Measure what a call of each trace costs, `rounds` times.

    Returns
    -------
    dict
        For `inflate`, `convert` and `profile` a dict per round: seconds of processor time per call, by the number of
        calls.
    """
    small = folder / "small"
    generate_trace(small, Workload(calls=1000, ranks=2, files=2))
    traces = {}
    for one in workloads:
        traces[one.calls] = folder / f"calls-{one.calls}"
        generate_trace(traces[one.calls], one)
    found: dict[str, list[dict[int, float]]] = {"inflate": [], "convert": [], "profile": []}
    for _ in range(rounds):
        found["inflate"].append({calls: _inflating(trace) for calls, trace in traces.items()})
        for name in ("convert", "profile"):
            start = run_anew(name, small, folder).cpu_s
            found[name].append(
                {
                    calls: max(run_anew(name, trace, folder).cpu_s - start, 1e-3) / calls
                    for calls, trace in traces.items()
                }
            )
    return found


def _inflating(trace: Path) -> float:
    rate = inflated_rate(trace, isal_zlib)
    assert not isinstance(rate, str), rate
    return 1 / rate


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; return the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--calls", default="6e6,2e7", metavar="N,N", help="default 6e6,2e7")
    parser.add_argument("--ranks", type=count, default=64)
    parser.add_argument("--files", type=count, default=256)
    parser.add_argument("--pattern", choices=get_args(Pattern), default="mixed")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures here, too")
    asked = parser.parse_args(arguments)
    try:
        sizes = sorted({count(size) for size in asked.calls.split(",")})
    except (ValueError, argparse.ArgumentTypeError):
        parser.error(f"--calls takes numbers such as 6e6,2e7, not {asked.calls}")
    if len(sizes) < 2:
        parser.error("--calls takes two numbers at least")
    workloads = [
        Workload(calls=size, ranks=asked.ranks, files=asked.files, pattern=asked.pattern, zlib_level=1)
        for size in sizes
    ]
    with tempfile.TemporaryDirectory(prefix="vani-bench-") as name:
        found = larger(Path(name), workloads, rounds=asked.rounds)
    about = machine()
    print(f"{about['processor']}, load {about['load_1min']:.1f}, kernels: {state()}, {asked.ranks} ranks")
    for what, rounds in found.items():
        ratio = statistics.median(one[sizes[-1]] / one[sizes[0]] for one in rounds)
        costs = ", ".join(
            f"{1e9 * statistics.median(one[size] for one in rounds):.1f} ns a call of {size:.3g}"
            for size in sizes
        )
        goal = f", goal {GOAL}x" if what != "inflate" else ""
        print(f"{what:8} {ratio:5.2f}x{goal}: {costs}")
    if asked.json is not None:
        asked.json.write_text(json.dumps({"machine": about, **found}, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
