"""Plots of calls: their time by layer, their kinds, how long they take, and how much they request."""

import math
from collections.abc import Sequence
from typing import Any

from vani.render.plots import encoding
from vani.render.plots.drawing import Drawing, Row, plot
from vani.schema.profile import IOStats, Profile
from vani.schema.timeline import CallTimes, HeatMap
from vani.units import counted, format_bytes, format_rate, format_seconds, format_share

_LAYERS = {
    "netcdf": "NetCDF",
    "pnetcdf": "PnetCDF",
    "hdf5": "HDF5",
    "mpiio": "MPI-IO",
    "stdio": "stdio",
    "posix": "POSIX",
}


@plot(
    "layers",
    "I/O cost per layer",
    "seconds in reads, writes, flushes and metadata calls of each library",
    position=30,
    uses="calls",
)
def layers(profile: Profile, heat: HeatMap | None) -> Drawing | str:
    """Seconds in calls of each library by kind; with only a profile, the profile's figures."""
    if heat is None and profile.workflow.io.time_s.total is None:
        return encoding.NO_TIMES
    # A profile distinguishes kinds only for file-system calls.
    of_layer: dict[str, list[float]] = (
        {"file system": _seconds(profile.workflow.io)}
        if heat is None
        else {_LAYERS[cost.layer]: [getattr(cost, kind) for kind in encoding.CALL_KINDS] for cost in heat.layers}
    )
    if not any(map(any, of_layer.values())):
        return "no time was spent in I/O"
    processes = profile.workflow.processes
    runtime = profile.workflow.runtime_s or (heat.runtime_s if heat is not None else 0.0)
    names = list(of_layer)
    values = encoding.stacked(of_layer.values())
    for value in values:
        value["layer"] = names[value.pop("row")]
        value["share"] = format_share(value["seconds"] / sum(of_layer[value["layer"]]))
    totals = [
        {"layer": layer, "to": encoding.number(sum(seconds)), "text": format_seconds(sum(seconds))}
        for layer, seconds in of_layer.items()
    ]
    y = encoding.category("layer", sort=list(of_layer), axis={"title": None, "ticks": False, "domain": False})
    x: dict[str, Any] = {
        "type": "quantitative",
        "axis": encoding.seconds_axis("seconds in calls, summed over processes"),
        # Room for the totals after the bars.
        "scale": encoding.up_to(max(map(sum, of_layer.values())), 56),
    }
    bars = encoding.bars(
        values,
        y,
        x,
        encoding.category("layer"),
        encoding.category("kind"),
        encoding.quantity("seconds", format=",.6~g"),
        encoding.category("share", title="of the layer's time"),
        height={"band": 0.7},
    )
    if heat is not None:
        caption = (
            "Seconds in calls of each library, summed over processes, by kind of call. A call of a library includes "
            "the calls that it makes of others: a long bar of HDF5 or MPI-IO over a short bar of POSIX is time in the "
            "library or in waiting for other processes, not in the file system."
            + (" Bars of sync are flushing, such as fsync." if any(cost.sync for cost in heat.layers) else "")
        )
    else:
        caption = (
            "Seconds in file-system calls, summed over processes, by kind of call. Long bars of metadata are opens, "
            "closes, seeks and stats rather than data; sync is flushing, such as fsync. Time in the libraries above "
            "needs the decoded calls."
        )
    said = "; ".join(
        f"{layer}: " + ", ".join(f"{v['kind']} {format_seconds(v['seconds'])}" for v in values if v["layer"] == layer)
        for layer, seconds in of_layer.items()
        if any(seconds)
    )
    return Drawing(
        caption=caption,
        description=f"Seconds summed over {processes:,} processes of a run of {format_seconds(runtime)}. {said}.",
        spec=encoding.chart(
            values,
            34 * len(of_layer) + 10,
            layer=[bars, encoding.text(totals, {"y": y, "x": {**x, "field": "to"}}, "text", dx=5)],
        ),
        table=(
            ("layer", *(f"{kind} (s)" for kind in encoding.CALL_KINDS)),
            tuple((layer, *map(encoding.number, seconds)) for layer, seconds in of_layer.items()),
        ),
        sentence=f"All I/O time, {format_seconds(sum(of_layer[values[0]['layer']]))} summed over {processes:,} "
        f"processes, is spent in {values[0]['kind']} calls of {values[0]['layer']}."
        if len(values) == 1
        else "",
    )


