"""Alternatives to a list of OSTs: Lustre settings, who can set them, and their effect."""

from __future__ import annotations

import posixpath
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from vani.centre.plan.placement_figures import Timing, rule_range
from vani.centre.plan.schema import Answer
from vani.models.pfl import Component, Layout
from vani.units import counted, format_share

if TYPE_CHECKING:
    from vani.centre.plan.creations import FileToPlace
    from vani.centre.plan.placement.targets import Floats
    from vani.centre.plan.placement_methods import Pool, Request
    from vani.centre.plan.schema import AllocatorRange, PlaceSettings

_FOLDERS: Final = 3
"""Most folders that get a line of their own. Others are only counted."""
_POOL: Final = "vani"
_FULL: Final = 85
"""Percent of a pool in use at which files spill, as in the example of Lustre's commit (LU-14825)."""
_OVER: Final = 4
"""Most objects per OST, as in IO500's template for ior-hard."""


def answers_to(
    files: Sequence[FileToPlace],
    requests: Sequence[Request],
    timing: Timing,
    pool: Pool,
    added: Floats,
    ranges: Sequence[AllocatorRange],
    settings: PlaceSettings,
) -> list[Answer]:
    """Alternatives to pinning. Those that a user can set come first.

    Parameters
    ----------
    requests, timing
        The placed extents and their timing.
    added
        Bytes that the plan puts on each OST of the pool, shape (targets,).
    ranges
        Figures of the rules of Lustre's allocator.
    """
    if not ranges:
        return []
    layouts = _by_folder(files)
    by_rule = {figures.rule: figures for figures in ranges}
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
        answers += [
            _of(
                "use OSTs in turn",
                "administrator",
                ["lctl set_param lod.*.qos_threshold_rr=100"],
                by_rule["going-on"],
                f"{why}; in turn, all are equally busy, and the fullest fill up first",
            ),
            _of(
                "draw OSTs by free space only",
                "administrator",
                ["lctl set_param lod.*.qos_threshold_rr=0 lod.*.qos_prio_free=100"],
                by_rule["by-space"],
                f"{why}; that balances existing bytes, not new ones",
            ),
        ]
    used = pool.is_sound & (added > 0)
    if used.sum() < len(pool.index) and all(len(request) <= used.sum() for request in requests):
        answers.append(_in_pool(layouts, requests, timing, pool, used, settings))
    return answers


def _in_pool(
    layouts: Mapping[str, Layout],
    requests: Sequence[Request],
    timing: Timing,
    pool: Pool,
    used: np.ndarray,
    settings: PlaceSettings,
) -> Answer:
    names = " ".join(f"OST{index:04x}" for index in pool.index[used].tolist())
    lines = [
        f"lctl pool_new FSNAME.{_POOL}",
        f"lctl pool_add FSNAME.{_POOL} {names}",
        *_lines({folder: _in(layout, _POOL) for folder, layout in layouts.items()}),
        f"lctl set_param lod.*.pool.{_POOL}.spill_target=OTHER_POOL lod.*.pool.{_POOL}.spill_threshold_pct={_FULL}",
    ]
    why = (
        f"Lustre chooses among {counted(int(used.sum()), 'OST')} that are neither degraded nor full; with a spill "
        f"target (Lustre 2.15), new files go to another pool once this one is {_FULL} % full; replace FSNAME "
        "by the file system's name"
    )
    figures = rule_range("as-set", requests, timing, pool.targets, settings, among=used)
    return _of("pool", "administrator", lines, figures, why)


def _of(name: str, who: str, lines: list[str], figures: AllocatorRange | None, why: str) -> Answer:
    return Answer.model_validate(
        {
            "name": name,
            "who": who,
            "lines": lines,
            "ost_cost": None if figures is None else figures.ost_cost,
            "time_cost": None if figures is None else figures.time_cost,
            "why": why,
        }
    )


def _by_folder(files: Sequence[FileToPlace]) -> dict[str, Layout]:
    """The layout of each folder's largest file, with the plan's stripe sizes."""

    largest: dict[str, FileToPlace] = {}
    for file in files:
        folder = posixpath.dirname(file.creation.path)
        if folder not in largest or file.creation.size > largest[folder].creation.size:
            largest[folder] = file
    return {folder: _sized(file) for folder, file in largest.items()}


def _sized(file: FileToPlace) -> Layout:
    sizes = {extent.number: extent.settable for extent in file.extents if extent.on_mdt is None}
    parts: list[Component] = []
    for number, part in enumerate(file.layout.components, start=1):
        parts.append(part if part.on_mdt or number not in sizes else replace(part, size=sizes[number]))
    return Layout(tuple(parts), file.layout.max_stripes)


def _overstriped(layout: Layout, count: int) -> Layout:
    last = replace(layout.components[-1], count=count, overstripe=True)
    return Layout((*layout.components[:-1], last), layout.max_stripes)


def _in(layout: Layout, pool: str) -> Layout:
    parts = (part if part.on_mdt else replace(part, pool=pool) for part in layout.components)
    return Layout(tuple(parts), layout.max_stripes)


def _lines(layouts: Mapping[str, Layout]) -> list[str]:
    rows = list(_setstripe(layouts))
    more = len(rows) - _FOLDERS
    return rows[:_FOLDERS] + ([f"# and {counted(more, 'folder')} more"] if more > 0 else [])


def _setstripe(layouts: Mapping[str, Layout]) -> Iterator[str]:
    for folder, layout in layouts.items():
        yield f"lfs setstripe {layout.to_options()} {shlex.quote(folder)}"
