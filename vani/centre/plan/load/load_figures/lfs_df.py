"""`lfs df` on a client: sizes of OSTs in KiB, and flags of those that accept no new objects (lfs-df.1)."""

from __future__ import annotations

import re
from typing import Final

from vani.centre.plan.load.load_figures.figures import Figures, target_of
from vani.errors import InputError
from vani.units import KiB

_LINE: Final = re.compile(
    r"^(?P<name>[\w.-]+-OST[0-9a-f]{4})_UUID\s+(?P<total>\S+)\s+(?P<used>\S+)\s+(?P<free>\S+)\s+\S+%\s+\S*\[OST:\d+\]"
    r"\s*(?P<flags>[A-Za-z]*)\s*$"
)
_AWAY: Final = re.compile(r"^(?:(?P<system>\S+)-)?OST(?P<index>[0-9a-f]{4})(?:_UUID)?\s*:\s*\S")
_NO_OBJECTS: Final = frozenset("RSNI")
"""Read-only; no space; no precreation; no inodes."""


def read_lfs_df(text: str, figures: Figures, where: str) -> bool:
    """Read such lines into `figures`; False if the text has none.

    Raises
    ------
    InputError
        Sizes are rounded, as printed with `-h`.
    """
    known = False
    system: str | None = None
    for line in text.splitlines():
        if (match := _LINE.match(line)) is not None:
            sizes = [match["total"], match["used"], match["free"]]
            if not all(size.isdecimal() for size in sizes):
                raise InputError(f"{sizes[0]!r} is rounded", where=where, todo="run `lfs df` without -h")
            named = target_of(match["name"])
            assert named is not None
            system = named[0]
            target = figures.target(system, named[2])
            if target.size is None:
                # Reserved bytes count neither as used nor as available.
                target.size, target.available = int(sizes[0]) * KiB, int(sizes[2]) * KiB
            target.is_degraded |= "D" in match["flags"]
            target.is_offline |= bool(_NO_OBJECTS & set(match["flags"]))
            known = True
        elif (match := _AWAY.match(line)) is not None and (match["system"] or system) is not None:
            # An OST that does not answer is listed without its file system, after others of the same one.
            figures.target(match["system"] or system or "", int(match["index"], 16)).is_offline = True
            known = True
    return known