# --- kinds of calls ----------------------------------------------------------------------------------

_MAX_APPS = 6


@plot(
    "ops",
    "Data, flushing and metadata operations",
    "share of reads, writes, flushes and metadata calls, by number and by time",
    position=35,
)
def ops(profile: Profile) -> Drawing | str:
    """Shares of reads, writes, flushes and all other calls, by number and by time."""
    entities = [("workload", profile.workflow.io)]
    if len(profile.apps) > 1:
        apps = sorted(profile.apps, key=lambda a: (-sum(_seconds(a.io)), -sum(_counts(a.io)), a.name))
        entities += [(encoding.name(app.name, 24), app.io) for app in apps[:_MAX_APPS]]
    rows = [
        (f"{label}, by {'time' if is_time else 'number'}", is_time, amounts)
        for label, io in entities
        for is_time, amounts in ((False, _counts(io)), (True, _seconds(io)))
        if any(amounts)
    ]
    if not rows:
        return "there is no file-system call"
    counts, seconds = _counts(profile.workflow.io), _seconds(profile.workflow.io)
    timed, measured, times = any(seconds), "alone: the profile has no times.", ""
    if timed:
        measured = "and by how long they take. The two often disagree; what costs is time."
        times = f"; their time, {format_seconds(sum(seconds))} summed over processes, is {_composition(seconds)}"
    shares = [[amount / sum(amounts) for amount in amounts] for _, _, amounts in rows]
    values = encoding.stacked(shares, measure="share")
    for value in values:
        _, is_time, amounts = rows[value["row"]]
        amount = amounts[encoding.CALL_KINDS.index(value["kind"])]
        value["amount"] = encoding.number(amount)
        value["text"] = format_seconds(amount) if is_time else counted(int(amount), "call")
    params, y = encoding.numbered("row", [label for label, _, _ in rows])
    axis = encoding.share_axis("share of calls" + (", of their time" if timed else ""))
    spec = encoding.chart(
        values,
        26 * len(rows) + 10,
        params=params,
        transform=[encoding.ROW_NAME],
        **encoding.bars(
            values,
            y,
            encoding.quantity("from", scale={"domain": [0, 1]}, axis=axis),
            encoding.category("name"),
            encoding.category("kind"),
            encoding.category("text", title="amount"),
            encoding.quantity("share", format=".3~%"),
        ),
    )
    return Drawing(
        caption="Shares of reads, writes, flushing (sync: fsync and its kin) and metadata calls (open, close, stat, "
        f"seek, ...), by how many calls there are {measured}",
        description=f"The workload's {sum(counts):,} file-system calls are {_composition(counts)}{times}.",
        spec=spec,
        table=(
            ("entity", *encoding.CALL_KINDS, "unit"),
            tuple((label, *map(encoding.number, amounts), "s" if is_time else "calls") for label, is_time,
                amounts in rows),
        ),
        sentence=f"All {sum(counts):,} file-system calls are {_composition(counts).removeprefix('100 % ')}."
        if len({v["kind"] for v in values}) == 1
        else "",
    )


def _counts(io: IOStats) -> list[float]:
    return [getattr(io.ops, kind) for kind in encoding.CALL_KINDS]


def _seconds(io: IOStats) -> list[float]:
    """Seconds by kind; all 0 in a profile without times."""
    return [getattr(io.time_s, kind) or 0.0 for kind in encoding.CALL_KINDS]


def _composition(amounts: Sequence[float]) -> str:
    """`6.6 % data, 88 % flushing and 5.7 % metadata`."""
    of = dict(zip(encoding.CALL_KINDS, amounts, strict=True))
    parts = {"data": of["read"] + of["write"], "flushing": of["sync"], "metadata": of["metadata"]}
    said = [f"{format_share(part / sum(amounts))} {what}" for what, part in parts.items() if part]
    if not said:
        return "of no known kind"
    return " and ".join(filter(None, (", ".join(said[:-1]), said[-1])))


