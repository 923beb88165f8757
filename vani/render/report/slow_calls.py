"""The slowest calls: the slowest twentieth together, and its longest calls individually."""

from __future__ import annotations

from typing import Final

from vani.render.report.bounds import Limits, clip
from vani.render.report.tables import Column, Row, Table, seconds, size, words
from vani.schema.timeline import HeatMap
from vani.units import counted, format_count, format_seconds, format_share

_PART: Final = 0.05
_LISTED: Final = 20


def slow_table(heat: HeatMap | str, limits: Limits) -> Table | None:
    """A table of the slowest calls; None if the calls are not available, or take no time."""
    if isinstance(heat, str) or not heat.longest or not sum(call_class.seconds for call_class in heat.calls):
        return None
    total = sum(call_class.calls for call_class in heat.calls)
    slow = max(1, round(total * _PART))
    shown = heat.longest[: min(slow, _LISTED, limits.rows)]
    rows = tuple(
        Row(
            (
                words(clip(call.function, 80)),
                words(clip(call.path, limits.path) if call.path else "no file"),
                words(f"rank {call.rank}", clip(call.app, 40) if len(set(heat.app_of_trace)) > 1 else ""),
                seconds(call.start_s),
                seconds(call.duration_s),
                words("") if call.bytes is None else size(call.bytes),
            )
        )
        for call in shown
    )
    columns = (
        Column("Function"),
        Column("File"),
        Column("Process"),
        Column("Begins", number=True),
        Column("Takes", number=True),
        Column("Bytes", number=True),
    )
    return Table("slow", _caption(heat, total, slow, len(shown)), columns, rows)


def slowest_part(heat: HeatMap | str) -> str:
    """The slowest calls' share of the time; empty if the calls are not available, or take no time."""
    if isinstance(heat, str):
        return ""
    whole = sum(call_class.seconds for call_class in heat.calls)
    total = sum(call_class.calls for call_class in heat.calls)
    if not whole or total < 1 / _PART:
        return ""
    time, _, about = _slowest(heat, max(1, round(total * _PART)))
    share = format_share(min(1.0, time / whole))
    return f"The slowest {format_share(_PART)} of calls take {about}{share} of the time in calls."


def _caption(heat: HeatMap, total: int, slow: int, shown: int) -> str:
    whole = sum(call_class.seconds for call_class in heat.calls)
    time, least, about = _slowest(heat, slow)
    listed = "all of them are listed" if shown == slow else f"the longest {counted(shown, 'call')} are listed"
    return (
        f"The slowest {format_share(_PART)} of the {counted(total, 'call')}, {format_count(slow)} of "
        f"{about}{format_seconds(least)} or more, take {about}{format_share(min(1.0, time / whole))} of the time in "
        f"calls; {listed}."
    )


def _slowest(heat: HeatMap, slow: int) -> tuple[float, float, str]:
    """Time in the `slow` slowest calls, the duration of the shortest, and a word if classes make both approximate."""
    if slow <= len(heat.longest):
        calls = heat.longest[:slow]
        return sum(call.duration_s for call in calls), calls[-1].duration_s, ""
    left, time, least = slow, 0.0, 0.0
    for call_class in sorted(heat.calls, key=lambda call_class: (-call_class.least_s, call_class.kind)):
        taken = min(left, call_class.calls)
        time += call_class.seconds * taken / call_class.calls
        least = call_class.least_s
        left -= taken
        if not left:
            break
    return time, least, "about "
