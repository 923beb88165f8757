"""HD5001: data sets of a shared HDF5 file that begin in the middle of a stripe or block."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vani.advisors.access_table import Traffic
from vani.advisors.data_files import Item
from vani.advisors.hdf5 import HDF5Files, hdf5_files, hdf5_uses
from vani.advisors.placement import pieces_of
from vani.advisors.rule import NO_LAYOUTS, Answer, Finding, Layouts, MatchingRule, Verdict
from vani.units import KiB, MiB, format_bytes, format_count, format_share

if TYPE_CHECKING:
    from vani.schema.profile import Profile
    from vani.schema.system import System


class HDF5Alignment(MatchingRule):
    """HDF5 places objects consecutively, so accesses of several processes share a stripe.

    Looks at
        Shared files of HDF5 (and NetCDF-4) of at least `min_bytes` that several processes write in requests of
        at least `min_request`, and the stripes (those that LUS002 recommends, or the default) or the block of
        the file system.
    Why
        Behind the headers, a data set begins at an odd offset. Every access then touches one stripe or block more than
        it needs. The neighbour needs that one too, so its lock moves back and forth.
    Recommends
        `H5Pset_alignment` with stripe or block as alignment and half of it as threshold, so that small objects
        waste no space.
    Stays silent when
        No app uses HDF5; no HDF5 file is large and written by several processes, or its requests are small; the file is
        on one target in stripes of more than `max_single`; stripes or blocks are not known; less than `min_misaligned`
        of the bytes begin elsewhere than on blocks, or `most` of them move in collective calls.
    Source
        HDF5 reference manual, H5Pset_alignment. Lustre manual, section 19.2 (one client per stripe).
    Example
        Stripes of 4 MiB: `H5Pset_alignment(fapl, 2097152, 4194304)`.

            H5Fcreate(name, H5F_ACC_TRUNC, H5P_DEFAULT, fapl);    // before
            H5Pset_alignment(fapl, 2097152, 4194304);    // after: large objects begin at stripes
            H5Fcreate(name, H5F_ACC_TRUNC, H5P_DEFAULT, fapl);
    """

    id = "HD5001"
    needs = ("interfaces", hdf5_files)
    settles = "alignment"
    sources = ("HDF5 reference manual, H5Pset_alignment", "Lustre manual, section 19.2")

    # Our choice: in a file of a few stripes, alignment changes little.
    min_bytes = 8 * MiB
    # On a single target, only the request over the network counts, which is at most 4 MiB (Lustre's largest RPC).
    max_single = 4 * MiB
    # Our choice: headers and the last piece are never aligned.
    min_misaligned = 0.1
    # Our choice: most of the bytes.
    most = 0.5
    # The unit of Lustre's stripe sizes. Smaller requests are mostly inside a single stripe.
    min_request = 64 * KiB

    def check(self, profile: Profile, system: System, layouts: Layouts = NO_LAYOUTS) -> Verdict:
        return self.among(self._judge(use, profile, system, layouts) for use in hdf5_uses(profile))

    def _judge(self, use: HDF5Files, profile: Profile, system: System, layouts: Layouts) -> Answer:
        group = use.of(item for item in use.items if self._is_wanted(item))
        if not group.items:
            return (
                f"no file of HDF5 has {format_bytes(self.min_bytes)} or more that several processes write in "
                f"requests of {format_bytes(self.min_request)} or more"
            )
        if (_share(group, profile, "mpiio", "bytes_collective") or 0.0) >= self.most:
            return "collective calls write most of the bytes, and their aggregators choose the offsets"
        misaligned = _share(group, profile, "posix", "bytes_misaligned")
        if misaligned is not None and misaligned < self.min_misaligned:
            return f"{format_share(1 - misaligned)} of the bytes begin on blocks of the file system"
        pieces = pieces_of(group.items, profile, system, layouts)
        if isinstance(pieces, str):
            return pieces
        if pieces.targets == 1 and pieces.size > self.max_single:
            return "the files of HDF5 are on one target in long stripes, which do not matter"
        threshold = pieces.size // 2
        writers = max(item.file.writers for item in group.items)
        return Finding(
            **group.affected,
            reason=f"{format_count(writers)} processes write {group.words} through HDF5, whose objects "
            f"begin anywhere by default. They should begin on multiples of {format_bytes(pieces.size)} "
            f"({pieces.because})"
            + (". " if misaligned is None else f"; {format_share(misaligned)} of the bytes do not begin on a block. ")
            + "For a gain, supply the time of a run with it.",
            confidence=0.5 * pieces.certainty,
            touched_s=group.wall_s("write_synced"),
            recommended={"alignment": pieces.size, "threshold": threshold},
            evidence=[
                *pieces.evidence,
                *group.figures("path"),
                *group.figures("writers"),
                *group.figures("io.busy_s.write"),
            ],
            apply="in the program, before the file is created:\n"
            f"  C:     H5Pset_alignment(fapl, {threshold}, {pieces.size});\n"
            f"  h5py:  h5py.File(name, 'w', alignment_threshold={threshold}, alignment_interval={pieces.size})",
        )

    def _is_wanted(self, item: Item) -> bool:
        file, sizes = item.file, item.file.io.transfer_size.write
        large = max(file.size or 0, file.io.footprint.written or 0) >= self.min_bytes
        return large and file.writers > 1 and sizes is not None and (sizes.max or 0) >= self.min_request


def _share(group: HDF5Files, profile: Profile, layer: str, part: str) -> float | None:
    """Share of a part in the bytes that a layer writes to the files, 0..1; None if that is unknown."""
    rows = Traffic.on(profile, group.paths, reads=False).of(layer)
    parts = [value for row in rows if (value := getattr(row, part)) is not None]
    whole = sum(row.bytes or 0 for row in rows)
    return sum(parts) / whole if parts and whole else None
