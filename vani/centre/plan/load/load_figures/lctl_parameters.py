"""`lctl get_param` on servers (obdfilter, osd-*, mdt) and on clients (osc, mdc)."""

from __future__ import annotations

import re
from typing import Final

from vani.centre.plan.load.load_figures.figures import Figures, target_of
from vani.units import KiB

_LINE: Final = re.compile(
    r"^(?P<kind>[\w-]+)\.(?P<name>[^\s=]*-(?:OST|MDT)[0-9a-fA-F]{4}[^\s=]*)\.(?P<key>\w+)=(?P<value>.*)$"
)
_CONNECTION: Final = re.compile(r"current_connection:\s*\"?([^\s\"]+)")
_STATE: Final = re.compile(r"^\s*state:\s*(\w+)")
_WORKING: Final = frozenset({"FULL", "IDLE"})
_SERVED: Final = frozenset({"obdfilter", "osd-ldiskfs", "osd-zfs", "ofd", "ost"})


def read_lctl_parameters(text: str, figures: Figures, server: str | None) -> bool:
    """Read such parameters into `figures`; False if the text has none.

    `server` is the one that printed the text and serves its OSTs. On a client, an OST's server is
    known by its network address.
    """
    known = False
    inside: tuple[str, int] | None = None
    free: dict[tuple[str, int], int] = {}
    sizes: dict[tuple[str, int], int] = {}
    available: dict[tuple[str, int], int] = {}
    for line in text.splitlines():
        match = _LINE.match(line)
        if match is None:
            if inside is not None:
                _read_import(line, figures, inside)
            continue
        inside = None
        named = target_of(match["name"])
        if named is None:
            continue
        known = True
        system, kind, index = named
        if kind == "MDT":
            if match["kind"] in {"mdt", "osd-ldiskfs", "osd-zfs", "mdd"}:
                figures.server(server).has_mdt = True
            continue
        place = (system, index)
        target = figures.target(*place)
        if match["kind"] in _SERVED and server is not None:
            target.server = server
        key, value = match["key"], match["value"].strip()
        if key in {"kbytestotal", "kbytesavail", "kbytesfree"} and value.isdecimal():
            by_place = {"kbytestotal": sizes, "kbytesavail": available, "kbytesfree": free}[key]
            by_place[place] = int(value) * KiB
        elif key == "degraded":
            target.is_degraded |= value == "1"
        elif key == "active":
            target.is_offline |= value == "0"
        elif key == "ost_conn_uuid" and value and target.server is None:
            target.server = value
        elif key == "import":
            inside = place
    for place, size in sizes.items():
        target = figures.target(*place)
        if target.size is None:
            target.size, target.available = size, available.get(place, free.get(place))
    return known


def _read_import(line: str, figures: Figures, place: tuple[str, int]) -> None:
    target = figures.target(*place)
    if (match := _STATE.match(line)) is not None:
        target.is_offline |= match[1] not in _WORKING
    elif (match := _CONNECTION.search(line)) is not None and target.server is None and "@" in match[1]:
        target.server = match[1]
