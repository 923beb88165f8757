"""The most important files of a long profile, without reading the others.

A profile of 50,000 files has 50 to 100 MB of YAML, which take seconds to parse and check. What `emit` writes is
regular enough to find the entries of `files` and their I/O times by searching bytes; the text without the
others is then read as carefully as any. What stands in the others is not looked at, right or wrong.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

__all__ = ["Excerpt", "excerpt", "most_important"]

_BEGIN: Final = b"\nfiles:\n- path: "
_ENTRY: Final = b"\n- path: "
_END: Final = b"\nexcluded:"
_TIME: Final = re.compile(rb"\n    time_s: \{[^}\n]*total: ([0-9.e+-]{1,40})\}\n")


@dataclass(frozen=True)
class Excerpt:
    """A profile's text with some of its files; `kept` are their positions in the whole list, ascending."""

    text: bytes
    kept: tuple[int, ...]
    listed: int
    io_time_share: float


def most_important(times: Sequence[float], count: int) -> tuple[tuple[int, ...], float]:
    """Positions (ascending) of the `count` largest times, of equal ones the first, and their share of all."""
    order = sorted(range(len(times)), key=times.__getitem__, reverse=True)
    kept = tuple(sorted(order[:count]))
    whole = sum(times)
    return kept, sum(times[i] for i in kept) / whole if whole else 1.0


def excerpt(content: bytes, count: int) -> Excerpt | None:
    """Keep the `count` files with the most I/O time.

    None where the text is not as `emit` writes profiles, or lists no more files than that: read all of it.
    """
    begin = content.find(_BEGIN)
    # From the end: behind the files comes little.
    end = content.rfind(_END, begin + 1) if begin >= 0 else -1
    if end < 0:
        return None
    begin += len(b"\nfiles:")
    found = _TIME.findall(content, begin, end)
    listed = len(found)
    # Exactly one time per entry: a list with an entry of another shape is not for us.
    if listed <= count or content.count(_ENTRY, begin, end) != listed:
        return None
    try:
        times = list(map(float, found))
    except ValueError:
        return None
    kept, share = most_important(times, count)
    if kept[-1] == count - 1:  # as Vani writes them: most I/O time first
        stop = begin
        for _ in range(count):
            stop = content.index(_ENTRY, stop + 1)
        files = content[begin:stop]
    else:
        entries = content[begin:end].split(_ENTRY)
        files = b"".join(_ENTRY + entries[i + 1] for i in kept)
    return Excerpt(content[:begin] + files + content[end:], kept, listed, share)
