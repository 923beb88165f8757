"""Whether a plan is valid, as plain text, with the verdict in the first line."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from vani.errors import one_line
from vani.render.table import listed

if TYPE_CHECKING:
    from vani.centre.plan.check import PlanStatus
    from vani.centre.plan.schema.plans import Left

def render(status: PlanStatus) -> str:
    """Write the verdict, followed by further reasons and notes."""
    return "\n".join(
        [
            one_line(_verdict(status)),
            *_reasons("Also broken", status.broken[1:]),
            *_reasons("Not compared", status.unknown),
            *(line for note in status.notes for line in ("", f"Note: {one_line(note)}.")),
            "",
        ]
    )


def _verdict(status: PlanStatus) -> str:
    if status.broken:
        first = status.broken[0]
        more = f" (and {len(status.broken) - 1:,} more)" if len(status.broken) > 1 else ""
        return f"Not valid: {first.name}: {first.reason}{more}."
    taken = f" of {status.time.isoformat()}" if status.time is not None else ""
    return f"Valid: the {status.kind} plan fits the snapshot{taken}."


def _reasons(title: str, some: Sequence[Left]) -> Iterable[str]:
    if some:
        yield ""
        yield f"{title}:"
        yield from listed([f"  {one_line(left.name)}: {one_line(left.reason)}" for left in some])
