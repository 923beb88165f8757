"""Whether to pin files to the OSTs of a plan, and other answers than a plan of single files."""

from __future__ import annotations

import posixpath
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final, Literal

import numpy as np

from vani.centre.plan.placement.layouts import BUFFERED, Extent, sized
from vani.centre.plan.placement_times import MAX_TIMED, Trials
from vani.centre.plan.schema.plans import AllocatorRange, Answer, OstCosts, PlaceSettings
from vani.models.pfl import Layout
from vani.units import counted, format_bytes, format_share

if TYPE_CHECKING:
    from vani.centre.plan.inputs import FileToPlace
    from vani.centre.plan.placement.search import Floats
    from vani.centre.plan.placement_methods import Pool
    from vani.centre.plan.schema.snapshot import Snapshot

# Advice for readers of a placement: whether to pin files to OSTs, and notes on the figures.

_WORTH: Final = 1.05
"""Least gain in simulated time that makes pinning worthwhile: 1.03, and the differences between draws (our choice)."""
_ALIKE: Final = 1.03
"""Times within this factor count as equal."""


def pinning(after: OstCosts, ranges: Sequence[AllocatorRange], settings: PlaceSettings) -> tuple[bool, str]:
    """True if pinning is worthwhile, and the reason.

    The plan is compared with Lustre as configured and with OSTs in turn, whichever is faster.
    """
    if not ranges or after.ost_cost is None:
        return False, "no bytes are placed"
    if settings.method == "lsa":
        return False, "Lustre's own allocator may choose the same OSTs"
    usual = min(
        (figures for figures in ranges if figures.rule in {"as-set", "going-on"} and figures.time_cost is not None),
        key=lambda figures: figures.time_cost.median if figures.time_cost is not None else 0.0,
        default=None,
    )
    if usual is None or usual.time_cost is None or after.time_cost is None:
        return False, f"more than {MAX_TIMED:,} files: their writing is not simulated"
    time, gain = usual.time_cost, usual.time_cost.median / after.time_cost
    figures = (
        f"simulated time {time.median:.2f} ({time.low:.2f} to {time.high:.2f}) of the minimum by Lustre's own "
        f"allocator, {after.time_cost:.2f} by this plan; OST Cost {usual.ost_cost.median:.2f} and {after.ost_cost:.2f}"
    )
    if gain * _ALIKE < 1:
        return False, f"{figures}, which is slower"
    # Worth it even next to the fastest draw: where Lustre begins is not known.
    if gain < _WORTH or time.low < _ALIKE * after.time_cost:
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
    is_level = bool(free) and max(free) - min(free) <= settings.window * max(free)
    if is_level and len({file.job for file in files}) == 1 and before is not None:
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
    count, extents = int(pool.is_sound.sum()), [extent for file in files for extent in file.extents]
    alone = len(files) == len(extents) == 1 and 0 < extents[0].count < count
    if alone and is_least and after.ost_cost and not np.any(pool.targets.base > 0):
        yield (
            f"one file of {counted(extents[0].count, 'stripe')} on {counted(count, 'OST')} has OST Cost "
            f"{after.ost_cost:.4g} with any placement; more stripes lower it"
        )


def _on_stripe_sizes(files: Sequence[FileToPlace]) -> Iterator[str]:
    refused = (extent for file in files for extent in file.extents if extent.size != extent.settable)
    first: dict[tuple[int, int, int], Extent] = {}
    for extent in refused:
        first.setdefault((extent.size, extent.settable, extent.number), extent)
    for extent in list(first.values())[:5]:
        part = sum(extent.stripes) < extent.size * extent.count
        yield (
            f"extent {extent.number} has stripes of {extent.size:,} bytes by the paper, which Lustre rejects; commands "
            f"set {extent.settable:,}, which "
            + ("spreads its bytes more evenly" if part else "puts the same bytes on each OST")
        )


# Alternatives to a list of OSTs: Lustre settings, who can set them, and their effect.

_FOLDERS: Final = 3
"""Most folders that get a line of their own. Others are only counted."""
_POOL: Final = "vani"
_FULL: Final = 85
"""Percent of a pool in use at which files spill, as in the example of Lustre's commit (LU-14825)."""
_OVER: Final = 4
"""Most objects per OST, as in IO500's template for ior-hard."""


