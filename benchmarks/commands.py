"""Whole commands, as users run them: what they take from the shell's prompt to the next, and their peak memory.

`profile` decodes and measures with an empty cache. What comes after it shows what reading calls again costs: another
machine needs none of them; another phase gap and a plot over time need them all, decoded again or from the store of
`profile --store`. `--quick` reads the grammar alone, also of a generated trace of 10^9 calls with 10^4 grammar symbols.
The trace of 1,000 calls shows what starting costs.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.processes import Run, succeed
from benchmarks.rates import VANI
from tests.traces.trace_generator import Workload, generate_trace
from vani.advisors.catalogue import rules
from vani.readers.open import open_trace
from vani.readers.trace_reader import CountsCalls

__all__ = ["commands"]

_QUICK_SYMBOLS = 10_000


def commands(trace: Path, folder: Path, *, rounds: int, quick_calls: int = 10**9) -> list[dict[str, Any]]:
    """Run each command `rounds` times.

    Returns
    -------
    list of dict
        command, calls (null without a trace), and of the fastest round: seconds, cpu_s, peak_bytes,
        calls_per_s; goal_s, what it should take at most, null where nothing is asked.
    """
    reader = open_trace(trace)
    calls = int(reader.calls_per_rank().sum())
    store, small, many = folder / "commands-store", folder / "commands-small", folder / "commands-many"
    cache, profile = folder / "commands-cache", folder / "commands-profile.yaml"
    generate_trace(small, Workload(calls=1000, ranks=2, files=2))
    found = []

    def add(
        name: str,
        of: int | None,
        arguments: Sequence[str | Path],
        goal_s: float | None = None,
        *,
        fresh: Sequence[Path] = (),
    ) -> None:
        done: list[Run] = []
        for _ in range(rounds):
            for place in fresh:
                shutil.rmtree(place, ignore_errors=True)
            done.append(succeed([*VANI, *arguments], environment={"VANI_CACHE": str(cache)}))
        best = min(done, key=lambda one: one.seconds)
        found.append(
            {
                "command": name,
                "calls": of,
                "seconds": best.seconds,
                "cpu_s": best.cpu_s,
                "peak_bytes": max(one.memory_bytes for one in done),
                "calls_per_s": None if of is None else of / best.seconds,
                "goal_s": goal_s,
            }
        )

    add("profile, 1,000 calls", 1000, ["profile", small, "-o", profile, "-q"], 1.0, fresh=[cache])
    add("advise", None, ["advise", profile, "-o", folder / "commands-advice.yaml"], 0.5)
    add("explain", None, ["explain", min(rule.id for rule in rules())], 0.3)
    add("--help", None, ["--help"], 0.2)
    again = ["profile", trace, "-o", profile, "-q"]
    gap, kept = ["--phase-gap", "0.001"], ["--store", store]
    plot = ["plot", "heat-map", profile, "-o", folder / "commands-plot.json", "-q"]
    add("profile", calls, again, fresh=[cache])
    add("profile, another machine", calls, [*again, "--system", "lassen"])
    add("profile, other phases", calls, [*again, *gap], fresh=[cache])
    add("plot heat-map", calls, plot)
    add("profile --store", calls, [*again, *kept], fresh=[store])
    add("profile --store, other phases", calls, [*again, *gap, *kept])
    add("plot heat-map --store", calls, [*plot, *kept])
    if isinstance(reader, CountsCalls):
        add("profile --quick", calls, ["profile", trace, "--quick", "-o", profile, "-q"])
    if quick_calls:
        generate_trace(
            many, Workload(calls=quick_calls, pattern="random", symbols=_QUICK_SYMBOLS, times=False)
        )
        add(
            f"quick, {quick_calls:.3g} calls",
            quick_calls,
            ["profile", many, "--quick", "-o", profile, "-q"],
            2.0,
        )
        shutil.rmtree(many)
    shutil.rmtree(small)
    for place in (store, cache):
        shutil.rmtree(place, ignore_errors=True)
    return found
