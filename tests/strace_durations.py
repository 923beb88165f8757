"""The same calls on storage of another speed: a trace of strace with its durations rescaled."""

from __future__ import annotations

import math
import random
import re
from pathlib import Path

_LINE = re.compile(r"(\d+) +(\d+\.\d+) (.*)")
_DURATION = re.compile(r"<(\d+\.\d+)>$")
_CALL = re.compile(r"(?:<\.\.\. )?(\w+)")
_WAITS = re.compile(r"wait|futex|poll|select|nanosleep")
_KINDS = {"sync": re.compile("sync"), "read": re.compile("^p?read"), "write": re.compile("^p?write")}


def kind_of(call: str) -> str | None:
    """The kind of a call whose time depends on the storage; None if it waits for a process."""
    if _WAITS.search(call):
        return None
    return next((kind for kind, calls in _KINDS.items() if calls.search(call)), "metadata")


def rescaled(trace: Path, target: Path, seed: int, *, most: float = 3.0) -> None:
    """Write the trace as if each kind of call were up to `most` times faster or slower, and each call varied by a third.

    The program computes as long as before between two calls of a thread.
    """
    draw = random.Random(seed)
    factors = {kind: most ** draw.uniform(-1, 1) for kind in (*_KINDS, "metadata")}
    for source in sorted(path for path in trace.rglob("*") if path.is_file()):
        copy = target / source.relative_to(trace)
        copy.parent.mkdir(parents=True, exist_ok=True)
        lines = source.read_text(errors="surrogateescape").splitlines()
        if source.suffix == ".strace":
            lines = _later(lines, factors, draw)
        copy.write_text("\n".join(lines) + "\n", errors="surrogateescape")


def _later(lines: list[str], factors: dict[str, float], draw: random.Random) -> list[str]:
    shift: dict[str, float] = {}
    last = 0.0
    rows = []
    for line in lines:
        thread, start, rest = _LINE.fullmatch(line).groups()
        # A thread that begins has the delay of the one that ran before.
        last = shift.setdefault(thread, last)
        begin = float(start) + last
        if (taken := _DURATION.search(rest)) and (kind := kind_of(_CALL.match(rest)[1])):
            before = float(taken[1])
            after = before * factors[kind] * math.exp(draw.gauss(0, 0.3))
            rest = f"{rest[: taken.start()]}<{after:.6f}>"
            last = shift[thread] = last + after - before
        rows.append((begin, f"{thread} {begin:.6f} {rest}"))
    return [line for _, line in sorted(rows, key=lambda row: row[0])]
