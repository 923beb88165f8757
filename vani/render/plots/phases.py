"""Timeline of each app's phases, with the times between in which it computes, communicates or waits."""

from __future__ import annotations

from dataclasses import dataclass, replace

from vani.render.plots.drawing import Drawing, Plot
from vani.render.plots.encoding import NO_TIMES, chart, colour, name, number, time_axis, zoom
from vani.schema.profile import Phase, Profile
from vani.schema.timeline import HeatMap
from vani.units import counted, format_bytes, format_seconds, format_share

KIND, TITLE = "phases", "Phases of I/O and compute between"

_MOST_APPS = 40
_MOST_BARS = 900
# Bars closer than this share of the run look like one on a page.
_CLOSE = 1 / 2000
_TABLE_ROWS = 200


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


def _draw(profile: Profile, heat: HeatMap | None) -> Drawing | str:
    del heat
    if profile.workflow.runtime_s is None:
        return NO_TIMES
    if not profile.phases:
        return "there is no phase of I/O"
    runtime = profile.workflow.runtime_s or max(p.end_s for p in profile.phases)
    time = {app.name: app.io.time_s.total or 0.0 for app in profile.apps}
    first: dict[str, float] = {}
    for phase in profile.phases:
        first[phase.app] = min(first.get(phase.app, phase.start_s), phase.start_s)
    shown = sorted(
        sorted(first, key=lambda a: (-time.get(a, 0.0), a))[:_MOST_APPS], key=lambda a: (first[a], a)
    )
    numbers = {app: i for i, app in enumerate(shown)}
    phases = [p for p in profile.phases if p.app in numbers]
    bars = sorted((bar for p in phases for bar in _bars(p)), key=lambda bar: (numbers[bar.app], bar.start))
    gap = 0.0
    drawn = bars
    while len(drawn) > _MOST_BARS:
        gap = 2 * gap or runtime * _CLOSE
        drawn = _joined(bars, gap)
    names = [name(app, 24) for app in shown]
    values = [
        {
            "app": numbers[bar.app],
            "kind": bar.kind,
            "from": number(bar.start),
            "to": number(bar.end),
            "what": _what(bar),
        }
        for bar in drawn
    ]
    lives = [
        {"app": numbers[app], "from": number(start), "to": number(end)}
        for app, (start, end) in _lives(profile).items()
        if app in numbers
    ]
    y = {
        "field": "app",
        "type": "ordinal",
        "scale": {"domain": list(range(len(shown)))},
        "axis": {"title": None, "labelExpr": "app_name[datum.value]", "ticks": False, "domain": False},
    }
    x = {
        "field": "from",
        "type": "quantitative",
        "scale": {"domain": [0, number(runtime)], "nice": False},
        "axis": time_axis(),
    }
    height = max(70, 26 * len(shown) + 10)
    spec = chart(
        values,
        height,
        params=[{"name": "app_name", "value": names}],
        layer=[
            {
                "data": {"values": lives},
                "mark": {"type": "bar", "height": 4, "style": "gap", "clip": True, "aria": False},
                "encoding": {"y": y, "x": x, "x2": {"field": "to"}},
            },
            {
                # The outline keeps phases of a few milliseconds visible in a run of hours.
                "params": zoom(),
                "mark": {"type": "bar", "height": {"band": 0.72}, "strokeWidth": 1, "clip": True},
                "encoding": {
                    "y": y,
                    "x": x,
                    "x2": {"field": "to"},
                    "color": colour("phase", (bar.kind for bar in drawn)),
                    "stroke": {**colour(None, ()), "legend": None},
                    "tooltip": [
                        {"field": "what", "type": "nominal", "title": "phase"},
                        {"field": "from", "type": "quantitative", "title": "from (s)", "format": ",.7~g"},
                        {"field": "to", "type": "quantitative", "title": "to (s)", "format": ",.7~g"},
                    ],
                },
            },
        ],
    )
    longest = max(bars, key=lambda b: (b.end - b.start, -b.start))
    others = len(first) - len(shown)
    verb = "is" if others == 1 else "are"
    left_out = f" {counted(others, 'app')} with less I/O time {verb} left out." if others > 0 else ""
    joined = (
        f" {len(bars):,} phases are drawn as {len(drawn):,}: neighbours less than {format_seconds(gap)} "
        f"apart are one."
        if len(drawn) < len(bars)
        else ""
    )
    spaced = (
        " Repetitions are drawn evenly spaced and equally long."
        if any(p.count > 1 for p in profile.phases)
        else ""
    )
    return Drawing(
        kind=KIND,
        title=TITLE,
        caption="When each app does I/O (wide bars, coloured by its main kind) and when it computes, "
        "communicates or "
        "waits instead (thin bars between). Look for phases that come back at a steady distance, such as "
        "checkpoints, "
        f"and for apps that wait for another one's output.{left_out}{joined}{spaced}",
        description=f"{counted(sum(p.count for p in profile.phases), 'phase')} of {counted(len(first), 'app')} "
        f"in a run of {format_seconds(runtime)}{_share_of_run(profile)}. The longest is a "
        f"{longest.kind} phase of {name(longest.app, 24)} from {format_seconds(longest.start)} to "
        f"{format_seconds(longest.end)}.",
        spec=spec,
        table=(
            ("app", "phase", "times", "kind", "from (s)", "to (s)", "bytes", "operations"),
            tuple(
                (
                    name(p.app, 40),
                    p.index,
                    p.count,
                    p.kind,
                    number(p.start_s),
                    number(p.end_s),
                    _moved(p),
                    "unknown" if p.io.ops is None else p.io.ops.all,
                )
                for p in profile.phases[:_TABLE_ROWS]
            ),
        ),
    )


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
        merged[-1] = replace(
            last,
            kind=last.kind if last.kind == bar.kind else "mixed",
            end=max(last.end, bar.end),
            phases=last.phases + bar.phases,
            bytes=last.bytes + bar.bytes,
            operations=None
            if last.operations is None or bar.operations is None
            else last.operations + bar.operations,
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


def _share_of_run(profile: Profile) -> str:
    share = profile.workflow.io_time_share
    return "" if share is None else f", {format_share(share)} of it in I/O"


PLOT = Plot(KIND, TITLE, "when each app reads, writes or does something else", _draw, position=50)