def answers_to(
    files: Sequence[FileToPlace],
    trials: Trials,
    pool: Pool,
    ranges: Sequence[AllocatorRange],
    settings: PlaceSettings,
) -> list[Answer]:
    """Alternatives to pinning. Those that a user can set come first.

    Parameters
    ----------
    trials
        The placed files on all OSTs in service.
    ranges
        Figures of the rules of Lustre's allocator.
    """
    if not ranges:
        return []
    layouts = _by_folder(files)
    by_rule: dict[str, AllocatorRange] = {figures.rule: figures for figures in ranges}
    answers = [_of("leave to Lustre", "user", _lines(layouts), by_rule["as-set"], "a layout without OSTs")]
    count = int(pool.is_sound.sum())
    crowded = [file for file in files if file.writing.writers > count]
    if crowded:
        wide = {
            folder: _overstriped(layout, min(crowded[0].writing.writers, _OVER * count))
            for folder, layout in _by_folder(crowded).items()
        }
        why = "more processes than OSTs write a file: with one object per process, each has its own lock (Lustre 2.13)"
        answers.append(_of("overstripe", "user", _lines(wide), None, why))
    free = pool.targets.room
    uneven = bool(len(free)) and float(free.max() - free.min()) > settings.window * float(free.max())
    if uneven:
        why = f"free space differs by more than {format_share(settings.window)}, so Lustre draws OSTs by free space"
        for name, rule, value, effect in (
            ("use OSTs in turn", "going-on", "100", "in turn, all are equally busy, and the fullest fill up first"),
            (
                "draw OSTs by free space only", "by-space", "0 lod.*.qos_prio_free=100",
                "that balances existing bytes, not new ones",
            ),
        ):
            line = f"lctl set_param lod.*.qos_threshold_rr={value}"
            answers.append(_of(name, "administrator", [line], by_rule[rule], f"{why}; {effect}"))
    usable = pool.is_sound & (100 * pool.used < _FULL)
    widest = max((extent.count for file in files for extent in file.extents), default=0)
    if usable.sum() < len(pool.index) and widest <= usable.sum():
        answers.append(_in_pool(layouts, trials, pool, usable))
    return answers


def _in_pool(layouts: Mapping[str, Layout], trials: Trials, pool: Pool, usable: np.ndarray) -> Answer:
    names = " ".join(f"OST{index:04x}" for index in pool.index[usable].tolist())
    lines = [
        f"lctl pool_new FSNAME.{_POOL}",
        f"lctl pool_add FSNAME.{_POOL} {names}",
        *_lines({folder: _in(layout, _POOL) for folder, layout in layouts.items()}),
        f"lctl set_param lod.*.pool.{_POOL}.spill_target=OTHER_POOL lod.*.pool.{_POOL}.spill_threshold_pct={_FULL}",
    ]
    why = (
        f"Lustre chooses among {counted(int(usable.sum()), 'OST')}, without the {int((~usable).sum()):,} that are "
        f"degraded or at least {_FULL} % full; with a spill target (Lustre 2.15), new files go to another pool once "
        f"this one is {_FULL} % full; replace FSNAME by the file system's name"
    )
    return _of("pool", "administrator", lines, trials.range_of("as-set", among=usable), why)


def _of(
    name: str, who: Literal["user", "administrator"], lines: list[str], figures: AllocatorRange | None, why: str
) -> Answer:
    costs = (None, None) if figures is None else (figures.ost_cost, figures.time_cost)
    return Answer(name=name, who=who, lines=lines, ost_cost=costs[0], time_cost=costs[1], why=why)


def _by_folder(files: Sequence[FileToPlace]) -> dict[str, Layout]:
    """The layout of each folder's largest file, with the plan's stripe sizes."""

    largest: dict[str, FileToPlace] = {}
    for file in files:
        folder = posixpath.dirname(file.creation.path)
        if folder not in largest or file.creation.size > largest[folder].creation.size:
            largest[folder] = file
    return {folder: sized(file.layout, file.extents) for folder, file in largest.items()}


def _overstriped(layout: Layout, count: int) -> Layout:
    last = replace(layout.components[-1], count=count, overstripe=True)
    return Layout((*layout.components[:-1], last), layout.max_stripes)


def _in(layout: Layout, pool: str) -> Layout:
    parts = (part if part.on_mdt else replace(part, pool=pool) for part in layout.components)
    return Layout(tuple(parts), layout.max_stripes)


def _lines(layouts: Mapping[str, Layout]) -> list[str]:
    rows = [f"lfs setstripe {layout.to_options()} {shlex.quote(folder)}" for folder, layout in layouts.items()]
    more = len(rows) - _FOLDERS
    return rows[:_FOLDERS] + ([f"# and {counted(more, 'folder')} more"] if more > 0 else [])
