"""Plots over time: the bandwidth of all processes, and the phases of each app."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from vani.render.plots import encoding
from vani.render.plots.drawing import Drawing, plot
from vani.schema.profile import Phase, Profile
from vani.schema.timeline import HeatMap
from vani.units import counted, format_bytes, format_rate, format_seconds, format_share


@plot(
    "bandwidth",
    "Bandwidth over time",
    "bytes per second of all processes together, over time",
    position=20,
    needs="bins",
)
def bandwidth(profile: Profile, heat: HeatMap) -> Drawing | str:
    """Bytes read and written by all processes in each time bin (paper, Fig. 1c to 6c)."""
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
    total = [0] * heat.bins
    for kind, amounts in sums.items():
        for i, amount in enumerate(amounts):
            if amount:
                values.append(
                    {
                        **encoding.span(i * heat.bin_s, (i + 1) * heat.bin_s),
                        "kind": kind,
                        "bytes": amount,
                        "low": encoding.number(total[i] / heat.bin_s),
                        "high": encoding.number((total[i] + amount) / heat.bin_s),
                    }
                )
                total[i] += amount
    length = format_seconds(heat.bin_s)
    best = max(range(len(total)), key=lambda i: (total[i], -i))
    peaks = ", ".join(f"{kind} up to {format_rate(max(a) / heat.bin_s)}" for kind, a in sums.items())
    spec = encoding.chart(
        values,
        220,
        params=encoding.zoom(),
        mark={"type": "rect", "clip": True, "aria": False},
        encoding={
            "x": encoding.from_start(heat.bins * heat.bin_s, grid=False),
            "x2": {"field": "to"},
            "y": encoding.quantity("low", axis=encoding.size_axis("bytes per second, all processes", per_second=True)),
            "y2": {"field": "high"},
            "color": encoding.colour(None, sums),
            "tooltip": [
                encoding.category("kind"),
                encoding.quantity("from", title="from (s)", format=",.6~g"),
                encoding.quantity("bytes", format=","),
            ],
        },
    )
    return Drawing(
        caption=f"Bytes that all processes together moved in each {length}, per second, reads and writes on top of "
        "each other. Look for bursts, for long stretches far below the highest bar, and for idle time between.",
        description=f"Bandwidth in {len(total)} bins of {length}: {peaks}; the highest bin, at "
        f"{format_seconds(best * heat.bin_s)}, has {format_rate(total[best] / heat.bin_s)}. Nothing moves in "
        f"{format_share(total.count(0) / len(total))} of the bins. The run takes {format_seconds(heat.runtime_s)}.",
        spec=spec,
        table=(
            ("from (s)", *(f"{kind} (bytes)" for kind in sums)),
            tuple((encoding.number(i * heat.bin_s), *(a[i] for a in sums.values())) for i, all_ in enumerate(total)
                if all_),
        ),
    )


# --- phases ------------------------------------------------------------------------------------------

_MAX_APPS = 40
_MAX_BARS = 900
_MAX_WITH_BURSTS = 8
_SHADES = ((0.5, 1.0), (0.1, 0.75), (0.0, 0.5))
"""Least time in calls, as a share of a bin of one process, and the opacity from there on."""
# Bars closer than this share of the run look like one on a page.
_CLOSE = 1 / 2000
_MAX_TABLE_ROWS = 200


@dataclass(frozen=True)
class _Bar:
    """A phase, or neighbouring phases drawn as one."""

    app: str
    kind: str
    start: float
    end: float
    phases: int
    bytes: int
    operations: int | None


@plot(
    "phases",
    "Phases of I/O and compute between",
    "when each app reads, writes or does something else",
    position=50,
    uses="data",
)
def phases(profile: Profile, heat: HeatMap | None) -> Drawing | str:
    """Timeline of each app's phases, with the times between in which it computes, communicates or waits."""
    if profile.workflow.runtime_s is None:
        return encoding.NO_TIMES
    if not profile.phases:
        return "there is no phase of I/O"
    runtime = profile.workflow.runtime_s or max(p.end_s for p in profile.phases)
    time = {app.name: app.io.time_s.total or 0.0 for app in profile.apps}
    first: dict[str, float] = {}
    for phase in profile.phases:
        first[phase.app] = min(first.get(phase.app, phase.start_s), phase.start_s)
    longest_first = sorted(first, key=lambda app: (-time.get(app, 0.0), app))
    shown = sorted(longest_first[:_MAX_APPS], key=lambda app: (first[app], app))
    numbers = {app: i for i, app in enumerate(shown)}
    bars = sorted(
        (bar for phase in profile.phases if phase.app in numbers for bar in _bars(phase)),
        key=lambda bar: (numbers[bar.app], bar.start),
    )
    gap, drawn = 0.0, bars
    while len(drawn) > _MAX_BARS:
        gap = 2 * gap or runtime * _CLOSE
        drawn = _joined(bars, gap)
    values = [
        {
            "app": numbers[bar.app],
            "kind": bar.kind,
            **encoding.span(bar.start, bar.end),
            "what": _what(bar),
        }
        for bar in drawn
    ]
    lives = [
        {"app": numbers[app], **encoding.span(start, end)}
        for app, (start, end) in _lives(profile).items()
        if app in numbers
    ]
    bursts = [] if heat is None or len(shown) > _MAX_WITH_BURSTS else _bursts(heat, numbers)
    params, y = encoding.numbered("app", [encoding.name(app, 24) for app in shown])
    place = {"y": y, "x": encoding.from_start(encoding.number(runtime)), "x2": {"field": "to"}}
    running = {
        "data": {"values": lives},
        "mark": {"type": "bar", "height": 4, "style": "gap", "clip": True, "aria": False},
        "encoding": place,
    }
    doing_io: dict[str, Any] = {
        # The outline keeps phases of a few milliseconds visible in a run of hours.
        "params": encoding.zoom(),
        "mark": {
            "type": "bar",
            "height": {"band": 0.72},
            "strokeWidth": 1,
            "fillOpacity": 0.25 if bursts else 1,
            "clip": True,
        },
        "encoding": {
            **place,
            "color": encoding.colour("phase", (*(bar.kind for bar in drawn), *(burst["kind"] for burst in bursts))),
            "stroke": {**encoding.colour(None, ()), "legend": None},
            "tooltip": [
                encoding.category("what", title="phase"),
                encoding.quantity("from", title="from (s)", format=",.7~g"),
                encoding.quantity("to", title="to (s)", format=",.7~g"),
            ],
        },
    }
    in_calls = {
        "data": {"values": bursts},
        "mark": {"type": "bar", "height": {"band": 0.72}, "clip": True, "aria": False},
        "encoding": {
            **place,
            "color": {**encoding.colour(None, ()), "legend": None},
            "opacity": encoding.quantity("shade", scale=None),
        },
    }
    longest = max(bars, key=lambda b: (b.end - b.start, -b.start))
    others = len(first) - len(shown)
    verb = "is" if others == 1 else "are"
    left_out = f" {counted(others, 'app')} with less I/O time {verb} left out." if others > 0 else ""
    joined, apart = "", f"neighbours less than {format_seconds(gap)} apart are one"
    if len(drawn) < len(bars):
        joined = f" {len(bars):,} phases are drawn as {len(drawn):,}: {apart}."
    repeated = any(phase.count > 1 for phase in profile.phases)
    spaced = " Repetitions are drawn evenly spaced and equally long." if repeated else ""
    inside = " Inside, some process is in calls: the fuller the colour, the longer." if bursts else ""
    share = profile.workflow.io_time_share
    of_run = "" if share is None else f", {format_share(share)} of it in I/O"
    return Drawing(
        caption="When each app does I/O (wide bars, coloured by its main kind) and when it computes, communicates or "
        "waits instead (thin bars between). Look for phases that come back at a steady distance, such as checkpoints, "
        f"and for apps that wait for another one's output.{inside}{left_out}{joined}{spaced}",
        description=f"{counted(sum(p.count for p in profile.phases), 'phase')} of {counted(len(first), 'app')} "
        f"in a run of {format_seconds(runtime)}{of_run}. The longest is a {longest.kind} phase of "
        f"{encoding.name(longest.app, 24)} from {format_seconds(longest.start)} to {format_seconds(longest.end)}.",
        spec=encoding.chart(
            values,
            max(70, 26 * len(shown) + 10),
            params=params,
            layer=[running, doing_io, *([in_calls] if bursts else [])],
        ),
        table=(
            ("app", "phase", "times", "kind", "from (s)", "to (s)", "bytes", "operations"),
            tuple(
                (
                    encoding.name(p.app, 40), p.index, p.count, p.kind, encoding.number(p.start_s),
                    encoding.number(p.end_s), _moved(p),
                    "unknown" if p.io.ops is None else p.io.ops.all,
                )
                for p in profile.phases[:_MAX_TABLE_ROWS]
            ),
        ),
    )  # fmt: skip


