"""Predictions of kind `write_time`: every term, for the ends of where a job's nodes can lie."""

from __future__ import annotations

from itertools import zip_longest
from typing import TYPE_CHECKING

from vani.render.plan.table import table
from vani.units import counted, format_bytes, format_seconds

if TYPE_CHECKING:
    from vani.schema.prediction import WriteEnd, WriteTimePrediction

__all__ = ["body"]


def body(prediction: WriteTimePrediction) -> list[str]:
    """The range, how the nodes can lie, and every term."""
    write = prediction.write
    asked = (
        f"{counted(write.nodes, 'node')} x {counted(write.processes_per_node, 'process')} "
        f"x {format_bytes(write.bytes_per_process)}"
    )
    if write.stripe_count is not None:
        asked += f", {counted(write.stripe_count, 'stripe')} per file"
    return [
        f"{asked}: {_range(prediction)} ({prediction.model}).",
        "",
        *(_how(end) for end in prediction.ends),
        "",
        *table(
            ("term", "coefficient", *(f"s {end.placement}" for end in prediction.ends)),
            [
                (terms[0].feature, f"{terms[0].coefficient:.4g}", *(f"{one.seconds:,.3f}" for one in terms))
                for terms in zip_longest(*(end.terms for end in prediction.ends))
            ]
            + [("sum", "", *(f"{end.seconds:,.3f}" for end in prediction.ends))],
        ),
    ]


def _range(prediction: WriteTimePrediction) -> str:
    if prediction.low is None or prediction.high is None:
        return "no promise"
    return f"{format_seconds(prediction.low)} to {format_seconds(prediction.high)}"


def _how(end: WriteEnd) -> str:
    parts = [
        f"{counted(used, name)}, at most {counted(largest, 'node')} behind one"
        for name, (largest, used) in end.groups.items()
    ]
    return f"{end.placement}: {'; '.join(parts)}: {format_seconds(max(0.0, end.seconds))}"
