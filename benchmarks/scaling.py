"""`python -m benchmarks.scaling`: one and two workers measured here, a thousand computed from what stages cost.

Three things are measured: what each stage costs on one core (processor seconds, bytes on disk, bytes and combination
of partial results), what a task costs the scheduler, and how long one and two workers of a cluster on this machine
take (turn by turn; the ratio counts, and processor seconds, as machines are shared). `benchmarks/scaling_model.py`
puts the costs together. `--page docs/scaling.md` writes the tables into the page.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from benchmarks.machine import machine, versions
from benchmarks.scaling_costs import decoded, measured_costs
from benchmarks.scaling_page import page_with, tables
from benchmarks.scaling_runs import one_and_two, scheduler_cost

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scaling", description=__doc__)
    parser.add_argument("--calls", type=float, default=4e6, help="size of the generated trace")
    parser.add_argument("--files", type=int, default=20_000, help="files of the trace of many files")
    parser.add_argument("--turns", type=int, default=3, help="turns of one and two workers")
    parser.add_argument("--json", type=Path, help="write the figures here, too")
    parser.add_argument("--page", type=Path, help="write the tables into this page, between its marks")
    options = parser.parse_args(arguments)
    calls = int(options.calls)
    began = machine()
    with tempfile.TemporaryDirectory(prefix="vani-scaling-") as name:
        folder = Path(name)
        per_task, task_bytes = scheduler_cost()
        costs = measured_costs(
            folder, calls=calls, files=options.files, seconds_per_task=per_task, task_bytes=task_bytes
        )
        decode, inflate = decoded(folder / "calls")
        runs = one_and_two(folder, calls, options.turns)
    document = {
        "machine": began,
        "versions": versions(),
        "calls": calls,
        "files": options.files,
        "costs": costs.document(),
        "decode_s_per_call": decode,
        "inflate_s_per_call": inflate,
        "runs": [asdict(run) for run in runs],
    }
    text = tables(document)
    sys.stdout.write(text + "\n")
    if options.json:
        options.json.write_text(json.dumps(document, indent=1) + "\n")
    if options.page:
        options.page.write_text(page_with(options.page.read_text(), text))


if __name__ == "__main__":
    main()
