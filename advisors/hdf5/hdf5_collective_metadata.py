"""HD5003: every process reads and writes the metadata of HDF5 for itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from vani.advisors.data_files import Access, Item, flushes_most, functions_of
from vani.advisors.hdf5 import HDF5Files, HDF5Rule
from vani.advisors.rule import Answer, Finding
from vani.advisors.small_requests import small_share
from vani.models.run_time import seconds
from vani.units import KiB, format_count, format_seconds, format_share

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from vani.schema.profile import Profile
    from vani.schema.system import System



_FUNCTIONS: Final = "traces.functions"
"""Key in the provenance if one name represents several functions, as in counts."""
_DATA: Final = ("H5Dread", "H5Dwrite", "nc_get", "nc_put")
_CALLS: Final = ("H5Pset_all_coll_metadata_ops", "H5Pset_coll_metadata_write")


class HDF5CollectiveMetadata(HDF5Rule):
    """Opens and small accesses dominate shared HDF5 files: each process handles their metadata itself.

    Looks at
        Files that at least `min_processes` processes access through HDF5 above MPI-IO: the share of time in metadata
        operations (without flushing), or the share of data operations below `small` that move no data of the program;
        one of the two is at least `min_share`. If data moves in equally small pieces, it is recognised by the bytes
        that the program requests.
    Why
        To find a data set, HDF5 reads headers, groups and indices in pieces of some hundred bytes, on every
        process. These are the same few blocks, and one target and one metadata server serve them all. In HDF5 1.10.8,
        384 writes of four processes became 6; its reads of object headers stayed as they were.
    Recommends
        Collective metadata: one process reads and broadcasts (`H5Pset_all_coll_metadata_ops`), and writes are
        made together (`H5Pset_coll_metadata_write`). Nothing else in the program changes, but the calls that
        touch metadata must then be made by all processes.
    Stays silent when
        The program calls both functions; no app uses HDF5, or only without MPI-IO (then one process can read and
        broadcast); few processes share a file; opens and small operations are
        few; data dominates, or flushing does.
    Source
        HDF5 reference manual, both functions. Vani paper, section IV (CosmoFlow: 98 % of its I/O time is metadata
        of HDF5 files).
    Example
        1,280 processes open 50,000 files of 32 MB each: 98 % of the time is in opens and headers.

            H5Pset_fapl_mpio(fapl, comm, info);    // before
            H5Pset_fapl_mpio(fapl, comm, info);    // after
            H5Pset_all_coll_metadata_ops(fapl, 1);
            H5Pset_coll_metadata_write(fapl, 1);
    """

    id = "HD5003"
    settles = "metadata"
    sources = ("HDF5 reference manual", "Vani paper, section IV")

    # Our choice: at half, metadata takes as much time (or as many operations) as the data.
    min_share = 0.5
    # As in POS001: with fewer processes, a broadcast saves less than three of four accesses.
    min_processes = 4
    # As in HD5002: fewer requests are not worth a change.
    min_operations = 100
    # HDF5's metadata comes in blocks of 2 KiB by default (H5Pset_meta_block_size).
    small = 4 * KiB

    def judge(self, use: HDF5Files, profile: Profile, system: System) -> Answer:  # noqa: ARG002 - applies on every machine
        shared = [i for i in use.items if i.file.access == "shared" and i.file.processes >= self.min_processes]
        if use.mpiio is None:
            return "HDF5 is used without MPI-IO, so its metadata cannot be collective"
        if not shared:
            return f"no file of HDF5 is shared by {format_count(self.min_processes)} processes or more"
        if _FUNCTIONS in profile.provenance:
            return f"which functions of HDF5 {use.app.name} calls is not known; supply a trace of its calls"
        called = functions_of(use.app, profile)
        if not (calls := [name for name in _CALLS if name not in called]):
            return f"{use.app.name} sets collective metadata already"
        if items := [item for item in shared if self._dominates(item, use, called)]:
            small = round(sum(self._small(item, use, called) for item in items))
            if sum(item.file.opens for item in items) + small >= self.min_operations:
                return self._finding(use.of(items), calls, small)
        return "data or flushing takes more time than metadata in the shared files of HDF5"

    def _dominates(self, item: Item, use: HDF5Files, called: Collection[str]) -> bool:
        io = item.io
        if flushes_most(io, self.min_share):
            return False
        is_most = bool(io.time_s.total) and seconds(io.time_s.metadata) >= self.min_share * seconds(io.time_s.total)
        return is_most or self._small(item, use, called) >= self.min_share * max(1, io.ops.read + io.ops.write)

    def _small(self, item: Item, use: HDF5Files, called: Collection[str]) -> float:
        """Upper bound of the small operations that move headers and indices."""
        io, layer = item.io, use.layer
        small = sum(
            (small_share(access.sizes, int(self.small)) or 0.0) * access.requests
            for access in (Access(item, reads=True), Access(item, reads=False))
        )
        usual = layer.granularity.data
        if usual is None or usual >= self.small or (called and not any(name.startswith(_DATA) for name in called)):
            return small
        # The program's own data may come in pieces as small: subtract the operations that its requests take.
        moved = layer.bytes.total
        if layer.asked is None or layer.asked.total is None or not moved:
            return 0.0
        part = (io.bytes.total or 0) / moved
        return max(0.0, min(small, io.ops.read + io.ops.write - part * layer.asked.total / max(1, usual)))

    def _finding(self, use: HDF5Files, calls: Sequence[str], small: int) -> Finding:
        data = use.total("io.ops.read") + use.total("io.ops.write")
        metadata, total = use.seconds("io.time_s.metadata"), use.seconds("io.time_s.total")
        part = f"{format_share(metadata / total)} of their I/O time" if total else "their time"
        return Finding(
            **use.affected,
            reason=f"{use.words}: {format_count(small)} of {format_count(data)} data operations "
            f"move headers and indices of HDF5, and metadata operations take {part} "
            f"({format_seconds(metadata)} summed over processes). One process can do that for all. Which part of "
            "it goes is not known: supply the time of a run with it.",
            confidence=0.6,
            # The time of the small operations is unknown: at most all of it.
            touched_s=use.wall_s("total"),
            recommended=dict.fromkeys((name.removeprefix("H5Pset_") for name in calls), True),
            current={"small_operations": small, "data_operations": data},
            evidence=use.figures("path", "processes", "opens", "io.busy_s.metadata"),
            apply="in the program, on the property list that opens the file (HDF5 1.10 and later):\n"
            f"  C:     {'  '.join(f'{name}(fapl, 1);' for name in calls)}\n"
            f"  h5py:  {' '.join(f'fapl.{name[3:]}(True);' for name in calls)}   (low level)",
        )
