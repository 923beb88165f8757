"""Rules about files on a Lustre file system."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from vani.advisors.data_files import extent
from vani.advisors.placement import Lustre, places
from vani.advisors.rule import Answer, Rule, Verdict
from vani.units import lfs_size

if TYPE_CHECKING:
    from vani.schema.profile import FileEntity, Profile
    from vani.schema.system import System


class FolderRule(Rule):
    """A rule that judges folders on Lustre, or files in them, one by one."""

    def on_lustre(self, parts: Iterable[tuple[str, Any]], profile: Profile, system: System) -> Verdict:
        """The verdict over parts, each with its folder; those elsewhere have a reason."""
        under = places(profile, system)
        placed = ((under(folder), part) for folder, part in parts)
        return self.among(
            place if isinstance(place, str) else self.judge(part, place, profile) for place, part in placed
        )

    def judge(self, part: Any, place: Lustre, profile: Profile) -> Answer:
        """Judge a part on this Lustre."""
        raise NotImplementedError


def large_shared(profile: Profile, least: int) -> list[tuple[int, FileEntity]] | str:
    """Files of at least `least` bytes that several processes write, with their indexes; a sentence if none."""
    files = [(index, file) for index, file in enumerate(profile.files) if file.access == "shared" and file.writers > 1]
    large = [(index, file) for index, file in files if (extent(file) or 0) >= least]
    return large or f"no shared file of {lfs_size(least)}iB or more is written by several processes"