def _bursts(heat: HeatMap, numbers: Mapping[str, int]) -> list[dict[str, Any]]:
    """Bins in which some process of an app is in calls, with the kind that takes most time."""
    seconds: dict[tuple[int, int], dict[str, float]] = {}
    for kind, table in () if heat.seconds is None else heat.seconds:
        for row, amounts in zip(heat.rows, table, strict=True):
            for at, amount in enumerate(amounts):
                if amount and row.app in numbers:
                    of_kind = seconds.setdefault((numbers[row.app], at), {})
                    of_kind[kind] = of_kind.get(kind, 0.0) + amount
    bursts: list[dict[str, Any]] = []
    for (app, at), of in sorted(seconds.items()):
        kind, begin = max(of, key=lambda k: of[k]), encoding.number(at * heat.bin_s)
        shade = next(shade for least, shade in _SHADES if sum(of.values()) >= least * heat.bin_s)
        burst = {"app": app, "kind": kind, "shade": shade, "from": begin}
        same = {"app": app, "kind": kind, "shade": shade, "to": begin}
        if bursts and bursts[-1] | same == bursts[-1]:
            burst = bursts.pop()
        bursts.append(burst | {"to": encoding.number((at + 1) * heat.bin_s)})
    return bursts


def _moved(phase: Phase) -> int:
    return (phase.io.bytes.read or 0) + (phase.io.bytes.written or 0)


