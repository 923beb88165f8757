"""Advice for readers of a placement: whether to pin files to OSTs, and notes on the figures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from vani.centre.plan.placement.stripe_size import BUFFERED
from vani.units import counted, format_bytes, format_share

if TYPE_CHECKING:
    from vani.centre.plan.creations import FileToPlace
    from vani.centre.plan.placement.extents import Extent
    from vani.centre.plan.placement.targets import Floats
    from vani.centre.plan.placement_methods import Pool
    from vani.centre.plan.schema import AllocatorRange, OstCosts, PlaceSettings
    from vani.centre.plan.schema.snapshot import Snapshot

_WORTH: Final = 1.05
"""Least gain in OST Cost that makes pinning worthwhile (our choice)."""
_ALIKE: Final = 1.03
"""Predicted times within this factor count as equal."""


def pinning(after: OstCosts, before: AllocatorRange | None, settings: PlaceSettings) -> tuple[bool, str]:
    """True if pinning is worthwhile, and the reason."""
    if before is None or after.ost_cost is None or before.time_cost is None or after.time_cost is None:
        return False, "no bytes are placed"
    if settings.method == "lsa":
        return False, "Lustre's own allocator may choose the same OSTs"
    cost, time = before.ost_cost.median, before.time_cost.median
    figures = (
        f"OST Cost {cost:.2f} by Lustre's own allocator, {after.ost_cost:.2f} by this plan; predicted time {time:.2f} "
        f"and {after.time_cost:.2f} of the minimum"
    )
    fuller, slower = after.ost_cost > cost * 1.001, after.time_cost > time * _ALIKE
    if slower:
        return False, f"{figures}, which is slower"
    if fuller:
        return False, f"{figures}: OSTs fill less evenly"
    if cost < after.ost_cost * _WORTH and time < after.time_cost * _ALIKE:
        return False, f"{figures}: too little to switch Lustre's own balancing off"
    return True, figures


def notes_of(
    files: Sequence[FileToPlace],
    snapshot: Snapshot,
    settings: PlaceSettings,
    pool: Pool,
    added: Floats,
    after: OstCosts,
    before: AllocatorRange | None,
    *,
    is_least: bool,
) -> list[str]:
    """Notes on a placement, the most important first."""
    notes = [*_on_pinning(snapshot, files, settings, before), *_on_dom(files), *_on_large_stripes(files)]
    notes += _on_widths(files, pool, after, is_least=is_least)
    if settings.method == "tarazu":
        notes += _on_stripe_sizes(files)
        notes.append(
            "algorithm 1 has linear costs: it puts all stripes of a batch on the cheapest OSTs until these are "
            "full; --method balanced spreads them"
        )
    degraded = pool.index[~pool.is_sound & (added > 0)].tolist()
    if degraded:
        listed = ", ".join(map(str, degraded[:20])) + (", ..." if len(degraded) > 20 else "")
        notes.append(f"degraded OSTs are used, because the others are not enough: {listed}")
    return notes + snapshot.reasons_to_wait() + list(snapshot.notes)


def _on_pinning(
    snapshot: Snapshot, files: Sequence[FileToPlace], settings: PlaceSettings, before: AllocatorRange | None
) -> Iterator[str]:
    yield (
        "an OST list (-o) switches Lustre's own balancing off: it ignores what others write in the meantime, and a "
        "file cannot be created while one of its OSTs is offline"
    )
    free = [target.size - target.used for target in snapshot.ost if target.state == "ok"]
    jobs = {file.job for file in files}
    if (
        free
        and max(free) - min(free) <= settings.window * max(free)
        and len(jobs) == 1
        and before is not None
    ):
        yield (
            f"free space differs by at most {format_share(settings.window)} and one job creates all files: Lustre "
            f"uses OSTs in turn, which is even if no other job writes (here OST Cost {before.ost_cost.median:.2f})"
        )


def _on_dom(files: Sequence[FileToPlace]) -> Iterator[str]:
    on_mdt = [extent.on_mdt for file in files for extent in file.extents if extent.on_mdt is not None]
    if on_mdt:
        yield (
            f"{counted(len(on_mdt), 'file')} {'begins' if len(on_mdt) == 1 else 'begin'} on the metadata target (DoM): "
            f"{format_bytes(sum(on_mdt))} there; a snapshot does not show the free space there"
        )


def _on_large_stripes(files: Sequence[FileToPlace]) -> Iterator[str]:
    large = {
        extent.settable
        for file in files
        for extent in file.extents
        if is_one_by_one(file, extent) and extent.purpose == "stated"
    }
    if large:
        yield (
            f"stripes of {format_bytes(max(large))} exceed a client's cache per OST: a process that writes in order "
            "uses one OST at a time"
        )


def is_one_by_one(file: FileToPlace, extent: Extent) -> bool:
    """True if the file's process writes the stripes of the extent one after another."""
    return file.writing.writers == 1 and extent.count > 1 and extent.settable > BUFFERED


def _on_widths(files: Sequence[FileToPlace], pool: Pool, after: OstCosts, *, is_least: bool) -> Iterator[str]:
    count = int(pool.is_sound.sum())
    if (
        len(files) == 1
        and len(files[0].extents) == 1
        and not np.any(pool.targets.base > 0)
        and after.ost_cost
    ):
        extent = files[0].extents[0]
        if 0 < extent.count < count and is_least:
            yield (
                f"one file of {counted(extent.count, 'stripe')} on {counted(count, 'OST')} has OST Cost "
                f"{after.ost_cost:.4g} with any placement; more stripes lower it"
            )


def _on_stripe_sizes(files: Sequence[FileToPlace]) -> Iterator[str]:
    seen = set()
    for file in files:
        for extent in file.extents:
            key = (extent.size, extent.settable, extent.number)
            if extent.size == extent.settable or key in seen:
                continue
            seen.add(key)
            part = sum(extent.stripes) < extent.size * extent.count
            yield (
                f"extent {extent.number} has stripes of {extent.size:,} bytes by the paper, which Lustre rejects; "
                f"commands set {extent.settable:,}, "
                + (
                    "which spreads its bytes more evenly"
                    if part
                    else "which puts the same bytes on each OST"
                )
            )
            if len(seen) >= 5:
                return
