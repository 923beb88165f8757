"""MIO003: writes that read first, because MPI-IO fills the holes between them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from vani.advisors.access_table import Traffic
from vani.advisors.data_files import Item, LayerGroup
from vani.advisors.mpiio import MPIIORule, hint_lines, leaves_sieving, set_hints, sieves
from vani.advisors.rule import Answer, Finding, Gain, Value
from vani.units import format_bytes

if TYPE_CHECKING:
    from vani.schema.profile import Profile
    from vani.schema.system import System

class DataSieving(MPIIORule):
    """MPI-IO reads a file that the program only writes, because it sieves: it reads, locks and writes back.

    Looks at
        Shared files that processes write through MPI-IO: bytes that the file system reads beyond those that MPI-IO is
        asked to read, at least `min_read` of those written.
    Why
        To write pieces with holes between them, ROMIO reads the whole range, changes it in memory and writes
        it back, under a lock. Other processes that write into that range wait, and bytes move twice.
    Recommends
        `romio_ds_write disable`: each piece is written as it is. In collective calls also `romio_cb_write disable`,
        because ROMIO's aggregators read the holes of their part in any case (MPICH 4.0.2); on Lustre,
        `romio_lustre_ds_in_coll disable` keeps the aggregators. With many small pieces, combine it with collective
        buffering (MIO001).
    Stays silent when
        No app uses MPI-IO, or no file is shared through it; nothing more is read than MPI-IO is asked to, or that does
        not show, since independent calls read as well; independent calls request much less than moves (MIO001); the
        hint is set already; the file system is reached by NFS (VAST too), where sites recommend leaving sieving on.
    Source
        ROMIO users guide (`romio_ds_write`, `ind_wr_buffer_size`); the name comes from Thakur, Gropp and Lusk, "Data
        sieving and collective I/O in ROMIO", 1999. CSCS documentation, pull request 421 (sieving on VAST).
    Example
        A view with holes: 1 MiB is written in four blocks of 256 KiB, and MPI-IO reads 1 MiB first.

            MPI_File_open(comm, name, mode, MPI_INFO_NULL, &file);    // before
            MPI_Info_set(info, "romio_ds_write", "disable");    // after
            MPI_File_open(comm, name, mode, info, &file);
    """

    id = "MIO003"
    settles = "sieving"
    sources = ("ROMIO users guide", "Thakur, Gropp and Lusk 1999")

    # Our choice: fewer bytes read than this share of those written are headers.
    min_read = 0.1
    # Our choice: most of the calls.
    min_collective = 0.5

    def judge(self, use: LayerGroup, profile: Profile, system: System) -> Answer:
        if set_hints(use.layer, {"romio_ds_write"}) == {"romio_ds_write": "disable"}:
            return "the program sets romio_ds_write to disable itself"
        if sieves(use, profile, reads=False):
            return "independent calls make MPI-IO sieve: collective ones come first, see MIO001"
        if leaves_sieving(use.items[0].path, profile, system):
            return "sieving stays on where the file system is reached by NFS, as such sites recommend (CSCS)"
        missing = any(
            entry.kind == "mpiio_calls_missing" and not use.paths.isdisjoint(entry.files)
            for entry in profile.unseen or ()
        )
        sieved = {item: _beyond(item, profile) for item in use.items}
        if missing or None in sieved.values():
            return "what MPI-IO reads on its own does not show: independent calls read as well, or are not all recorded"
        least = {item: max(1.0, self.min_read * (item.io.bytes.written or math.inf)) for item in use.items}
        use = use.of(item for item in use.items if (sieved[item] or 0) >= least[item])
        if not use.items:
            return "MPI-IO reads little or nothing of the shared files it writes beyond what it is asked to read"
        return self._finding(use, sum(sieved[item] or 0 for item in use.items), profile)

    def _finding(self, use: LayerGroup, sieved: int, profile: Profile) -> Finding:
        read, before, gain = use.total("io.bytes.read"), use.data_s(), None
        if read and (reading := use.wall_s("read") * sieved / read):
            left = max(0.0, before - reading)
            method = "the time of the reads is gone; low: the pieces cost as much as the reads did"
            gain = Gain("write_time_s", before, left, left, before, method)
        own: dict[str, Value] = dict(set_hints(use.layer, {"romio_ds_write"}))
        hints = {"romio_ds_write": "disable"}
        if (use.layer.collective_share or 0.0) >= self.min_collective:
            hints["romio_cb_write"] = "disable"
        return Finding(
            **use.affected,
            reason=f"MPI-IO reads {format_bytes(read)} of {use.words} to write "
            f"{format_bytes(use.total('io.bytes.written'))}, {format_bytes(sieved)} more than it is asked to read: it "
            "sieves data.",
            confidence=0.8,
            touched_s=before,
            recommended=dict(hints),
            current=own or {"romio_ds_write": "automatic"},
            evidence=use.figures("path", "io.bytes.read", "io.bytes.written", "io.busy_s.read"),
            gain=gain or "supply a trace with times",
            apply=hint_lines(hints, use.path, profile),
        )


def _beyond(item: Item, profile: Profile) -> int | None:
    """Bytes that are read beyond those that MPI-IO is asked to read; None if sieved reads may be among them."""
    reads = Traffic.on(profile, [item.path], reads=True)
    if not reads.of("mpiio"):
        return reads.moved
    is_sure = reads.requested is not None and (reads.collective or 0.0) >= 1 / 2
    return reads.moved - (reads.requested or 0) if is_sure else None
