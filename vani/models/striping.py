"""The stripe count and stripe size for a shared file.

Equation 3 of AIOT (Gao et al., section III.B.2):

    stripe_count = process_bandwidth * parallelism / target_bandwidth
    stripe_size  = offset_difference / parallelism

The paper does not define offset_difference. Both cases of its figure 10 (four processes, a file of 16 MB)
fit if it is the span that all processes cover in one concurrent step. The stripe size is then the
distance between the offsets that neighbouring processes access at the same moment: 4 MB for blocks of 4 MB,
1 MB for an interleaving of 1 MB.

Equation 3 grows without bound with the number of processes, but measured bandwidth does not: `stripe_count` has a
rule for the number of targets.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from vani.units import GiB, KiB, MiB

if TYPE_CHECKING:
    from vani.schema.profile import FileEntity

STRIPE_UNIT: Final = 64 * KiB
"""Stripe sizes are multiples of this and below 4 GiB (lfs-setstripe(1))."""

# Our choice; halfway to the next power of two would be a factor of 1.41.
_NEARLY: Final = 1.25

LARGEST_STRIPE: Final = 4 * GiB - STRIPE_UNIT


def step_distance(
    *,
    stride: int | None,
    shares: tuple[float, float, float] | None,
    footprint: int | None,
    processes: int,
    mean_run: int | None,
) -> int | None:
    """Bytes between the offsets of neighbouring processes in one concurrent step: the stripe size of equation 3.

    If the runs of processes alternate (IOR's segments), the neighbour is one run further. If each process has a single
    block, the neighbour is one block further, and the block is the run.

    Parameters
    ----------
    stride
        Bytes between the starts of one process's strided operations: the span of a step.
    shares
        Shares of operations, 0..1: consecutive, strided, random. None if unknown.
    footprint
        Distinct bytes that the processes access.
    mean_run
        Mean bytes that a process accesses without a gap (see `mean_run`).

    Returns
    -------
    int or None
        None if simultaneous accesses are unknown, or processes access the same bytes.
    """
    _, strided, random = shares or (0.0, 0.0, 1.0)
    if stride is not None and stride > 0 and strided >= 0.9:
        return max(1, round(stride / processes))
    if random >= 0.1 or mean_run is None or not footprint:
        return None
    # The runs of all processes fit into the accessed bytes, unless they overlap.
    return mean_run if mean_run * processes <= 1.1 * footprint else None


def mean_run(*, moved: int | None, operations: int, jumps: float, streams: int) -> int | None:
    """Mean bytes that a process reads or writes before it jumps; None if nothing was moved.

    `jumps` is the share of operations that do not continue the previous one. `streams` is the number of times that a
    process began to read or write. Moving the same bytes again also begins with a jump, so repetitions do not count.
    """
    return max(1, round(moved / max(1.0, jumps * operations + streams))) if moved else None


def whole_transfers(distance: int, transfer: int | None) -> int:
    """Round the distance to a power of two times the transfer size if it is close to one.

    Counts of jumps are exact if the calls are known. Counters such as Darshan's do not show the first operation of each
    process, which makes runs of 4 MiB look like 3.4 MiB.
    """
    if not transfer or distance % transfer == 0 or distance < transfer:
        return distance
    near = transfer << round(math.log2(distance / transfer))
    return near if 1 / _NEARLY <= distance / near <= _NEARLY else distance


def parted(distance: int, processes: int, count: int, least: int) -> int:
    """The stripe size with which one step of all processes reaches `count` targets.

    A step spans `distance` * `processes` bytes. If that is fewer stripes than targets, each process's run is cut into
    the smallest sufficient power of two of equal parts, none below `least` bytes.
    """
    parts = 1
    while parts * processes < count and distance // (2 * parts) >= least:
        parts *= 2
    return distance // parts


def usual_size(bytes_: int, most: int) -> int:
    """The largest power of two of MiB that divides `bytes_` and is at most `most`; 1 MiB if there is none."""
    size = MiB
    while 2 * size <= most and bytes_ % (2 * size) == 0:
        size *= 2
    return size


def whole_stripes(distance: int, least: int, most: int = LARGEST_STRIPE) -> int:
    """The stripe size for a distance (or transfer size): a multiple of it, from `least` to `most`.

    A distance that is not a multiple of 64 KiB is first rounded up to one.
    """
    unit = math.ceil(distance / STRIPE_UNIT) * STRIPE_UNIT
    size = unit * math.ceil(least / unit)
    return max(STRIPE_UNIT, min(size, most // STRIPE_UNIT * STRIPE_UNIT, LARGEST_STRIPE))


def neighbour_distance(file: FileEntity, processes: int, *, reads: bool) -> int | None:
    """Bytes between the offsets that neighbouring processes access at the same moment; None if unknown."""
    pattern, bytes_, footprint = file.io.access_pattern, file.io.bytes, file.io.footprint
    if pattern is None:
        return None
    distance = step_distance(
        stride=file.stride,
        shares=(pattern.consecutive, pattern.strided, pattern.random),
        footprint=footprint.read if reads else footprint.written,
        processes=processes,
        # The access pattern is one for both directions, so the runs must be, too.
        mean_run=mean_run(
            moved=bytes_.total,
            operations=file.io.ops.read + file.io.ops.write,
            jumps=1 - pattern.consecutive,
            streams=file.readers + file.writers,
        ),
    )
    sizes = file.io.transfer_size.read if reads else file.io.transfer_size.write
    return None if distance is None else whole_transfers(distance, sizes.p50 if sizes else None)


@dataclass(frozen=True)
class ObjectLayout:
    """Layout of a file on CephFS: `count` objects of `size` bytes are filled in turn, `unit` bytes at a time.

    Full objects are followed by the next `count`. A hash of each object's name chooses its OSD.
    """

    unit: int
    count: int
    size: int

    @property
    def command(self) -> str:
        """The command that sets it, to which a folder is appended."""
        layout = f"stripe_unit={self.unit} stripe_count={self.count} object_size={self.size}"
        return f"setfattr -n ceph.dir.layout -v '{layout}'"

    def objects(self, length: int) -> int:
        """Number of objects of a file of `length` bytes."""
        whole, rest = divmod(length, self.count * self.size)
        return whole * self.count + min(self.count, math.ceil(rest / self.unit))


CEPH_DEFAULT: Final = ObjectLayout(4 * MiB, 1, 4 * MiB)
"""docs.ceph.com, File layouts. It spreads a file, because each 4 MiB of it are another object."""
