"""The bytes of a file on each stripe, by component of its layout.

Tarazu cuts a component into one piece per stripe (section 5.5.2): stripe size = length / stripes, rounded up to an
even multiple of 64 KiB (equations 2 and 3). Lustre refuses some of these sizes: a component must end at a multiple of
its stripe size, and a stripe must be smaller than 4 GiB. `settable` is the largest size that Lustre accepts and that
puts the same bytes on each stripe. Other plans choose the size from how the file is written (`stripe_size`).

Lustre counts stripes from the beginning of the file, not of the component (`lov_stripe_number` in the release).
"""

from __future__ import annotations

from dataclasses import dataclass

from vani.centre.plan.placement.stripe_size import (
    Purpose,
    Writing,
    settable,
    stripe_bytes,
    stripe_size_for,
    tarazu_stripe_size,
)
from vani.models.pfl import Component, Layout


@dataclass(frozen=True)
class Extent:
    """The part of a file in one component.

    `number` counts from 1. `end` is the component's end, or the file's if the component has none. `stripes` are the
    bytes of each stripe with a stripe size of `size`. `settable` is the stripe size for a command, and `purpose` the
    reason for it. `why_free` states why no targets can be listed for the part; None if they can. A part on the
    metadata target has no stripes but `on_mdt` bytes.
    """

    number: int
    start: int
    end: int
    count: int
    size: int
    settable: int
    stripes: tuple[int, ...]
    purpose: Purpose
    why_free: str | None = None
    on_mdt: int | None = None


def extents(layout: Layout, size: int, targets: int, writing: Writing | None = None) -> list[Extent]:
    """The components that a file of `size` bytes reaches, up to at least the first with targets.

    Parameters
    ----------
    targets
        Number of targets that a stripe count of -1 means, limited by the most stripes of a file.
    writing
        How the file is written. None: count bytes with Tarazu's stripe sizes, extent by extent, even if Lustre refuses
        these sizes.
    """
    pieces: list[Extent] = []
    stated: int | None = None
    on_all = sum(part.count == -1 for part in layout.components)
    wide = max(1, min(targets, 1 + (layout.max_stripes - layout.stripes) // max(1, on_all)))
    for number, (start, part) in enumerate(zip(layout.starts(), layout.components, strict=True), start=1):
        stated = part.size or stated
        if start >= size and any(piece.on_mdt is None for piece in pieces):
            break
        filled = min(size, part.end if part.end is not None else size)
        if part.on_mdt:
            end = part.end or 0
            pieces.append(Extent(number, start, end, 0, end, end, (), "stated", on_mdt=filled - start))
            continue
        count = wide if part.count == -1 else part.count or 1
        whole = (part.end if part.end is not None else max(size, start + 1)) - start
        if stated is not None:
            counted_by = sets = stated
            purpose: Purpose = "stated"
        elif writing is None:
            counted_by, sets, purpose = tarazu_stripe_size(whole, count), settable(whole, count, part.end), "paper"
        else:
            sets, purpose = stripe_size_for(writing, start, max(filled, start), part.end, count)
            counted_by = sets
        # The paper counts stripes from the beginning of the extent.
        place = (0, filled - start, counted_by) if writing is None else (start, filled, sets)
        pieces.append(
            Extent(
                number,
                start,
                end=part.end if part.end is not None else max(size, start),
                count=count,
                size=counted_by,
                settable=sets,
                stripes=stripe_bytes(*place, count),
                purpose=purpose,
                why_free=_why_free(part),
            )
        )
    return pieces


def _why_free(part: Component) -> str | None:
    if part.overstripe:
        return "it is overstriped: several of its stripes are on one OST"
    if part.extension is not None:
        return "it extends itself: its next place is decided as it grows"
    if part.pool is not None:
        return f"it is in the pool {part.pool}: a snapshot does not list the OSTs of pools"
    return None
