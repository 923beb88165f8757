"""What a second processor is worth to `vani convert` and `vani profile`: `python -m benchmarks.two_threads`.

Each round runs either on one processor and on two, where they have a second thread or, on Linux, a fork of themselves,
one after the other, and subtracts what they take on a trace of 1,000 calls. On an idle machine the times by the clock
tell it all. Where others work they do not: threads that only inflate, and share nothing, show what the machine has to
give in the same round, and so do two runs at once, each on a processor of its own, which share no more than caches and
memory. Two bounds from processor time stand beside the clock:

    at least    processor time on one, which is what it takes by the clock where nobody else works, over time by the
                clock on two, which others can only have made longer
    at most     twice the processor time on one over that on two: both processors at work throughout

and how many processors others kept busy meanwhile.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.busy_machine import others_meanwhile
from benchmarks.machine import machine
from benchmarks.processes import Run, succeed
from benchmarks.rates import run_anew
from tests.traces.trace_generator import Workload, count, generate_trace
from vani.kernels.loader import state

__all__ = ["Turn", "has_two_processors", "main", "ratios", "two_threads"]

GOAL = 1.85
"""Time by the clock on one processor over that on two, with kernels, start-up apart."""

REST_S = 4.0
"""Some systems, such as virtual machines that give freed memory back to their host, do so some seconds after the
program that freed it has ended, on a processor that the next one would use."""

_Work = Callable[[Path, Sequence[int]], Run]

_COMMANDS = ("convert", "profile")
_LEAST_S = 1e-3
"""Tiny traces take no longer than starting."""
_PIECES = 1000
"""Of 1 MiB, which threads inflate: some seconds of processor time."""
_INFLATE = """
import os, random, sys, threading, zlib
from isal import isal_zlib
from vani.allocator import keep_freed_memory
keep_freed_memory()
# Codes of four bits: what repeats is copied, which tells of memory alone.
packed = zlib.compress(bytes(random.Random(18).choices(range(16), k=1 << 20)), 1)
threads = len(os.sched_getaffinity(0))
def work():
    for _ in range(int(sys.argv[1]) // threads):
        isal_zlib.decompress(packed)
every = [threading.Thread(target=work) for _ in range(threads)]
for one in every: one.start()
for one in every: one.join()
"""


@dataclass(frozen=True)
class Turn:
    """What a command took on some processors, without what starting takes."""

    seconds: float
    cpu_s: float
    others: float | None
    """Processors that other programs used meanwhile; null where the system does not tell."""


def ratios(one: Turn, two: Turn) -> dict[str, float]:
    """By the clock, at least and at most where nobody else works, and what processor time the second one adds."""
    return {
        "clock": one.seconds / two.seconds,
        "at_least": one.cpu_s / two.seconds,
        "at_most": 2 * one.cpu_s / two.cpu_s,
        "processor_time": two.cpu_s / one.cpu_s,
    }


def has_two_processors() -> bool:
    """Whether this process may use two, and the system can hold a command to one."""
    return hasattr(os, "sched_getaffinity") and len(os.sched_getaffinity(0)) >= 2


def two_threads(
    trace: Path, folder: Path, *, rounds: int, rest_s: float = 0
) -> dict[str, list[dict[str, Any]]]:
    """Run the commands on one processor and on two, `rounds` times.

    Parameters
    ----------
    rest_s
        Nothing is done for so long before each run.

    Returns
    -------
    dict
        For `inflate`, `convert` and `profile` one dict per round: `one` and `two`, as `Turn`, `apart`, the seconds of
        two runs at once, each on a processor, and `ratios`.
    """
    cores = sorted(os.sched_getaffinity(0))[:2]
    small = folder / "small"
    generate_trace(small, Workload(calls=1000, ranks=2, files=2))
    work: dict[str, tuple[_Work, _Work]] = {
        "inflate": (partial(_inflate, 0), partial(_inflate, _PIECES)),
        **{name: (partial(_command, name, small), partial(_command, name, trace)) for name in _COMMANDS},
    }
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in work}
    for _ in range(rounds):
        for name, (start, whole) in work.items():
            turns = []
            for processors in (1, 2):
                time.sleep(rest_s)
                turns.append(_turn(start, whole, folder, cores[:processors]))
            one, two = turns
            time.sleep(rest_s)
            apart = _apart(start, whole, folder, cores)
            of_machine = sum(one.seconds / seconds for seconds in apart)
            told = {**ratios(one, two), "apart": of_machine}
            found[name].append({"one": asdict(one), "two": asdict(two), "apart": apart, "ratios": told})
    return found


def _inflate(pieces: int, folder: Path, cores: Sequence[int]) -> Run:
    return succeed([sys.executable, "-c", _INFLATE, str(pieces)], cores=cores, folder=folder)


def _command(name: str, trace: Path, folder: Path, cores: Sequence[int]) -> Run:
    return run_anew(name, trace, folder, cores=cores)


def _turn(start: _Work, whole: _Work, folder: Path, cores: Sequence[int]) -> Turn:
    began = start(folder, cores)
    with others_meanwhile() as others:
        done = whole(folder, cores)
    return Turn(
        max(done.seconds - began.seconds, _LEAST_S),
        max(done.cpu_s - began.cpu_s, _LEAST_S),
        others.processors(done),
    )


def _apart(start: _Work, whole: _Work, folder: Path, cores: Sequence[int]) -> list[float]:
    def alone(core: int) -> float:
        place = folder / f"processor-{core}"
        place.mkdir(exist_ok=True)
        began = start(place, [core])
        return max(whole(place, [core]).seconds - began.seconds, _LEAST_S)

    with ThreadPoolExecutor(len(cores)) as at_once:
        return list(at_once.map(alone, cores))


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; return the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--calls", type=count, default=6_000_000, help="default 6e6")
    parser.add_argument("--ranks", type=count, default=16)
    parser.add_argument("--files", type=count, default=64)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--rest", type=float, default=REST_S, metavar="S", help="before each run, default %(default)s"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures here, too")
    asked = parser.parse_args(arguments)
    if not has_two_processors():
        print(
            "two_threads: needs two processors, and a system that can hold a command to one", file=sys.stderr
        )
        return 2
    with tempfile.TemporaryDirectory(prefix="vani-bench-") as name:
        folder = Path(name)
        generate_trace(
            folder / "trace",
            Workload(calls=asked.calls, ranks=asked.ranks, files=asked.files, zlib_level=1),
        )
        found = two_threads(folder / "trace", folder, rounds=asked.rounds, rest_s=asked.rest)
    about = machine()
    print(f"{about['processor']}, load {about['load_1min']:.1f}, kernels: {state()}, {asked.calls:,} calls")
    for name, rounds in found.items():
        _show(name, rounds)
    if asked.json is not None:
        asked.json.write_text(json.dumps({"machine": about, "calls": asked.calls, **found}, indent=1) + "\n")
    return 0


def _show(name: str, rounds: list[dict[str, Any]]) -> None:
    middle = {what: statistics.median(one["ratios"][what] for one in rounds) for what in rounds[0]["ratios"]}
    print(
        f"{name}: two processors are {middle['clock']:.2f}x one by the clock"
        f"{f', goal {GOAL}x' if name in _COMMANDS else ''}; where nobody else works at least "
        f"{middle['at_least']:.2f}x, at most {middle['at_most']:.2f}x; "
        f"processor time {middle['processor_time']:.2f} times that of one; "
        f"two runs at once, each on a processor, {middle['apart']:.2f}x"
    )
    for one in rounds:
        told = [
            f"{label} {turn['seconds']:.2f} s, processor time {turn['cpu_s']:.2f} s, others {_processors(turn)}"
            for label, turn in (("one:", one["one"]), ("two:", one["two"]))
        ]
        told.append(f"apart: {one['ratios']['apart']:.2f}x")
        print(f"    {one['ratios']['clock']:.2f}x; {'; '.join(told)}")


def _processors(turn: dict[str, Any]) -> str:
    return "unknown" if turn["others"] is None else f"{turn['others']:.2f} processors"


if __name__ == "__main__":
    sys.exit(main())
