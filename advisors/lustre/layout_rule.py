"""Base class of rules that give large shared files a plain layout: thresholds, and the files of each command.

Models cover large files that several processes use. For all others, a trial is better: the two extremes that users can
set, all targets in small stripes and a single target, show in which direction a program gets faster.
"""

from __future__ import annotations

import posixpath
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from vani.advisors.commands import quoted_path
from vani.advisors.data_files import folder_of
from vani.advisors.lustre.layout_choice import Case, Choice, choose
from vani.advisors.placement import keeps_own_layout, places, present_stripes
from vani.advisors.rule import Rule, TunableSetting
from vani.models import stripe_count
from vani.models.run_time import seconds
from vani.units import KiB, MiB

if TYPE_CHECKING:
    from vani.schema.profile import FileEntity, Profile
    from vani.schema.system import System

class LayoutRule(Rule):
    """A rule that chooses stripe count and stripe size of large shared files with `layout_choice`."""

    # Twice max_dirty_mb, the 32 MiB that a Lustre client buffers per target before it must send (general knowledge:
    # typical default). Smaller writes end in the client's memory, so that no layout makes a difference, and smaller
    # inputs stay in the servers' memory after the first reader.
    min_bytes = 64 * MiB
    # Targets per node for independent calls and for collective calls, and the least: the fixed rule with the least
    # regret (vani/models/stripe_count.py).
    per_node = stripe_count.PER_NODE
    # As the line above.
    collective_per_node = stripe_count.COLLECTIVE_PER_NODE
    # As the line above.
    least = stripe_count.LEAST
    # Bytes per second and node from which on more targets gained nothing (vani/models/stripe_count.py).
    enough = stripe_count.ENOUGH
    # As the line above.
    collective_enough = stripe_count.COLLECTIVE_ENOUGH
    # If the number of nodes is unknown. Measured runs have 1 to 128 processes per node, and too few targets cost more
    # than too many: of 1 to 16, 1 was best on held-out machines (benchmarks/stripes.py). Full nodes have more.
    processes_per_node = 1
    # Lustre manual, section 19.2: the smallest stripe size that makes sense, because RPCs are 1 MiB.
    min_stripe_size = 512 * KiB
    # Our choice: twice what Xie et al. measured. Stripes are larger only if each process keeps its own target.
    max_stripe_size = 64 * MiB
    # Our choice: if the runs of few processes are split to reach more targets, parts have at least four RPCs of 4 MiB.
    min_part = 16 * MiB

    def groups(
        self, files: Iterable[tuple[int, FileEntity]], profile: Profile, system: System
    ) -> list[list[Case]] | str:
        """Groups of files that share a folder and get the same layout, by I/O time; a sentence if none changes.

        `files` has the index in the profile with each file.
        """
        by = self._choice()
        groups: defaultdict[tuple[object, ...], list[Case]] = defaultdict(list)
        reasons: list[str] = []
        for index, file in files:
            case = choose(index, file, profile, system, by)
            if isinstance(case, Case) and (objection := self.objection(case)) is not None:
                case = objection
            if isinstance(case, str):
                reasons.append(case)
            else:
                groups[posixpath.dirname(file.path), case.layout].append(case)
        if not groups:
            return "; ".join(dict.fromkeys(reasons))
        return [sorted(group, key=lambda case: -case.busy_s) for group in groups.values()]

    def objection(self, case: Case) -> str | None:  # noqa: ARG002 - one rule has some
        """The reason not to change the layout of a file; None if there is none."""
        return None

    def _choice(self) -> Choice:
        return Choice(
            per_node=float(self.per_node),
            collective_per_node=float(self.collective_per_node),
            least=max(1, int(self.least)),
            enough=float(self.enough),
            collective_enough=float(self.collective_enough),
            processes_per_node=max(1, int(self.processes_per_node)),
            min_stripe_size=int(self.min_stripe_size),
            max_stripe_size=max(MiB, int(self.max_stripe_size)),
            min_part=max(MiB, int(self.min_part)),
        )


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
