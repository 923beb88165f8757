"""Whether a plan holds, as plain text: the first line says it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from vani.errors import one_line
from vani.render.table import listed

if TYPE_CHECKING:
    from vani.schema.plan import Left
    from vani.schema.standing import Standing

__all__ = ["render"]


def render(found: Standing) -> str:
    """Write the verdict, and below it what else is to be known."""
    return "\n".join(
        [
            one_line(_verdict(found)),
            *_reasons("Also broken", found.broken[1:]),
            *_reasons("Not compared", found.unknown),
            *(line for note in found.notes for line in ("", f"Note: {one_line(note)}.")),
            "",
        ]
    )


def _verdict(found: Standing) -> str:
    if found.broken:
        first = found.broken[0]
        more = f" (and {len(found.broken) - 1:,} more)" if len(found.broken) > 1 else ""
        return f"Does not hold: {first.name}: {first.reason}{more}."
    taken = f" of {found.time.isoformat()}" if found.time is not None else ""
    return f"Holds: plan of kind {found.kind}, by the snapshot{taken}."


def _reasons(title: str, some: Sequence[Left]) -> Iterable[str]:
    if some:
        yield ""
        yield f"{title}:"
        yield from listed([f"  {one_line(one.name)}: {one_line(one.reason)}" for one in some])
