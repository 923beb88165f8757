"""Bandwidth over time: bytes read and written by all processes in each time bin (paper, Fig. 1c to 6c)."""

from __future__ import annotations

from vani.render.plots.drawing import Drawing, Plot
from vani.render.plots.encoding import chart, colour, number, size_axis, time_axis, zoom
from vani.schema.profile import Profile
from vani.schema.timeline import HeatMap
from vani.units import format_rate, format_seconds, format_share

KIND, TITLE = "bandwidth", "Bandwidth over time"


def _draw(profile: Profile, heat: HeatMap | None) -> Drawing | str:
    if heat is None:
        return "it needs the decoded calls"
    sums = {
        kind: [sum(column) for column in zip(*rows, strict=True)]
        for kind, rows in (("read", heat.read), ("write", heat.written))
    }
    sums = {kind: values for kind, values in sums.items() if any(values)}
    if not sums:
        return "no byte was read or written"
    rates = profile.workflow.io.bandwidth
    sums = {kind: values for kind, values in sums.items() if getattr(rates, kind) is not None}
    if not sums:
        return "the profile has no rate: more bytes than memory can deliver, or no time"
    values = []
    below = [0] * heat.bins
    for kind, amounts in sums.items():
        for i, amount in enumerate(amounts):
            if amount:
                values.append(
                    {
                        "from": number(i * heat.bin_s),
                        "to": number((i + 1) * heat.bin_s),
                        "kind": kind,
                        "bytes": amount,
                        "low": number(below[i] / heat.bin_s),
                        "high": number((below[i] + amount) / heat.bin_s),
                    }
                )
                below[i] += amount
    length = format_seconds(heat.bin_s)
    total = below
    best = max(range(len(total)), key=lambda i: (total[i], -i))
    idle = total.count(0) / len(total)
    peaks = ", ".join(f"{kind} up to {format_rate(max(a) / heat.bin_s)}" for kind, a in sums.items())
    spec = chart(
        values,
        220,
        params=zoom(),
        mark={"type": "rect", "clip": True, "aria": False},
        encoding={
            "x": {
                "field": "from",
                "type": "quantitative",
                "scale": {"domain": [0, heat.bins * heat.bin_s], "nice": False},
                "axis": time_axis(grid=False),
            },
            "x2": {"field": "to"},
            "y": {
                "field": "low",
                "type": "quantitative",
                "axis": size_axis("bytes per second, all processes", per_second=True),
            },
            "y2": {"field": "high"},
            "color": colour(None, sums),
            "tooltip": [
                {"field": "kind", "type": "nominal"},
                {"field": "from", "type": "quantitative", "title": "from (s)", "format": ",.6~g"},
                {"field": "bytes", "type": "quantitative", "format": ","},
            ],
        },
    )
    shown = [i for i, amount in enumerate(total) if amount]
    return Drawing(
        kind=KIND,
        title=TITLE,
        caption=f"Bytes that all processes together moved in each {length}, per second, reads and writes "
        f"on top of each "
        "other. Look for bursts, for long stretches far below the highest bar, and for idle time between.",
        description=f"Bandwidth in {len(total)} bins of {length}: {peaks}; the highest bin, at "
        f"{format_seconds(best * heat.bin_s)}, has {format_rate(total[best] / heat.bin_s)}. "
        f"Nothing moves in {format_share(idle)} of the bins. The run takes {format_seconds(heat.runtime_s)}.",
        spec=spec,
        table=(
            ("from (s)", *(f"{kind} (bytes)" for kind in sums)),
            tuple((number(i * heat.bin_s), *(a[i] for a in sums.values())) for i in shown),
        ),
    )


PLOT = Plot(
    KIND, TITLE, "bytes per second of all processes together, over time", _draw, position=20, needs_calls=True
)