# --- durations ---------------------------------------------------------------------------------------

_NUMBER, _TIME = "share of calls", "share of their time"
_SHORTEST, _LONGEST = -6, 1
"""Powers of ten of seconds; shorter and longer calls are grouped."""


@plot(
    "call-times",
    "How long calls take",
    "share of calls, and of the time in them, by how long they take",
    position=37,
    needs="data",
)
def call_times(profile: Profile, heat: HeatMap) -> Drawing | str:
    """Shares of all calls and of their time, by duration."""
    del profile
    if not heat.calls:
        return "it needs the decoded calls"
    total, seconds = sum(c.calls for c in heat.calls), sum(c.seconds for c in heat.calls)
    if not seconds:
        return "no time was spent in I/O"
    sums: dict[tuple[int, str], list[float]] = {}
    for call_class in heat.calls:
        both = sums.setdefault((_decade(call_class), call_class.kind), [0, 0.0])
        both[0] += call_class.calls
        both[1] += call_class.seconds
    decades = range(min(d for d, _ in sums), max(d for d, _ in sums) + 1)
    bins = [_label(decade) for decade in decades]
    values = [
        {
            "lasts": _label(decade),
            "kind": kind,
            "measure": measure,
            "share": encoding.number(amount / whole),
            "text": shown,
        }
        for (decade, kind), (calls, time) in sorted(sums.items())
        for measure, amount, whole, shown in (
            (_NUMBER, calls, total, counted(int(calls), "call")),
            (_TIME, time, seconds, format_seconds(time)),
        )
    ]
    slow = max(decades, key=lambda d: sum(time for (at, _), (_, time) in sums.items() if at == d))
    of_slow = [both for (at, _), both in sums.items() if at == slow]
    measures = {"domain": [_NUMBER, _TIME]}
    angle = {"expr": f"width < {100 * len(bins)} ? -35 : 0"}
    spec = encoding.chart(
        values,
        200,
        mark={"type": "bar"},
        encoding={
            "x": encoding.binned("lasts", bins, "a call takes", labelAngle=angle),
            "xOffset": encoding.category("measure", scale=measures),
            "y": encoding.quantity("share", axis=encoding.share_axis("share")),
            "color": encoding.colour(None, (kind for _, kind in sums)),
            # Pale and full colours distinguish number from time without a second scale.
            "opacity": encoding.category("measure", scale={**measures, "range": [0.5, 1]}, legend=None),
            "tooltip": [
                encoding.ordered("lasts", title="a call takes"),
                encoding.category("kind"),
                encoding.category("measure"),
                encoding.category("text", title="amount"),
                encoding.quantity("share", format=".3~%"),
            ],
        },
    )
    return Drawing(
        caption="Calls by how long they take: share of all calls (pale, left) and of the time in them (right). Where "
        "the right bars are far to the right of the left ones, a few slow calls cost most of the time.",
        description=f"{counted(total, 'call')} take {format_seconds(seconds)}, added up. Most time is in calls of "
        f"{_label(slow)}: {format_share(sum(c for c, _ in of_slow) / total)} of the calls, "
        f"{format_share(sum(t for _, t in of_slow) / seconds)} of their time.",
        spec=spec,
        table=(
            ("a call takes", "kind", "calls", "seconds"),
            tuple(
                (_label(decade), kind, int(calls), encoding.number(time))
                for (decade, kind), (calls, time) in sorted(sums.items())
            ),
        ),
    )


def _decade(call_class: CallTimes) -> int:
    """Exponent of the power of ten (s) just above the duration of calls in this class."""
    if not call_class.least_s:
        return _SHORTEST
    # Classes start at 1, 2 or 5 times a power of ten; a factor of 1.0005 keeps floats on the right side.
    return min(max(math.floor(math.log10(call_class.least_s * 1.0005)) + 1, _SHORTEST), _LONGEST)


def _label(decade: int) -> str:
    if decade <= _SHORTEST:
        return f"less than {format_seconds(10.0**_SHORTEST)}"
    if decade >= _LONGEST:
        return f"{format_seconds(10.0 ** (_LONGEST - 1))} or more"
    return f"{format_seconds(10.0 ** (decade - 1))} to {format_seconds(10.0**decade)}"


