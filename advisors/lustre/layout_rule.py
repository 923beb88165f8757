"""Base of rules that give large shared files a plain layout: thresholds, and the files of one command."""

from __future__ import annotations

import posixpath
from collections import defaultdict
from collections.abc import Iterable
from typing import TYPE_CHECKING

from vani.advisors.lustre.layout_choice import Case, Choice, choose
from vani.advisors.rule import Rule
from vani.units import GiB, KiB, MiB

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
    # Lustre manual, section 19.2: 512 KiB is the smallest stripe size that makes sense, since RPCs are 1 MiB.
    min_stripe_size = 512 * KiB
    # Xie et al., footnote 6: stripes of 1 to 32 MB made no difference, larger ones hurt. Only for guesses
    # from the transfer size, and where a distance is beyond `max_part`: up to that, one process keeps a stripe.
    max_guessed_size = 32 * MiB
    # OPRAEL's 32 GiB of 128 processes are the largest parts, in one stripe each, that we have measurements of.
    max_part = 256 * MiB
    # The last tenth of the bandwidth costs most targets: ours (see vani/models/contention.py, REACH).
    reach = 0.9
    # Where targets bring aggregators with them: of five sizes of BTIO (OPRAEL, 64 processes), four were fastest on
    # 24 of 32 targets or more.
    collective_reach = 0.95
    # The square root of 1.5: ours (see vani/models/contention.py, MARGIN).
    margin = 1.2247
    # A run that is cut, so that few processes reach more targets, keeps parts of four RPCs of 4 MiB: ours.
    min_part = 16 * MiB
    # ROMIO writes no more than a stripe at a time to one target; its users guide has 4 MiB and more for its buffers.
    max_collective_size = 4 * MiB
    # Bytes per second of one process on as few targets as it needs: OPRAEL's writes from one process. The rate of a
    # trace is that of the layout that the file has now, and no limit.
    process_rate = 300_000_000
    # Bytes per node that Lustre's clients take at the speed of memory where nothing is flushed. OPRAEL's 128 processes
    # on 8 nodes: 512 MiB a node go fastest on 4 of 32 targets, from 1 GiB a node on the targets decide.
    cached_per_node = 512 * MiB
    # Of such files a target for each GiB: best of 1 to 32 targets at 1 and at 4 GiB there.
    cached_per_target = GiB
    # Processes per node where the number of nodes is unknown: OPRAEL's 128 on 8.
    processes_per_node = 16
    # Bytes per second of one target where no machine is described: 350 to 500 MB/s are typical of disks
    # (Swinburne's user guide), 0.78 GB/s fit OPRAEL's measurements.
    target_rate = 500_000_000
    # Bytes per second that many processes write to one object of a shared file, however fast its target: ARCHER2's
    # guide has 1 GB/s for a file of one stripe, and up to 10 GB/s over 12 targets.
    object_rate = 1_000_000_000

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
            min_stripe_size=int(self.min_stripe_size),
            min_part=max(MiB, int(self.min_part)),
            max_collective_size=max(MiB, int(self.max_collective_size)),
            max_guessed_size=int(self.max_guessed_size),
            max_part=int(self.max_part),
            reach=min(1.0, self.reach),
            collective_reach=min(1.0, self.collective_reach),
            margin=self.margin,
            process_rate=float(self.process_rate),
            processes_per_node=max(1, int(self.processes_per_node)),
            target_rate=float(self.target_rate),
            object_rate=float(self.object_rate),
            cached_per_node=int(self.cached_per_node),
            cached_per_target=max(1, int(self.cached_per_target)),
        )
