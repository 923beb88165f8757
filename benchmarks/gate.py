"""`python -m benchmarks.gate [--checks N] [--seed N]`: false alarms of `vani check`, and the slowdowns that it finds.

Runs are those of a real profile whose times have log-normal noise: one factor for all times of a run (`together`), or
one for the run time and another for I/O (`apart`). A check is the whole check without a policy; it counts if it fails.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from typing import Final

from benchmarks.data import ROOT, print_table, run
from vani.gate.matching import Figures, read_figures
from vani.gate.policy import no_policy
from vani.gate.verdict import verdict_on

PROFILE: Final = ROOT / "tests" / "golden" / "v3-ckpt-then-restart-8r.yaml"
RUNS: Final = ((1, 5), (3, 5), (5, 5), (5, 10))
"""Checked runs, and runs of the baseline."""


def noisy(figures: Figures, noise: random.Random, sigma: float, slower: float, *, together: bool) -> Figures:
    """A run that takes `slower` times as long, with noise."""
    whole = math.exp(noise.gauss(0, sigma))
    factors = slower * whole, slower * (whole if together else math.exp(noise.gauss(0, sigma)))
    workflow = figures.tree["workflow"]
    times = {key: value * factors[1] for key, value in workflow["io"]["time_s"].items() if value is not None}
    io = workflow["io"] | {"time_s": workflow["io"]["time_s"] | times}
    share = min(1.0, workflow["io_time_share"] * factors[1] / factors[0])
    changed = workflow | {"runtime_s": workflow["runtime_s"] * factors[0], "io": io, "io_time_share": share}
    return replace(figures, tree=figures.tree | {"workflow": changed})


def failing(checks: int, seed: int, sigma: float, slower: float = 1.0, *, together: bool) -> Iterator[str]:
    """The share of checks that fail, for each of `RUNS`."""
    figures, noise = read_figures(PROFILE.read_bytes(), PROFILE.name, ()), random.Random(seed)
    for now, before in RUNS:
        failed = 0
        for _ in range(checks):
            checked = [noisy(figures, noise, sigma, slower, together=together) for _ in range(now)]
            baseline = [noisy(figures, noise, sigma, 1.0, together=together).tree for _ in range(before)]
            options = {"today": date.min, "fail_on": None, "allow_empty": False, "version": ""}
            failed += verdict_on(no_policy(), checked, baseline, [], [], **options).verdict == "fail"
        yield f"{failed / checks:.1%}"


def main(checks: int = 2000, seed: int = 0) -> None:
    """Print the tables."""
    head = ["", *(f"{now} + {before} runs" for now, before in RUNS)]
    for together in (True, False):
        noise = "together" if together else "apart"
        rows = ([f"noise {n / 10}", *failing(checks, seed, n / 10, together=together)] for n in range(1, 6))
        print_table(f"False alarms, times vary {noise}", head, rows)
        found = ([f"{slow} times", *failing(checks, seed, 0.3, slow, together=together)] for slow in (1.5, 2.0, 3.0))
        print_table(f"Slowdowns found at noise 0.3, times vary {noise}", head, found)


if __name__ == "__main__":
    run(main)
