"""The files that cost a run most: a name pattern, or a folder if the names have no pattern."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from vani.schema.profile import ByteCounts, FileEntity, Folder, IOStats, NamePattern, Profile

_MOST: Final = 0.5
"""Least share of the costliest folder's time that a pattern needs to show where the time goes; else the folder does."""


@dataclass(frozen=True)
class Costliest:
    """The files with most I/O time, or with most bytes if no time is known.

    `group` is a row of `profile.patterns` or `profile.folders`. Profiles of an older Vani have no patterns; for these
    it is a row of `profile.files`.
    """

    name: str
    files: int
    share: float | None
    """Share of the I/O time, 0..1; None if unknown."""
    group: NamePattern | Folder | FileEntity


def costliest(profile: Profile) -> Costliest | None:
    """The files that cost most; None if the run used no files."""
    pattern = max(profile.patterns or (), key=_cost, default=None)
    if pattern is None:
        return _of_file(profile)
    folder = max(profile.folders or (), key=_cost, default=None)
    if folder is not None and _less(pattern, folder):
        return Costliest(folder.path, folder.files, _share(profile, folder.time_s), folder)
    return Costliest(pattern.pattern, pattern.files, _share(profile, pattern.time_s), pattern)


def calls_s(io: IOStats) -> float:
    """Seconds in all calls, summed over processes and their threads.

    `time_s.total` and each kind of call count the simultaneous calls of a process's threads once, so the kinds
    together may exceed the total.

    """
    time = io.time_s
    return max(time.total or 0.0, sum(part or 0.0 for part in (time.read, time.write, time.metadata, time.sync)))


def _of_file(profile: Profile) -> Costliest | None:
    if not profile.files:
        return None
    file = profile.files[0]
    return Costliest(file.path, 1, _share(profile, file.io.time_s.total), file)


def _cost(group: NamePattern | Folder) -> tuple[float, int, int]:
    return group.time_s or 0.0, _moved(group.bytes), group.opens or 0


def _less(pattern: NamePattern, folder: Folder) -> bool:
    for part, whole in zip(_cost(pattern), _cost(folder), strict=True):
        if whole:
            return part < _MOST * whole
    return False


def _moved(moved: ByteCounts) -> int:
    return (moved.read or 0) + (moved.written or 0)


def _share(profile: Profile, time: float | None) -> float | None:
    whole = calls_s(profile.workflow.io)
    return min(1.0, time / whole) if time is not None and whole else None
