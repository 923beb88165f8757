"""Layouts to try where no model applies: the two extremes that users can set for the folder with most I/O time.

All targets in small stripes and a single target show in which direction a program gets faster.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from vani.advisors.commands import quoted_path
from vani.advisors.data_files import folder_of
from vani.advisors.placement import keeps_own_layout, places, present_stripes
from vani.advisors.rule import TunableSetting
from vani.models.run_time import seconds

if TYPE_CHECKING:
    from vani.schema.profile import FileEntity, Profile
    from vani.schema.system import System


@dataclass(frozen=True)
class Folder:
    """A folder on Lustre: its path, the most targets that a file there may use, and its present number (-1: all)."""

    path: str
    most: int
    now: int


def costliest_folder(profile: Profile, system: System) -> Folder | None:
    """The folder of written files with most I/O time; None if users cannot set its layout."""
    by_folder: defaultdict[str, list[FileEntity]] = defaultdict(list)
    for file in profile.files:
        if file.writers and file.role != "input":
            by_folder[folder_of(file.path)].append(file)
    if not by_folder:
        return None
    path, files = max(by_folder.items(), key=lambda item: sum(seconds(file.io.time_s.total) for file in item[1]))
    place = places(profile, system)(path)
    if isinstance(place, str) or place.figures is None or keeps_own_layout(place.figures) or not quoted_path(path):
        return None
    now = present_stripes(files[0], place.figures)[0]
    limits = [n for n in (place.figures.targets, place.figures.max_stripe_count) if n]
    return None if now is None or not place.figures.targets else Folder(path, min(limits), now)


def layouts_of(folder: Folder, *options: str) -> list[TunableSetting]:
    """The tunable for a folder's layout, with these values to try."""
    return [TunableSetting("layout", [{"options": words} for words in options], folder.path)]