# --- transfer sizes (paper, Fig. 1a to 6a) -----------------------------------------------------------

Rates = dict[tuple[str, str], tuple[float | None, int | None]]
"""Bytes per second of one process, and bytes, by direction and size."""


@plot(
    "transfer-sizes",
    "Transfer sizes and their bandwidth",
    "number of requests by size, and the bandwidth of each size",
    position=40,
)
def transfer_sizes(profile: Profile) -> Drawing | str:
    """The number of requests of each size, and their speed."""
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
    measured = _measured(profile)
    impossible = [kind for kind in ("read", "write") if measured and f"io.bandwidth.{kind}" in profile.provenance]
    rates = {at: rate for at, rate in measured.items() if at[0] not in impossible}
    bins = encoding.by_size(size for _, size in counts)
    values: list[dict[str, Any]] = []
    for (kind, size), count in counts.items():
        rate, moved = rates.get((kind, size), (None, None))
        value: dict[str, Any] = {"size": size, "kind": kind, "operations": count,
            "share": encoding.number(count / total)}
        values.append(value | ({"rate": encoding.number(rate), "bytes": moved} if rate else {}))
    kinds = list(dict.fromkeys(kind for kind, _ in counts))
    small = sum(c for (_, size), c in counts.items() if size in ("0-1K", "1K-4K")) / total
    caption = "Number of reads and writes by the bytes they request" + (
        " (bars), and how fast such a request is: bytes divided by the time in these calls (diamonds, a scale of "
        "powers of ten). Look for tall bars on the left under low diamonds: many small requests that each get little."
        if rates
        else ". Tall bars on the left are many small requests, which pay a file system's latency again and again. "
        + ("" if measured else "Bandwidth by size needs the times of single calls.")
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
        title="" if rates else "Transfer sizes",
        caption=caption,
        description=f"{total:,} reads and writes by size, {format_share(small)} below 4 KiB. {'; '.join(said)}.",
        spec=_bars_and_rates(values, bins, kinds, with_rates=bool(rates)),
        table=(
            ("size (bytes)", "kind", "operations", "bytes", "bytes per second of one process"),
            tuple(_row(v) for v in sorted(values, key=lambda v: (bins.index(v["size"]), v["kind"]))),
        ),
        sentence=_one_size(profile, kinds[0], bins[0], total, rates) if len(counts) == 1 else "",
    )


def _measured(profile: Profile) -> Rates:
    """The bandwidth and bytes of each size that the calls of the file system have in all files together."""
    rates: Rates = {}
    rows = [row for row in profile.accesses or () if row.file is None and row.layer in ("posix", "stdio")]
    for kind in ("read", "write"):
        known = [(row.bytes_by_size, row.time_by_size) for row in rows if row.direction == kind]
        for size in dict.fromkeys(size for _, times in known for size in times or ()):
            moved = sum((sizes or {}).get(size, 0) for sizes, times in known if times)
            seconds = sum((times or {}).get(size, 0.0) for _, times in known)
            rates[kind, size] = (moved / seconds if seconds else None, moved)
    return rates


def _bars_and_rates(
    values: Sequence[dict[str, Any]], bins: Sequence[str], kinds: list[str], *, with_rates: bool
) -> dict[str, Any]:
    shared = {
        "x": encoding.binned("size", bins, "request size (bytes)", **encoding.size_labels(bins)),
        "xOffset": encoding.category("kind", sort=kinds, scale={"domain": kinds}),
    }
    tooltip = [
        encoding.ordered("size"),
        encoding.category("kind"),
        encoding.quantity("operations", format=","),
        encoding.quantity("share", format=".2~%", title="share of operations"),
        encoding.quantity("bytes", format=","),
        encoding.quantity("rate", format=".3~s", title="bytes per second of one process"),
    ]
    legend = encoding.colour(None, kinds)
    axis = {"title": "share of operations (bars)" if with_rates else "share of operations", "labelExpr": encoding.SHARE}
    layers: list[dict[str, Any]] = [
        {
            "mark": {"type": "bar", "opacity": 0.55 if with_rates else 1},
            "encoding": {
                **shared,
                "y": encoding.quantity("share", axis=axis),
                "color": legend,
                "tooltip": tooltip if with_rates else tooltip[:4],
            },
        }
    ]
    known = [v["rate"] for v in values if "rate" in v]
    if known:
        low, high = encoding.number(min(known) / 3), encoding.number(max(known) * 3)
        axis = encoding.size_axis("rate of one process (diamonds)", per_second=True)
        rate = encoding.quantity(
            "rate",
            scale={"type": "log", "domain": [low, high], "nice": False},
            axis={**axis, "grid": False, "values": encoding.log_marks(low, high)},
        )
        mark = {"type": "point", "shape": "diamond", "filled": True, "size": 110, "style": "outlined", "opacity": 1}
        layers.append(
            {
                "transform": [{"filter": "isValid(datum.rate)"}],
                "mark": mark,
                "encoding": {**shared, "y": rate, "color": legend, "tooltip": tooltip},
            }
        )
    return encoding.chart(values, 240, layer=layers, resolve={"scale": {"y": "independent"}})


