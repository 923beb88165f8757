"""Transfer sizes against bandwidth: the number of requests of each size, and their speed (paper, Fig. 1a to 6a)."""

from __future__ import annotations

from typing import Any

from vani.render.plots.drawing import Drawing, Plot, Row
from vani.render.plots.encoding import (
    SHARE,
    by_size,
    chart,
    colour,
    log_marks,
    number,
    size_axis,
    size_labels,
)
from vani.schema.profile import Profile
from vani.schema.timeline import HeatMap
from vani.units import format_bytes, format_rate, format_share

KIND, TITLE = "transfer-sizes", "Transfer sizes and their bandwidth"

Rates = dict[tuple[str, str], tuple[float | None, int | None]]
"""Bytes per second of one process, and bytes, by direction and size."""


def _draw(profile: Profile, heat: HeatMap | None) -> Drawing | str:
    sizes = profile.workflow.io.transfer_size
    counts = {
        (kind, size): count
        for kind, sizes_of_kind in (("read", sizes.read), ("write", sizes.write))
        if sizes_of_kind is not None
        for size, count in sizes_of_kind.histogram.items()
    }
    total = sum(counts.values())
    if not total:
        return "no data was read or written"
    cells = heat.sizes if heat is not None else ()
    impossible = [kind for kind in ("read", "write") if cells and f"io.bandwidth.{kind}" in profile.provenance]
    rates: Rates = {
        (c.direction, c.size): (c.bytes / c.seconds if c.seconds else None, c.bytes)
        for c in cells
        if c.direction not in impossible
    }
    bins = by_size(size for _, size in counts)
    values: list[dict[str, Any]] = []
    for (kind, size), count in counts.items():
        rate, moved = rates.get((kind, size), (None, None))
        value: dict[str, Any] = {
            "size": size,
            "kind": kind,
            "operations": count,
            "share": number(count / total),
        }
        if rate:
            value |= {"rate": number(rate), "bytes": moved}
        values.append(value)
    kinds = list(dict.fromkeys(kind for kind, _ in counts))
    x = {
        "field": "size",
        "type": "ordinal",
        "sort": bins,
        "scale": {"domain": bins, "paddingInner": 0.25},
        "axis": {
            "title": "request size (bytes)",
            **size_labels(bins),
        },
    }
    offset = {"field": "kind", "type": "nominal", "sort": kinds, "scale": {"domain": kinds}}
    tooltip = [
        {"field": "size", "type": "ordinal"},
        {"field": "kind", "type": "nominal"},
        {"field": "operations", "type": "quantitative", "format": ","},
        {"field": "share", "type": "quantitative", "format": ".2~%", "title": "share of operations"},
        {"field": "bytes", "type": "quantitative", "format": ","},
        {
            "field": "rate",
            "type": "quantitative",
            "format": ".3~s",
            "title": "bytes per second of one process",
        },
    ]
    legend = colour(None, kinds)
    layers: list[dict[str, Any]] = [
        {
            "mark": {"type": "bar", "opacity": 0.55 if rates else 1},
            "encoding": {
                "x": x,
                "xOffset": offset,
                "y": {
                    "field": "share",
                    "type": "quantitative",
                    "axis": {
                        "title": "share of operations (bars)" if rates else "share of operations",
                        "labelExpr": SHARE,
                    },
                },
                "color": legend,
                "tooltip": tooltip if rates else tooltip[:4],
            },
        }
    ]
    known = [v["rate"] for v in values if "rate" in v]
    if known:
        low, high = number(min(known) / 3), number(max(known) * 3)
        rate_axis = size_axis("rate of one process (diamonds)", per_second=True)
        layers.append(
            {
                "transform": [{"filter": "isValid(datum.rate)"}],
                "mark": {
                    "type": "point",
                    "shape": "diamond",
                    "filled": True,
                    "size": 110,
                    "style": "outlined",
                    "opacity": 1,
                },
                "encoding": {
                    "x": x,
                    "xOffset": offset,
                    "y": {
                        "field": "rate",
                        "type": "quantitative",
                        "scale": {"type": "log", "domain": [low, high], "nice": False},
                        "axis": {**rate_axis, "grid": False, "values": log_marks(low, high)},
                    },
                    "color": legend,
                    "tooltip": tooltip,
                },
            }
        )
    spec = chart(values, 240, layer=layers, resolve={"scale": {"y": "independent"}})
    small = sum(c for (_, size), c in counts.items() if size in ("0-1K", "1K-4K")) / total
    caption = "Number of reads and writes by the bytes they request" + (
        " (bars), and how fast such a request is: bytes divided by the time in these calls (diamonds, a "
        "scale of powers "
        "of ten). Look for tall bars on the left under low diamonds: many small requests that each get "
        "little."
        if rates
        else ". Tall bars on the left are many small requests, which pay a file system's latency again and again. "
        + ("" if cells else "Bandwidth by size needs the decoded calls.")
    )
    if impossible:
        caption += (
            f" Rates of {' and '.join(f'{kind}s' for kind in impossible)} are left out: "
            f"{profile.provenance[f'io.bandwidth.{impossible[0]}']}."
        )
    said = []
    for (kind, size), count in sorted(counts.items(), key=lambda e: (e[0][0], bins.index(e[0][1]))):
        rate = rates.get((kind, size), (None, None))[0]
        said.append(f"{kind} {size}: {count:,}" + (f" at {format_rate(rate)}" if rate else ""))
    return Drawing(
        kind=KIND,
        title=TITLE if rates else "Transfer sizes",
        caption=caption,
        description=f"{total:,} reads and writes by size, {format_share(small)} below 4 KiB. "
        + "; ".join(said)
        + ".",
        spec=spec,
        table=(
            ("size (bytes)", "kind", "operations", "bytes", "bytes per second of one process"),
            tuple(_row(v) for v in sorted(values, key=lambda v: (bins.index(v["size"]), v["kind"]))),
        ),
        sentence=_one_size(profile, kinds[0], bins[0], total, rates) if len(counts) == 1 else "",
    )


def _one_size(profile: Profile, kind: str, size: str, total: int, rates: Rates) -> str:
    """Text about one bar."""
    requests = getattr(profile.workflow.io.transfer_size, kind)
    rate = rates.get((kind, size), (None, None))[0]
    request = (
        "an unknown number of bytes"
        if size == "unknown"
        else f"{format_bytes(requests.min)} each"
        if requests.min == requests.max
        else f"{format_bytes(requests.min)} to {format_bytes(requests.max)}"
    )
    return f"All {total:,} {kind}s request {request}" + (
        f", at {format_rate(rate)} of one process." if rate else "."
    )


def _row(value: dict[str, Any]) -> Row:
    return (value["size"], value["kind"], value["operations"], value.get("bytes", ""), value.get("rate", ""))


PLOT = Plot(
    KIND,
    TITLE,
    "number of requests by size, and the bandwidth of each size",
    _draw,
    position=40,
    uses_calls=True,
)
