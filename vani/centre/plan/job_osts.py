"""OSTs for the files of a starting job, chosen so that its files and those of running jobs do not interfere.

A file on more targets than before is written in bursts that fill all of them, and a small file on the same targets
waits for the end of such a burst. Jobs with widened files therefore leave some OSTs to other jobs, which use those, and
no job writes where another one reads.
"""

from __future__ import annotations

import math
from collections.abc import Sequence, Set
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from vani.centre.plan.schema.jobs import PlannedJob
    from vani.centre.plan.schema.snapshot import Target

_LEFT: Final = 0.25
"""Share of the OSTs that all widened files together leave to other files."""
_AMPLE: Final = 4
"""With this many times the OSTs that its rate fills, a job does not notice that it has no more."""


@dataclass(frozen=True)
class InUse:
    """Indexes of the OSTs that running jobs use for widened files, for other files, and to read from."""

    wide: Set[int] = frozenset()
    narrow: Set[int] = frozenset()
    read: Set[int] = frozenset()

    def most_widened(self, targets: Sequence[Target]) -> int:
        """Most OSTs that all widened files together may use."""
        writable = sum(target.index not in self.read for target in targets)
        return writable - math.ceil(_LEFT * writable)

    def most_of_one(self, targets: Sequence[Target]) -> int:
        """Most OSTs for the widened files of one more job."""
        return min(self.free(targets), self.most_widened(targets) // 2)

    def free(self, targets: Sequence[Target]) -> int:
        """Number of unused OSTs that one more job with widened files may use; all if it is the only such job."""
        unused = sum(target.index not in self.wide | self.narrow | self.read for target in targets)
        return max(0, min(unused, self.most_widened(targets) - len(self.wide))) if self.wide else unused


def osts_for(
    job: PlannedJob,
    count: int,
    targets: Sequence[Target],
    in_use: InUse,
    *,
    is_widened: bool,
    target_rate: float | None,
) -> list[Target]:
    """The targets on which to place a job's files, which have `count` stripes each.

    Parameters
    ----------
    target_rate
        Bytes per second of a target; None if unknown.
    """
    files = 1 if job.pattern is not None and job.pattern.layout == "shared" else job.processes or len(targets)
    least, most_free = files * count, len(targets)
    if is_widened:
        least, most_free = count, in_use.free(targets)
        wanted = min(files * count, in_use.most_widened(targets) // 2)
        worse = (in_use.read, in_use.narrow, in_use.wide)
    elif target_rate is None or job.bytes is None or job.io_s is None or not job.io_s.low:
        return list(targets)
    else:
        wanted = max(least, math.ceil(_AMPLE * job.bytes / job.io_s.low / target_rate))
        worse = (in_use.read, in_use.wide, in_use.narrow)
    # Of the targets in use, take only as many as the job needs.
    chosen: list[Target] = []
    for target in sorted(
        targets,
        key=lambda target: (*(target.index in group for group in worse), target.used - target.size, target.index),
    ):
        is_free = not any(target.index in group for group in worse)
        if len(chosen) < (min(most_free, max(least, wanted)) if is_free else least):
            chosen.append(target)
    return chosen