def _one_size(profile: Profile, kind: str, size: str, total: int, rates: Rates) -> str:
    """Text about one bar."""
    requests = getattr(profile.workflow.io.transfer_size, kind)
    rate = rates.get((kind, size), (None, None))[0]
    request = f"{format_bytes(requests.min)} to {format_bytes(requests.max)}"
    if size == "unknown":
        request = "an unknown number of bytes"
    elif requests.min == requests.max:
        request = f"{format_bytes(requests.min)} each"
    return f"All {total:,} {kind}s request {request}" + (f", at {format_rate(rate)} of one process." if rate else ".")


def _row(value: dict[str, Any]) -> Row:
    return (value["size"], value["kind"], value["operations"], value.get("bytes", ""), value.get("rate", ""))


_MAX_TABLE_ROWS = 200


@plot(
    "rates",
    "Rate of each request, by size",
    "bytes per second of single reads and writes against their size",
    position=42,
    needs="data",
)
def rates(profile: Profile, heat: HeatMap) -> Drawing | str:
    """The rate of single reads and writes against their size."""
    impossible = [kind for kind in ("read", "write") if f"io.bandwidth.{kind}" in profile.provenance]
    points = [
        (call.bytes, encoding.number(call.bytes / call.duration_s), call.kind, call.rank)
        for call in heat.sampled
        if call.bytes and call.duration_s and call.kind not in impossible
    ]
    if not points:
        return "no read or write has a size and a duration"
    ends = [(min(c), max(c)) for c in (tuple(p[0] for p in points), tuple(p[1] for p in points))]
    (small, large), (slow, fast) = ends
    axes = [
        encoding.quantity(
            field,
            scale={"type": "log", "domain": [low / 2, high * 2], "nice": False},
            axis=encoding.size_axis(title, field == "rate") | {"values": encoding.log_marks(low / 2, high * 2)},
        )
        for field, title, (low, high) in zip(("bytes", "rate"), ("size", "rate of the request"), ends, strict=True)
    ]
    spec = encoding.chart(
        [],
        220,
        mark={"type": "point", "filled": True, "size": 22, "opacity": 0.45},
        encoding={
            "x": axes[0],
            "y": axes[1],
            "color": encoding.colour(None, (point[2] for point in points)),
            "tooltip": [encoding.quantity(field, format=".3~s") for field in ("bytes", "rate", "rank")],
        },
    )
    spec["data"] = encoding.csv(("bytes", "rate", "kind", "rank"), points)
    return Drawing(
        caption="The size and rate of single reads and writes, both on scales of powers of ten. Points that rise to "
        "the right pay a latency for each request: larger requests would be faster. One size at many rates shows "
        "processes that wait for each other.",
        description=f"{counted(len(points), 'request')} of {format_bytes(small)} to {format_bytes(large)}, at "
        f"{format_rate(slow)} to {format_rate(fast)}.",
        spec=spec,
        table=(("bytes", "bytes per second", "kind", "rank"), tuple(points[:_MAX_TABLE_ROWS])),
        sentence=f"All requests move {format_bytes(small)}, at {format_rate(slow)} to {format_rate(fast)}."
        if small == large
        else "",
    )
