"""Base of rules that give large shared files a plain layout: thresholds, and the files of one command."""

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

__all__ = ["LayoutRule"]


class LayoutRule(Rule):
    """A rule that finds stripe count and stripe size of large shared files, as `layout_choice` does."""

    # Below two times max_dirty_mb, the 32 MiB that a Lustre client keeps per target before it must send
    # (general knowledge: typical default), writes end in the client's memory and no layout shows.
    # Smaller inputs stay in the servers' memory after the first reader.
    min_bytes = 64 * MiB
    # Targets for each node whose processes call independently, and of collective calls: both are chosen on four of
    # five machines and judged on the fifth (vani/models/stripe_count.py).
    per_node = stripe_count.PER_NODE
    # As the line above.
    collective_per_node = stripe_count.COLLECTIVE_PER_NODE
    # Where the number of nodes is unknown. Measured runs have 1 to 128 on each, and too few targets cost more than too
    # many: of 1 to 16, 1 did best on left-out machines (benchmarks/stripes.py). A site that fills its nodes has more.
    processes_per_node = 1
    # Bytes per node that stay in its memory where nothing flushes them, and of such files the bytes for each target
    # (vani/models/stripe_count.py).
    cached_per_node = stripe_count.CACHED_PER_NODE
    # As the line above.
    cached_per_target = stripe_count.CACHED_PER_TARGET
    # Lustre manual, section 19.2: 512 KiB is the smallest stripe size that makes sense, since RPCs are 1 MiB.
    min_stripe_size = 512 * KiB
    # Xie et al., footnote 6: stripes of 1 to 32 MB made no difference, larger ones hurt. For guesses from transfers.
    max_guessed_size = 32 * MiB
    # Larger ones only where each process keeps its own target: ours, twice what Xie et al. measured.
    max_stripe_size = 64 * MiB
    # A run that is cut for few processes to reach more targets keeps parts of four RPCs of 4 MiB: ours.
    min_part = 16 * MiB
    # ROMIO writes no more than a stripe at a time to one target; its users guide has 4 MiB and more for its buffers.
    max_collective_size = 4 * MiB
    # Bytes per second of one target where no machine is described: 350 to 500 MB/s are typical of disks
    # (Swinburne's user guide), 0.78 GB/s fit OPRAEL's measurements.
    target_rate = 500_000_000

    def groups(
        self, files: Iterable[tuple[int, FileEntity]], profile: Profile, system: System
    ) -> list[list[Case]] | str:
        """Files of one folder that get one layout, those with most I/O time first; a sentence where none changes.

        `files` come with their positions in the profile.
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
        """The reason to leave a file alone whose layout should change; None if there is none."""
        return None

    def _choice(self) -> Choice:
        return Choice(
            per_node=float(self.per_node),
            collective_per_node=float(self.collective_per_node),
            processes_per_node=max(1, int(self.processes_per_node)),
            cached_per_node=int(self.cached_per_node),
            cached_per_target=max(1, int(self.cached_per_target)),
            min_stripe_size=int(self.min_stripe_size),
            max_guessed_size=max(MiB, int(self.max_guessed_size)),
            max_stripe_size=max(MiB, int(self.max_stripe_size)),
            max_collective_size=max(MiB, int(self.max_collective_size)),
            min_part=max(MiB, int(self.min_part)),
            target_rate=float(self.target_rate),
        )
