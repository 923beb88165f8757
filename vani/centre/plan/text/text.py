"""A plan as plain text: omissions, decisions, and reasons for missing figures."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from vani.centre.plan.text import KINDS, left_out
from vani.errors import one_line
from vani.render.table import listed

if TYPE_CHECKING:
    from vani.centre.plan.schema.plans import Plan

def render(plan: Plan) -> str:
    """Write the plan; the first line states its omissions."""
    first = left_out(plan)
    return "\n".join(
        [
            *([first, ""] if first else []),
            *KINDS[plan.kind][0](plan),
            *_reasons(plan),
            *(line for note in plan.notes for line in ("", f"Note: {one_line(note)}.")),
            "",
        ]
    )


def _reasons(plan: Plan) -> Iterable[str]:
    for title, some in (
        ("Unplaced", plan.unplaced),
        ("Over capacity", plan.over_capacity),
        ("No data", plan.no_data),
    ):
        if some:
            yield ""
            yield f"{title}:"
            yield from listed([f"  {one_line(left.name)}: {one_line(left.reason)}" for left in some])
