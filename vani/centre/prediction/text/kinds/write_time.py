"""Predictions of kind `write_time`: every term, for the extremes of a job's node placement."""

from __future__ import annotations

from itertools import zip_longest
from typing import TYPE_CHECKING

from vani.centre.write_time.evaluation_text import column_value
from vani.errors import one_line
from vani.render.table import table
from vani.units import counted, format_bytes, format_seconds

if TYPE_CHECKING:
    from vani.centre.prediction.schema import WriteEnd, WriteTimePrediction

def body(prediction: WriteTimePrediction) -> list[str]:
    """The range, and for a published model the node placements and every term."""
    first = f"{_request(prediction)}: {_range(prediction)} ({prediction.model})."
    if not prediction.ends:
        return [first]
    return [
        first,
        "",
        *(_how(end) for end in prediction.ends),
        "",
        *table(
            ("term", "coefficient", *(f"s {end.placement}" for end in prediction.ends)),
            [
                (terms[0].feature, f"{terms[0].coefficient:.4g}", *(f"{term.seconds:,.3f}" for term in terms))
                for terms in zip_longest(*(end.terms for end in prediction.ends))
            ]
            + [("sum", "", *(f"{end.seconds:,.3f}" for end in prediction.ends))],
        ),
    ]


def _request(prediction: WriteTimePrediction) -> str:
    write = prediction.write
    if write is None:
        return one_line(", ".join(column_value(*pair) for pair in prediction.asked.items()))
    text = (
        f"{counted(write.nodes, 'node')} x {counted(write.processes_per_node, 'process')} "
        f"x {format_bytes(write.bytes_per_process)}"
    )
    if write.stripe_count is not None:
        text += f", {counted(write.stripe_count, 'stripe')} per file"
    return text


def _range(prediction: WriteTimePrediction) -> str:
    if prediction.low is None or prediction.high is None:
        return "no estimate"
    ends = f"{format_seconds(prediction.low)} to {format_seconds(prediction.high)}"
    return ends if prediction.seconds is None else f"{format_seconds(prediction.seconds)} ({ends})"


def _how(end: WriteEnd) -> str:
    parts = [
        f"{counted(used, name)}, at most {counted(largest, 'node')} each"
        for name, (largest, used) in end.groups.items()
    ]
    return f"{end.placement}: {'; '.join(parts)}: {format_seconds(max(0.0, end.seconds))}"
