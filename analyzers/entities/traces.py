"""Traces: each trace's facts about itself, and the disagreement of its clocks."""

from __future__ import annotations

from vani.analyzers.entities.view import Notes, View
from vani.analyzers.measures.clocks import ClockSkew
from vani.schema.profile import TraceEntity


def traces(view: View) -> tuple[list[TraceEntity], Notes]:
    """One entity per trace, in the given order."""
    entities, clocks = [], view.measured.of(ClockSkew)
    for index, trace in enumerate(view.measured.traces):
        skew = None if clocks is None else clocks.traces[index]
        entities.append(
            TraceEntity(
                path=trace.source,
                tool=trace.tool,
                format=trace.format,
                layout=trace.layout,
                app=view.workload.apps[view.workload.app_of_trace[index]],
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
    notes = view.nulls(ClockSkew, "traces.clock_skew_s")
    why = view.measured.unknown.get("times")
    if why is not None:
        notes |= dict.fromkeys(("traces.span_s", "traces.repaired_times", "traces.complete"), why)
    if "repaired_times" in view.measured.unknown:
        notes["traces.repaired_times"] = view.measured.unknown["repaired_times"]
    return entities, notes
