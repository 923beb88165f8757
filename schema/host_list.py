"""Lists of hosts as Slurm writes them: `n[01-03,7],login1` is n01, n02, n03, n7, login1."""

from __future__ import annotations

import re
from typing import Final

from vani.errors import InputError

__all__ = ["MOST_HOSTS", "expand"]

MOST_HOSTS: Final = 1_000_000

_PART = re.compile(r"(?:[A-Za-z0-9._-]|\[[0-9,-]+\])+")
_PIECE = re.compile(r"([^\[\]]+)|\[([^\[\]]*)\]")
_RANGE = re.compile(r"([0-9]{1,18})(?:-([0-9]{1,18}))?")


def expand(text: str) -> list[str]:
    """Write out a list of hosts, in its order.

    Raises
    ------
    InputError
        It is no such list, or stands for more than a million names.
    """
    hosts: list[str] = []
    rest = text
    while rest:
        match = _PART.match(rest)
        if match is None or not rest[match.end() :].startswith((",", "")[not rest[match.end() :]]):
            raise _refused(text, "is no list of hosts")
        hosts += _names(match[0], text, MOST_HOSTS - len(hosts))
        rest = rest[match.end() + 1 :]
    if not hosts or text.endswith(","):
        raise _refused(text, "is no list of hosts")
    return hosts


def _names(part: str, text: str, most: int) -> list[str]:
    names = [""]
    for fixed, ranges in _PIECE.findall(part):
        tails = [fixed] if fixed else _numbers(ranges, text, most)
        if len(names) * len(tails) > most:
            raise _refused(text, f"stands for more than {MOST_HOSTS:,} hosts")
        names = [name + tail for name in names for tail in tails]
    return names


def _numbers(ranges: str, text: str, most: int) -> list[str]:
    found: list[str] = []
    for one in ranges.split(","):
        match = _RANGE.fullmatch(one)
        if match is None:
            raise _refused(text, "is no list of hosts")
        low, high = int(match[1]), int(match[2] or match[1])
        if high < low:
            raise _refused(text, "is no list of hosts")
        if high - low >= most - len(found):
            raise _refused(text, f"stands for more than {MOST_HOSTS:,} hosts")
        found += [str(number).zfill(len(match[1])) for number in range(low, high + 1)]
    return found


def _refused(text: str, what: str) -> InputError:
    shown = text if len(text) <= 40 else f"{text[:37]}..."
    return InputError(what, where=repr(shown), todo="write it as Slurm does: n[1-64,70],login1")
