"""Files that processes write and read: the data dependencies of processes (paper, Fig. 1b to 4b)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from vani.render.plots.drawing import Drawing, Plot
from vani.render.plots.encoding import KINDS, chart, name, number, tail
from vani.schema.profile import Profile
from vani.schema.timeline import FileUse, HeatMap
from vani.units import counted, format_bytes

KIND, TITLE = "data-flow", "Which processes use which files"
_MOST_FILES = 14
_MOST_APPS = 14
_ROW_PX = 52
_LEFT, _MIDDLE, _RIGHT = 0.04, 0.5, 0.96


@dataclass(frozen=True)
class _Link:
    """Use of files by an app in one direction."""

    app: str
    files: str
    side: str
    processes: int
    bytes: int


def _draw(profile: Profile, heat: HeatMap | None) -> Drawing | str:
    if heat is None:
        return "it needs the decoded calls"
    links = [link for use in heat.uses for link in _links(use)]
    if not links:
        return "no data was read or written"
    moved: dict[str, int] = {}
    for link in links:
        moved[link.files] = moved.get(link.files, 0) + link.bytes
    files = sorted(moved, key=lambda f: (not f, -moved[f], f))
    files = [f for f in files if f][:_MOST_FILES]
    links = [link for link in links if link.files in files]
    sides = {side: _apps(links, side) for side in ("write", "read")}
    shown = [link for link in links if link.app in sides[link.side]]
    spec = _spec(heat, profile, files, sides, shown)
    left_out = len(moved) - len(files)
    total = {app.name: app.processes for app in profile.apps}
    said = "; ".join(
        f"{tail(f)}: "
        + ", ".join(_words(link, total, len(profile.apps) > 1) for link in links if link.files == f)
        for f in files[:8]
    )
    return Drawing(
        kind=KIND,
        title=TITLE,
        caption="From the processes that write (left) through files (middle; # means numbers that "
        "differ) to "
        "those that read (right); lines grow with the bytes. Look for one writer among many processes, for "
        "files that all "
        "read, and for files that pass data on."
        + (f" {counted(left_out, 'pattern')} with fewer bytes are left out." if left_out > 0 else ""),
        description=f"{counted(len(files), 'group')} of files. {said}.",
        spec=spec,
        table=(
            ("files", "number of files", "app", "readers", "writers", "read (bytes)", "written (bytes)"),
            tuple(
                (
                    name(u.pattern, 80) if u.pattern else "all others",
                    u.files,
                    name(u.app, 40),
                    u.readers,
                    u.writers,
                    u.bytes_read,
                    u.bytes_written,
                )
                for u in heat.uses[:200]
            ),
        ),
    )


def _links(use: FileUse) -> list[_Link]:
    both = (("write", use.writers, use.bytes_written), ("read", use.readers, use.bytes_read))
    return [
        _Link(use.app, use.pattern, side, processes, moved) for side, processes, moved in both if processes
    ]


def _apps(links: list[_Link], side: str) -> list[str]:
    """Apps of a side, those with most bytes, in order of the files that they use."""
    moved: dict[str, int] = {}
    for link in links:
        if link.side == side:
            moved[link.app] = moved.get(link.app, 0) + link.bytes
    return sorted(moved, key=lambda a: (-moved[a], a))[:_MOST_APPS]


def _words(link: _Link, total: dict[str, int], several: bool) -> str:
    who = f"{name(link.app, 24)} " if several else ""
    verb = {"write": "writes", "read": "reads"}[link.side] if link.processes == 1 else link.side
    processes = total.get(link.app, link.processes)
    of = (
        counted(link.processes, "process")
        if processes == link.processes
        else f"{link.processes:,} of {processes:,} processes"
    )
    return f"{who}{of} {verb} {format_bytes(link.bytes)}"


def _detail(files: int, links: list[_Link]) -> str:
    """`20 files: 20 processes write, 33 read`."""
    some = {side: sum(link.processes for link in links if link.side == side) for side in ("write", "read")}
    parts = [f"{n:,} {side}{'s' if n == 1 else ''}" for side, n in some.items() if n]
    # Name the noun only once: `9 processes write, 1 reads`.
    first = next(n for n in some.values() if n)
    parts[0] = parts[0].replace(f"{first:,}", counted(first, "process"), 1)
    return (f"{files:,} files: " if files > 1 else "") + ", ".join(parts)


def _spec(
    heat: HeatMap, profile: Profile, files: list[str], sides: dict[str, list[str]], links: list[_Link]
) -> dict[str, Any]:
    height = max(len(files), *(len(apps) for apps in sides.values()), 1)
    several = len(profile.apps) > 1
    total = {app.name: app.processes for app in profile.apps}
    place = {f: (i + 0.5) * height / len(files) for i, f in enumerate(files)}
    number_of = {u.pattern: u.files for u in heat.uses}
    column = {"write": _LEFT, "read": _RIGHT}
    nodes: list[dict[str, Any]] = []
    at: dict[tuple[str, str], float] = {}
    for side, apps in sides.items():
        # Put each app at the height of its files, then space the apps evenly in that order.
        centre = {
            app: _mean([place[link.files] for link in links if link.app == app and link.side == side])
            for app in apps
        }
        for i, app in enumerate(sorted(apps, key=lambda a: (centre[a], a))):
            at[side, app] = (i + 0.5) * height / len(apps)
            nodes.append(
                {
                    "x": column[side],
                    "y": number(at[side, app]),
                    "text": name(app, 18),
                    "detail": counted(total.get(app, 0), "process"),
                    "side": side,
                }
            )
    for f in files:
        nodes.append(
            {
                "x": _MIDDLE,
                "y": number(place[f]),
                "text": tail(f, 30),
                "detail": _detail(number_of.get(f, 1), [link for link in links if link.files == f]),
                "side": "file",
            }
        )
    most = max(link.bytes for link in links)
    curves = []
    for i, link in enumerate(links):
        x0, y0 = column[link.side], at[link.side, link.app]
        curves.append(
            {
                "e": i,
                "x0": x0,
                "y0": number(y0),
                "y1": number(place[link.files]),
                "w": number(1 + 7 * _share(link.bytes, most)),
                "kind": link.side,
                "tip": f"{_words(link, total, several)}: {tail(link.files, 60)}",
            }
        )
    x = {"field": "x", "type": "quantitative", "scale": {"domain": [0, 1]}, "axis": None}
    y = {
        "field": "y",
        "type": "quantitative",
        "scale": {"domain": [0, number(height)], "reverse": True, "nice": False},
        "axis": None,
    }
    curve = [
        {"calculate": "sequence(0, 1.0001, 0.0625)", "as": "t"},
        {"flatten": ["t"]},
        {"calculate": f"datum.x0 + ({_MIDDLE} - datum.x0) * datum.t", "as": "x"},
        {"calculate": "datum.y0 + (datum.y1 - datum.y0) * datum.t * datum.t * (3 - 2 * datum.t)", "as": "y"},
    ]
    colours = {
        "field": "kind",
        "type": "nominal",
        "scale": {"domain": list(KINDS)},
        "legend": {
            "title": None,
            "values": [s for s in ("read", "write") if sides[s]],
            "symbolType": "stroke",
        },
    }
    return chart(
        [],
        max(110, _ROW_PX * height),
        layer=[
            {
                "data": {"values": curves},
                "transform": curve,
                "mark": {"type": "line", "opacity": 0.65},
                "encoding": {
                    "x": x,
                    "y": y,
                    "detail": {"field": "e"},
                    "order": {"field": "t"},
                    "color": colours,
                    "strokeWidth": {"field": "w", "type": "quantitative", "scale": None},
                    "tooltip": {"field": "tip", "type": "nominal"},
                },
            },
            {
                "data": {"values": nodes},
                "mark": {"type": "point", "filled": True, "opacity": 1, "size": 110, "style": "arrow"},
                "encoding": {
                    "x": x,
                    "y": y,
                    "shape": {
                        "field": "side",
                        "type": "nominal",
                        "scale": {
                            "domain": ["write", "file", "read"],
                            "range": ["circle", "square", "circle"],
                        },
                        "legend": None,
                    },
                },
            },
            *(
                _text(nodes, side, x, y, style, field, align=align, dy=dy)
                for side, align in (("write", "left"), ("file", "center"), ("read", "right"))
                if side == "file" or sides[side]
                for field, dy in (("text", -12), ("detail", 15))
                for style in ("halo", "ink")
            ),
        ],
    )


def _text(
    values: list[dict[str, Any]], side: str, x: Any, y: Any, style: str, field: str, *, align: str, dy: int
) -> dict[str, Any]:
    return {
        "data": {"values": [{k: v[k] for k in ("x", "y", field)} for v in values if v["side"] == side]},
        "mark": {
            "type": "text",
            "style": style,
            "align": align,
            "dy": dy,
            "dx": {"left": -6, "right": 6}.get(align, 0),
            # Names at the sides and files in the middle share the width of a narrow page.
            "limit": {"expr": f"min(210, {0.42 if align == 'center' else 0.26} * width)"},
            "aria": style == "ink",
        },
        "encoding": {"x": x, "y": y, "text": {"field": field}},
    }


def _mean(values: list[float]) -> float:
    return sum(values) / len(values) if values else 0.0


def _share(value: int, most: int) -> float:
    """Position 0..1 on a logarithmic scale whose 0 is a millionth of the maximum."""
    return max(0.0, 1 + math.log10(value / most) / 6) if value and most else 0.0


PLOT = Plot(KIND, TITLE, "which processes write and read which files", _draw, position=80, needs_calls=True)
