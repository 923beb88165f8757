"""HD5005: processes access a shared HDF5 file one by one where they could do it together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vani.advisors.access_table import Traffic
from vani.advisors.data_files import Access, Item
from vani.advisors.hdf5 import HDF5Files, HDF5Rule
from vani.advisors.rule import Answer, Finding
from vani.advisors.small_requests import aggregated, moved_both_ways
from vani.units import KiB, format_bytes, format_share

if TYPE_CHECKING:
    from vani.schema.profile import Profile
    from vani.schema.system import System


class HDF5IndependentTransfer(HDF5Rule):
    """HDF5 transfers data independently, in small interleaved pieces of a shared file.

    Looks at
        Files of HDF5 above MPI-IO with at most `max_collective` of the requested bytes (of the calls, where these are
        not known) in collective calls; in shared files, the size that moves most bytes, below `max_request`, and the
        share of strided and random accesses, at least `min_interleaved`.
    Why
        HDF5's default is independent transfer: MPI-IO sees each process alone and cannot join its pieces with
        those of the others. In collective mode aggregators access the file in large pieces.
    Recommends
        `H5Pset_dxpl_mpio(dxpl, H5FD_MPIO_COLLECTIVE)` for reads and writes in which all processes take part.
    Stays silent when
        No app uses HDF5, or only without MPI-IO; transfers are collective already, or their mode is not known;
        pieces are large or contiguous; no file is shared.
    Source
        HDF5 reference manual, H5Pset_dxpl_mpio. Gain: `vani/models/savings.py`.
    Example
        Each of 64 processes writes 4 KiB of every row of a matrix: collective, these are whole rows.

            H5Dwrite(dset, type, mem, space, H5P_DEFAULT, row);    // before
            H5Pset_dxpl_mpio(dxpl, H5FD_MPIO_COLLECTIVE);    // after
            H5Dwrite(dset, type, mem, space, dxpl, row);
    """

    id = "HD5005"
    settles = "transfer"
    sources = ("HDF5 reference manual, H5Pset_dxpl_mpio",)

    # The library itself makes a few collective calls (opening, closing, metadata).
    max_collective = 0.1
    # Half an RPC of 1 MiB, the smallest stripe that makes sense (Lustre manual, section 19.2).
    max_request = 512 * KiB
    # Our choice: most of the accesses.
    min_interleaved = 0.5

    def judge(self, use: HDF5Files, profile: Profile, system: System) -> Answer:
        if use.mpiio is None:
            return "HDF5 is used without MPI-IO: no transfer can be collective"
        share, size = Traffic.on(profile, use.paths).collective, use.layer.granularity.data
        if share is None and (why := use.mpiio.missing("collective_share")):
            return why
        share = use.mpiio.layer.collective_share if share is None else share
        if share is not None and share > self.max_collective:
            return "HDF5 transfers data collectively already"
        if why := use.missing("granularity.data"):
            return why
        if size is not None and size >= self.max_request:
            return f"transfers of HDF5 have {format_bytes(self.max_request)} or more"
        group = use.of(item for item in use.items if self._is_interleaved(item))
        if not group.items:
            return "no file of HDF5 is shared in interleaved pieces"
        before, rows = group.data_s(), [*map(moved_both_ways, group.items)]
        return Finding(
            **group.affected,
            reason=f"{use.app.name} accesses {group.words} through HDF5 in interleaved pieces of "
            f"{format_bytes(size)}, and {format_share(share)} of the requests to MPI-IO below are "
            "collective. In collective mode aggregators join the pieces.",
            confidence=0.6,
            touched_s=before,
            recommended={"transfer": "collective"},
            current={"transfer": "independent", "collective_share": share},
            evidence=[
                *use.mpiio.layer_figures("collective_share"),
                *use.layer_figures("granularity.data"),
                *group.figures("path"),
                *group.figures("io.busy_s.total"),
            ],
            gain=aggregated("data_time_s", before, rows, Access(group.items[0], reads=False), system),
            apply="in the program, where all processes of the file take part in the read or write:\n"
            "  C:     H5Pset_dxpl_mpio(dxpl, H5FD_MPIO_COLLECTIVE);\n"
            "  h5py:  with dataset.collective: dataset[...] = part",
        )

    def _is_interleaved(self, item: Item) -> bool:
        file, pattern = item.file, item.file.io.access_pattern
        if file.access != "shared" or max(file.readers, file.writers) < 2 or pattern is None:
            return False
        return pattern.strided + pattern.random >= self.min_interleaved
