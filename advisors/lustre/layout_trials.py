"""The folder whose layout is worth a trial where no rule can determine the best layout.

Models know large files that several processes use. Of all others a trial knows more: the two ends of what users can
set, all targets in small stripes and a single target, show in which direction a program is faster.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from vani.advisors.commands import quoted_path
from vani.advisors.data_files import folder_of
from vani.advisors.placement import places
from vani.advisors.rule import Knob, seconds
from vani.advisors.site_layouts import keeps_own_layout, present_stripes

if TYPE_CHECKING:
    from vani.schema.profile import FileEntity, Profile
    from vani.schema.system import System

__all__ = ["Folder", "costliest_folder", "layouts_of"]


@dataclass(frozen=True)
class Folder:
    """A folder on Lustre: its path, the targets that a file there may use at most, and those that it has (-1: all)."""

    path: str
    most: int
    now: int


def costliest_folder(profile: Profile, system: System) -> Folder | None:
    """The folder of files written by the run that takes most I/O time; None where its layout is not the user's."""
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


def layouts_of(folder: Folder, *options: str) -> list[Knob]:
    """The knob of its layout."""
    return [Knob("layout", [{"options": words} for words in options], folder.path)]
