"""How fast Vani is beside the physical limit, in one run: inflating the time stamps on one core.

Machines are noisy, so each round measures the limit and the commands one after the other, and what counts are the
ratios of processor time within a round. What starting takes is measured on a trace of 1,000 calls. Threads are compared
by `benchmarks.two_threads`, sizes by `benchmarks.larger`.
"""

from __future__ import annotations

import shutil
import statistics
import sys
import time
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from isal import isal_zlib

from benchmarks.kernel_pieces import kernel_pieces
from benchmarks.processes import Run, succeed
from tests.traces.trace_generator import Workload, generate_trace
from vani.kernels.loader import state
from vani.readers.open import open_trace

__all__ = ["VANI", "inflate_rate", "inflated_rate", "rates", "run_anew"]

VANI = (sys.executable, "-m", "vani")

_READ, _PIECE = 1 << 18, 1 << 21
_LEAST_S = 0.5
"""So long is inflated again and again: the clock of processor time is coarse."""
_FEW = 100_000
"""Fewer calls say nothing about a rate, however often."""


def inflate_rate(trace: Path, library: Any) -> tuple[int, float] | str:
    """Inflate all time stamps of a trace on one core, in bounded memory.

    Parameters
    ----------
    library
        `zlib` or `isal.isal_zlib`.

    Returns
    -------
    tuple or str
        Calls, and seconds of processor time for them; or why there is nothing to inflate.
    """
    reader = open_trace(trace)
    file = trace / "recorder.ts"
    if reader.tool != "recorder" or not file.is_file():
        return "this kind of trace has no file of time stamps to inflate"
    with file.open("rb") as source:
        sizes = [int.from_bytes(source.read(8), "little") for _ in range(reader.ranks)]
        if not any(sizes):
            return "the trace has no time stamps"
        held, seconds = 0, 0.0
        for size in sizes:
            if not size:
                continue
            head = source.read(18)
            # RFC 1950: a zlib stream begins with method 8, and its first two bytes are a multiple of 31.
            if head[16] & 15 != 8 or int.from_bytes(head[16:18], "big") % 31:
                return "the time stamps of this trace are not compressed"
            stream, left, packed = library.decompressobj(), size - 18, head[16:18]
            while packed and not stream.eof:
                began = time.process_time()
                held += len(stream.decompress(packed, _PIECE))
                seconds += time.process_time() - began
                packed = stream.unconsumed_tail
                if not packed:
                    packed = source.read(min(_READ, left))
                    left -= len(packed)
            source.seek(left, 1)
    return held // 8, seconds


def rates(trace: Path, folder: Path, *, rounds: int) -> dict[str, Any]:
    """Convert and profile a trace as commands, and inflate its time stamps, `rounds` times.

    Returns
    -------
    dict
        `calls`; `kernels`: whether compiled ones are in use, and `kernel_pieces`: how many pieces of the work of
        `vani profile` each of them did, and declined; `rounds`, one dict each: calls per second of processor time of
        zlib and isal, those of the commands convert and profile by the clock, and per core (`convert_cpu`);
        `convert_x_isal`: processor time of the command over that of inflating, `convert_work_x_isal`: the same without
        what starting takes, `convert_start_s`: that; null with a `note` where there is nothing to inflate; `median`
        and `best` of each.
    """
    calls = int(open_trace(trace).calls_per_rank().sum())
    small = folder / "rates-small"
    generate_trace(small, Workload(calls=1000, ranks=2, files=2))
    found: list[dict[str, float | None]] = []
    note = ""
    for _ in range(rounds):
        one: dict[str, float | None] = {}
        for name, library in (("zlib", zlib), ("isal", isal_zlib)):
            inflated = inflated_rate(trace, library)
            if isinstance(inflated, str):
                note, one[name] = inflated, None
            else:
                one[name] = inflated
        for name in ("convert", "profile"):
            start = run_anew(name, small, folder)
            done = run_anew(name, trace, folder)
            one[name] = calls / done.seconds
            one[f"{name}_cpu"] = calls / done.cpu_s
            one[f"{name}_start_s"] = start.cpu_s
            for limit in ("zlib", "isal"):
                rate = one[limit]
                least = None if rate is None else calls / rate
                one[f"{name}_x_{limit}"] = None if least is None else done.cpu_s / least
                one[f"{name}_work_x_{limit}"] = None if least is None else (done.cpu_s - start.cpu_s) / least
        found.append(one)
    shutil.rmtree(small)
    median, best = {}, {}
    for name in found[0]:
        values = [value for one in found if (value := one[name]) is not None]
        median[name] = statistics.median(values) if values else None
        lower_is_better = "_x_" in name or name.endswith("_s")
        best[name] = (min if lower_is_better else max)(values, default=None)
    return {
        "calls": calls,
        "kernels": state(),
        "kernel_pieces": kernel_pieces(trace, folder),
        "rounds": found,
        "median": median,
        "best": best,
        **({"note": note} if note else {}),
    }


def inflated_rate(trace: Path, library: Any) -> float | str:
    """Calls per second of processor time for inflating their time stamps; or why there is nothing to inflate."""
    calls, seconds = 0, 0.0
    while seconds < _LEAST_S:
        once = inflate_rate(trace, library)
        if isinstance(once, str):
            return once
        calls, seconds = calls + once[0], seconds + max(once[1], 1e-6)
        if once[0] < _FEW:
            break
    return calls / seconds


def run_anew(name: str, trace: Path, folder: Path, *, cores: Sequence[int] = ()) -> Run:
    """Run `vani convert` or `vani profile` as users do, with nothing left of runs before; raises CommandError.

    Parameters
    ----------
    cores
        Processors that it may use; all by default.
    """
    store, cache = folder / f"rates-{name}", folder / "rates-cache"
    arguments = [trace, store] if name == "convert" else [trace]
    try:
        return succeed([*VANI, name, *arguments, "-q"], cores=cores, environment={"VANI_CACHE": str(cache)})
    finally:
        for left in (store, cache):
            shutil.rmtree(left, ignore_errors=True)
