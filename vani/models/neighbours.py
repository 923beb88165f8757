"""How far apart the processes are that read or write a shared file at the same time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vani.models import striping

if TYPE_CHECKING:
    from vani.schema.profile import FileEntity

__all__ = ["neighbour_distance"]


def neighbour_distance(file: FileEntity, processes: int, *, reads: bool) -> int | None:
    """Bytes between the offsets that neighbouring processes access at the same moment; None: not known."""
    pattern, bytes_, footprint = file.io.access_pattern, file.io.bytes, file.io.footprint
    if pattern is None:
        return None
    found = striping.step_distance(
        stride=file.stride,
        shares=(pattern.consecutive, pattern.strided, pattern.random),
        footprint=footprint.read if reads else footprint.written,
        processes=processes,
        # The pattern is that of both directions together, so the runs are, too.
        mean_run=striping.mean_run(
            moved=bytes_.total,
            operations=file.io.ops.read + file.io.ops.write,
            jumps=1 - pattern.consecutive,
            streams=file.readers + file.writers,
        ),
    )
    sizes = file.io.transfer_size.read if reads else file.io.transfer_size.write
    return None if found is None else striping.whole_transfers(found, sizes.p50 if sizes else None)
