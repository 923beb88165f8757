"""MIO003: writes that read first, because MPI-IO fills the holes between them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from vani.advisors.data_files import Item, LayerGroup
from vani.advisors.mpiio import DIRECT, hint_lines, leaves_sieving, mpiio_files, mpiio_uses, set_hints, sieves
from vani.advisors.rule import Answer, Finding, Gain, Rule, Value, Verdict
from vani.models.run_time import seconds
from vani.units import format_bytes

if TYPE_CHECKING:
    from vani.schema.profile import Profile
    from vani.schema.system import System

# Prefixes of a program's calls that read data. Other reads of a file come from a library.
_READS = ("MPI_File_read", "MPI_File_iread", "H5Dread", "ncmpi_get", "ncmpi_iget", "nc_get")


# Reasons why the reads are not the program's.
_SURE: Final = "though the program calls nothing that reads"
_TOGETHER: Final = "in the same phases, with holes between the pieces"
_APART: Final = "part of it in phases that write, though all of it is read in separate phases"


class DataSieving(Rule):
    """MPI-IO reads a file that the program only writes, because it sieves: it reads, locks and writes back.

    Looks at
        Shared files that processes write through MPI-IO and that are read as well, though the program calls nothing
        that reads. If its calls are not known: files that are read and written in the same phases, in pieces with holes
        between them. If it also reads: files that are read whole in reading phases and again in writing phases, there
        at least `min_holes` times the bytes written.
    Why
        To write pieces with holes between them, ROMIO reads the whole range, changes it in memory and writes
        it back, under a lock. Other processes that write into that range wait, and bytes move twice.
    Recommends
        `romio_ds_write disable`: each piece is written as it is. With many small pieces, combine it with collective
        buffering (MIO001).
    Stays silent when
        No app uses MPI-IO, or no file is shared through it; nothing that is written is read; the program itself reads,
        and nothing more is seen; independent calls request much less than moves (MIO001); HDF5 stores chunks, which it
        reads to change them; the hint is set already; the file system is reached by NFS (VAST too), where sites
        recommend leaving sieving on.
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
    needs = ("interfaces", mpiio_files)
    settles = "sieving"
    sources = ("ROMIO users guide", "Thakur, Gropp and Lusk 1999")

    # Our choice: fewer bytes read than this share of those written are a header, not sieving.
    min_read = 0.1
    # Our choice: nearly all bytes that the app writes and reads.
    min_part = 0.9
    # Our choice: most accesses have holes between them.
    min_holes = 0.5

    def check(self, profile: Profile, system: System) -> Verdict:
        return self.among(self._judge(use, profile, system) for use in mpiio_uses(profile))

    def _judge(self, use: LayerGroup, profile: Profile, system: System) -> Answer:
        if set_hints(use.layer, {"romio_ds_write"}) == {"romio_ds_write": "disable"}:
            return "the program sets romio_ds_write to disable itself"
        if sieves(use, profile, reads=False) and any(item.file.interface in DIRECT for item in use.items):
            return "independent calls make MPI-IO sieve: collective ones come first, see MIO001"
        if leaves_sieving(use.items[0].path, profile, system):
            return "sieving stays on where the file system is reached by NFS, as such sites recommend (CSCS)"
        calls = _reading_calls(use, profile)
        read_back = [item for item in use.items if self._reads_back(item)]
        if not read_back:
            return "MPI-IO reads little or nothing of the shared files it writes"
        if calls == 0 and all(item.file.interface in DIRECT for item in read_back):
            return self._finding(use.of(read_back), _SURE)
        # If the program itself reads, its reads cannot be distinguished from those of sieving.
        unknown = [
            item
            for item in read_back
            if calls is None and item.file.interface in DIRECT and self._together(item, use, profile)
        ]
        if unknown:
            return self._finding(use.of(unknown), _TOGETHER)
        shares = {item: share for item in read_back if (share := self._share_while_writing(item, use, profile))}
        if shares:
            return self._finding(use.of(shares), _APART, sum(shares.values()) / len(shares))
        return (
            "the program itself reads, or not all of its calls were recorded, so that what MPI-IO reads on its own "
            "does not show"
        )

    def _reads_back(self, item: Item) -> bool:
        read, written = item.file.io.bytes.read, item.file.io.bytes.written
        return bool(read and written) and (read or 0) >= self.min_read * (written or 0)

    def _together(self, item: Item, use: LayerGroup, profile: Profile) -> bool:
        """True if the same processes read and write the file in the same phases, with holes between the pieces."""
        file, pattern = item.file, item.io.access_pattern
        if pattern is None or file.readers > file.writers or file.role == "intermediate":
            return False
        if pattern.strided + pattern.random < self.min_holes:
            return False
        first_s, last_s = seconds(file.first_s), seconds(file.last_s)
        kinds = {
            phase.kind
            for phase in profile.phases or ()
            if phase.app == use.app.name and any(start <= last_s and end >= first_s for start, end in phase.spans)
        }
        return "mixed" in kinds and "read" not in kinds

    def _share_while_writing(self, item: Item, use: LayerGroup, profile: Profile) -> float:
        """Share of a file's reads in writing phases, if other phases read all of it; otherwise 0.

        Phases belong to the app, so nearly all of its writes must go to this file. HDF5 reads chunks before it changes
        them, regardless of MPI-IO.
        """
        distinct, read, written = item.io.footprint.read, item.io.bytes.read, item.io.bytes.written or 0
        if not distinct or not read or written < self.min_part * (use.app.io.bytes.written or 0):
            return 0.0
        layers = [layer for layer in profile.interfaces or () if layer.app == use.app.name]
        if any(layer.data_representation.chunked for layer in layers):
            return 0.0
        phases = [phase for phase in profile.phases or () if phase.app == use.app.name]
        alone = sum(phase.io.bytes.read or 0 for phase in phases if phase.kind == "read")
        while_writing = sum(phase.io.bytes.read or 0 for phase in phases if phase.kind in ("mixed", "write"))
        if alone < self.min_part * distinct or while_writing < self.min_holes * written:
            return 0.0
        return min(1.0, while_writing / read)

    def _finding(self, use: LayerGroup, why: str, part: float = 1.0) -> Finding:
        reading, before, gain = part * use.wall_s("read"), use.data_s(), None
        if reading:
            left = max(0.0, before - reading)
            method = "the time of the reads is gone; low: the pieces cost as much as the reads did"
            gain = Gain("write_time_s", before, left, left, before, method)
        own: dict[str, Value] = dict(set_hints(use.layer, {"romio_ds_write"}))
        return Finding(
            target=use.target,
            reason=f"MPI-IO reads {format_bytes(use.total('io.bytes.read'))} of {use.words} to write "
            f"{format_bytes(use.total('io.bytes.written'))}, {why}: it sieves data.",
            confidence=0.8 if why == _SURE else 0.5,
            touched_s=before,
            recommended={"romio_ds_write": "disable"},
            current=own or {"romio_ds_write": "automatic"},
            evidence=use.figures("path", "io.bytes.read", "io.bytes.written", "io.busy_s.read"),
            gain=gain or "supply a trace with times",
            apply=hint_lines({"romio_ds_write": "disable"}, use.path),
            files=use.paths,
        )


def _reading_calls(use: LayerGroup, profile: Profile) -> int | None:
    """Number of reading calls of the program itself; None if traces do not show all of them."""
    traces = [trace for trace in profile.traces if trace.app == use.app.name and trace.functions]
    missing = any(
        entry.kind == "mpiio_calls_missing" and not use.paths.isdisjoint(entry.files) for entry in profile.unseen or ()
    )
    if not traces or missing:
        return None
    return sum(n for trace in traces for name, n in trace.functions.items() if name.startswith(_READS))
