"""Base class of rules that give large shared files a plain layout: thresholds, and the files of each command."""

from __future__ import annotations

import posixpath
from collections import defaultdict
from collections.abc import Iterable
from typing import TYPE_CHECKING

from vani.advisors.lustre.layout_choice import Case, Choice, choose
from vani.advisors.rule import Rule
from vani.models import stripe_count
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
