"""Whole commands, as users run them: what they take from the shell's prompt to the next, and their peak memory.

`profile` decodes and analyzes, into an empty folder of stores; `profile again` has another phase gap and decodes
nothing; `--quick` reads the grammar alone, also of a generated trace of 10^9 calls with 10^4 grammar symbols. The
trace of 1,000 calls shows what starting costs.
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
    profile = folder / "commands-profile.yaml"
    generate_trace(small, Workload(calls=1000, ranks=2, files=2))
    found = []

    def add(name: str, of: int | None, arguments: Sequence[str | Path], goal_s: float | None = None) -> None:
        fresh = name in ("profile", "profile, 1,000 calls")
        done: list[Run] = []
        for _ in range(rounds):
            if fresh:
                shutil.rmtree(store, ignore_errors=True)
            done.append(succeed([*VANI, *arguments]))
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

    kept = ["--store", store, "-q"]
    add("profile, 1,000 calls", 1000, ["profile", small, "-o", profile, *kept], 1.0)
    add("advise", None, ["advise", profile, "-o", folder / "commands-advice.yaml"], 0.5)
    add("explain", None, ["explain", min(rule.id for rule in rules())], 0.3)
    add("--help", None, ["--help"], 0.2)
    add("profile", calls, ["profile", trace, "-o", profile, *kept])
    add("profile again", calls, ["profile", trace, "-o", profile, "--phase-gap", "0.001", *kept])
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
    shutil.rmtree(store, ignore_errors=True)
    return found