def _bars(phase: Phase) -> list[_Bar]:
    """One bar per repetition, each with the average."""
    moved = round(_moved(phase) / phase.count)
    operations = None if phase.io.ops is None else round(phase.io.ops.all / phase.count)
    return [_Bar(phase.app, phase.kind, start, end, 1, moved, operations) for start, end in phase.spans]


def _joined(bars: list[_Bar], gap: float) -> list[_Bar]:
    """Merge neighbours of one app with less than `gap` between them; those of two kinds become mixed."""
    merged: list[_Bar] = []
    for bar in bars:
        last = merged[-1] if merged else None
        if last is None or last.app != bar.app or bar.start - last.end > gap:
            merged.append(bar)
            continue
        operations = None
        if last.operations is not None and bar.operations is not None:
            operations = last.operations + bar.operations
        merged[-1] = replace(
            last,
            kind=last.kind if last.kind == bar.kind else "mixed",
            end=max(last.end, bar.end),
            phases=last.phases + bar.phases,
            bytes=last.bytes + bar.bytes,
            operations=operations,
        )
    return merged


def _what(bar: _Bar) -> str:
    many = f"{counted(bar.phases, 'phase')}: " if bar.phases > 1 else ""
    calls = "" if bar.operations is None else f" in {counted(bar.operations, 'call')}"
    return f"{many}{bar.kind}, {format_bytes(bar.bytes)}{calls}"


def _lives(profile: Profile) -> dict[str, tuple[float, float]]:
    """When each app ran: its run time from the recorded start of its first trace.

    A saved profile has these starts in whole seconds, so they are shifted until all phases of the app fit.
    """
    starts = [t.start_unix_s for t in profile.traces]
    known = [s for s in starts if s is not None]
    # Traces without a start are assumed to start together, as in the profile.
    origin = min(known) if known and len(known) == len(starts) else None
    begins: dict[str, float] = {}
    for trace in profile.traces:
        begin = trace.start_unix_s - origin if origin is not None and trace.start_unix_s is not None else 0.0
        begins[trace.app] = min(begins.get(trace.app, begin), begin)
    inside: dict[str, tuple[float, float]] = {}
    for phase in profile.phases or ():
        old = inside.get(phase.app, (phase.start_s, phase.end_s))
        inside[phase.app] = (min(old[0], phase.start_s), max(old[1], phase.end_s))
    lives = {}
    for app in profile.apps:
        begin, length = begins.get(app.name, 0.0), app.runtime_s or 0.0
        first, last = inside.get(app.name, (begin, begin))
        begin = min(max(begin, last - length), first)
        lives[app.name] = (begin, max(begin + length, last))
    return lives
