"""I/O cost per layer: seconds in calls of each library by kind; with only a profile, the profile's figures."""

from __future__ import annotations

from typing import Any

from vani.render.plots.drawing import Drawing, Plot
from vani.render.plots.encoding import NO_TIMES, call_kinds, chart, colour, number, seconds_axis, up_to
from vani.schema.profile import Profile
from vani.schema.timeline import HeatMap
from vani.units import format_seconds, format_share

KIND, TITLE = "layers", "I/O cost per layer"
_NAMES = {
    "netcdf": "NetCDF",
    "pnetcdf": "PnetCDF",
    "hdf5": "HDF5",
    "mpiio": "MPI-IO",
    "stdio": "stdio",
    "posix": "POSIX",
}
_FILE_SYSTEM = "file system"


def _draw(profile: Profile, heat: HeatMap | None) -> Drawing | str:
    costs = _from_calls(heat) if heat is not None else _from_profile(profile)
    if heat is None and profile.workflow.io.time_s.total is None:
        return NO_TIMES
    if not costs or not any(seconds for _, _, seconds in costs):
        return "no time was spent in I/O"
    kinds = call_kinds(None if heat is not None else profile.workflow.io)
    whole = {layer: sum(s for at, _, s in costs if at == layer) for layer, _, _ in costs}
    processes = profile.workflow.processes
    runtime = profile.workflow.runtime_s or (heat.runtime_s if heat is not None else 0.0)
    layers = list(dict.fromkeys(layer for layer, _, _ in costs))
    values: list[dict[str, Any]] = []
    ends: dict[str, float] = {}
    for layer, kind, seconds in costs:
        if not seconds:
            continue
        begin = ends.get(layer, 0.0)
        ends[layer] = begin + seconds
        values.append(
            {
                "layer": layer,
                "kind": kind,
                "seconds": number(seconds),
                "from": number(begin),
                "to": number(ends[layer]),
                "share": format_share(seconds / whole[layer]),
            }
        )
    totals = [
        {"layer": layer, "to": number(ends.get(layer, 0.0)), "text": format_seconds(ends.get(layer, 0.0))}
        for layer in layers
    ]
    y = {
        "field": "layer",
        "type": "nominal",
        "sort": layers,
        "axis": {"title": None, "ticks": False, "domain": False},
    }
    x: dict[str, Any] = {
        "type": "quantitative",
        "axis": seconds_axis("seconds in calls, summed over processes"),
        # Room for the totals after the bars.
        "scale": up_to(max(ends.values()), 56),
    }
    spec = chart(
        values,
        34 * len(layers) + 10,
        layer=[
            {
                "mark": {"type": "bar", "height": {"band": 0.7}},
                "encoding": {
                    "y": y,
                    "x": {**x, "field": "from"},
                    "x2": {"field": "to"},
                    "color": colour(None, (v["kind"] for v in values)),
                    "tooltip": [
                        {"field": "layer", "type": "nominal"},
                        {"field": "kind", "type": "nominal"},
                        {"field": "seconds", "type": "quantitative", "format": ",.6~g"},
                        {"field": "share", "type": "nominal", "title": "of the layer's time"},
                    ],
                },
            },
            {
                "data": {"values": totals},
                "mark": {"type": "text", "style": "ink", "align": "left", "dx": 5},
                "encoding": {"y": y, "x": {**x, "field": "to"}, "text": {"field": "text"}},
            },
        ],
    )
    if heat is not None:
        caption = (
            "Seconds in calls of each library, summed over processes, by kind of call. A call of a "
            "library includes "
            "the calls that it makes of others: a long bar of HDF5 or MPI-IO over a short bar of POSIX is "
            "time in the "
            "library or in waiting for other processes, not in the file system."
            + (" Bars of sync are flushing, such as fsync." if any(cost.sync for cost in heat.layers) else "")
        )
    else:
        caption = (
            "Seconds in file-system calls, summed over processes, by kind of call. Long bars of "
            "metadata are opens, "
            "closes, seeks and stats rather than data"
            + ("; sync is flushing, such as fsync" if "sync" in kinds else "")
            + ". Time in the libraries above needs the decoded calls."
        )
    said = "; ".join(
        f"{layer}: " + ", ".join(f"{kind} {format_seconds(s)}" for at, kind, s in costs if at == layer and s)
        for layer in layers
        if ends.get(layer)
    )
    return Drawing(
        kind=KIND,
        title=TITLE,
        caption=caption,
        description=f"Seconds summed over {processes:,} processes of a run of {format_seconds(runtime)}. "
        f"{said}.",
        spec=spec,
        table=(
            ("layer", *(f"{kind} (s)" for kind in kinds)),
            tuple(
                (
                    layer,
                    *(
                        next((number(s) for at, k, s in costs if at == layer and k == kind), 0.0)
                        for kind in kinds
                    ),
                )
                for layer in layers
            ),
        ),
        sentence=f"All I/O time, {format_seconds(whole[values[0]['layer']])} summed over {processes:,} processes, is "
        f"spent in {values[0]['kind']} calls of {values[0]['layer']}."
        if len(values) == 1
        else "",
    )


def _from_calls(heat: HeatMap) -> list[tuple[str, str, float]]:
    return [
        (_NAMES[cost.layer], kind, getattr(cost, kind)) for cost in heat.layers for kind in call_kinds(None)
    ]


def _from_profile(profile: Profile) -> list[tuple[str, str, float]]:
    """Costs from the profile, which distinguishes kinds only for file-system calls."""
    time = profile.workflow.io.time_s
    kinds = call_kinds(profile.workflow.io)
    return [(_FILE_SYSTEM, kind, getattr(time, kind) or 0.0) for kind in kinds]


PLOT = Plot(
    KIND,
    TITLE,
    "seconds in reads, writes, flushes and metadata calls of each library",
    _draw,
    position=30,
    uses_calls=True,
)
