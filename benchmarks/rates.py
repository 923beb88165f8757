"""How fast Vani is beside the physical limit, in one run: inflating the time stamps on one core.

Machines are noisy, so each round measures the limit and the commands one after the other, and what counts are the
ratios within a round.
"""

from __future__ import annotations

import shutil
import statistics
import sys
import time
import zlib
from pathlib import Path
from typing import Any

from isal import isal_zlib

from benchmarks.processes import succeed
from vani.readers.open import open_trace

__all__ = ["VANI", "inflate_rate", "rates"]

VANI = (sys.executable, "-m", "vani")

_READ, _PIECE = 1 << 18, 1 << 21


def inflate_rate(trace: Path, library: Any) -> tuple[int, float] | str:
    """Inflate all time stamps of a trace on one core, in bounded memory.

    Parameters
    ----------
    library
        `zlib` or `isal.isal_zlib`.

    Returns
    -------
    tuple or str
        Calls, and seconds for them; or why there is nothing to inflate.
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
                began = time.perf_counter()
                held += len(stream.decompress(packed, _PIECE))
                seconds += time.perf_counter() - began
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
        `calls`; `rounds`, one dict each: calls per second of zlib and isal (one core), convert and profile (the
        command as a whole, all cores), null with a `note` where there is nothing to inflate; `median` of each and
        of the ratios convert_to_zlib and convert_to_isal, each taken within its round; `best` round of each.
    """
    calls = int(open_trace(trace).calls_per_rank().sum())
    found: list[dict[str, float | None]] = []
    note = ""
    for _ in range(rounds):
        one: dict[str, float | None] = {}
        for name, library in (("zlib", zlib), ("isal", isal_zlib)):
            inflated = inflate_rate(trace, library)
            if isinstance(inflated, str):
                note, one[name] = inflated, None
            else:
                one[name] = inflated[0] / inflated[1]
        for name in ("convert", "profile"):
            store = folder / f"rates-{name}"
            # Each converts anew: nothing is left of the round before.
            arguments = [trace, store] if name == "convert" else [trace, "--store", store]
            done = succeed([*VANI, name, *arguments, "-q"])
            shutil.rmtree(store)
            one[name] = calls / done.seconds
            one[f"{name}_cpu"] = calls / done.cpu_s
        for name in ("zlib", "isal"):
            limit = one[name]
            one[f"convert_to_{name}"] = None if limit is None else (one["convert"] or 0) / limit
        found.append(one)
    summary = {}
    best = {}
    for name in found[0]:
        values = [value for one in found if (value := one[name]) is not None]
        summary[name] = statistics.median(values) if values else None
        best[name] = max(values, default=None)
    return {
        "calls": calls,
        "rounds": found,
        "median": summary,
        "best": best,
        **({"note": note} if note else {}),
    }
