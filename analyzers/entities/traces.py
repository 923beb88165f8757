"""Traces: what each tells of itself, and how far its clocks disagree."""

from __future__ import annotations

from vani.analyzers.entities.view import View
from vani.schema.profile import TraceEntity

__all__ = ["traces"]


def traces(view: View) -> list[TraceEntity]:
    """One entity per trace, in the order in which they were given."""
    found, clocks = [], view.measured.clocks
    for index, trace in enumerate(view.measured.traces):
        skew = None if clocks is None else clocks.traces[index]
        found.append(
            TraceEntity(
                path=trace.source,
                tool=trace.tool,
                format=trace.format,
                layout=trace.layout,
                app=view.world.apps[view.world.app_of_trace[index]],
                ranks=trace.ranks,
                records=trace.records,
                functions=dict(trace.functions),
                start_unix_s=trace.start_unix_s,
                span_s=None if trace.span_ns is None else (trace.span_ns - trace.begin_ns) / 1e9,
                repaired_times=trace.repaired_times,
                clock_skew_s=None if skew is None else skew / 1e9,
                complete=trace.complete,
                problems=list(trace.problems),
            )
        )
    return found
