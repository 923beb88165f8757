"""GPF004: pieces of several processes in each block of a shared file on GPFS."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vani.advisors.data_files import only
from vani.advisors.gpfs import BlockRule, Written
from vani.advisors.rule import Evidence, Finding, Verdict
from vani.models.calibration import certainty
from vani.models.run_time import of_files_s
from vani.units import format_bytes, format_count

if TYPE_CHECKING:
    from vani.schema.profile import Profile
    from vani.schema.system import System


class BlockSharing(BlockRule):
    """Several processes write large pieces into each block of a shared file on GPFS.

    Looks at
        Shared files on GPFS of at least `min_bytes` that several processes write without collective calls, in pieces of
        at least `min_transfer` that divide a block evenly, where neighbours' pieces are less than a block apart.
    Why
        GPFS lets one node at a time write in a block: its tokens are rounded to blocks. Processes whose pieces are in
        one block pass its token back and forth between their nodes, though they never write the same bytes.
    Recommends
        A whole number of blocks per process in one piece (IOR: `-b` a multiple of the block), or collective MPI-IO
        whose buffer is a block, so that one aggregator writes each block. A program that cannot change where its data
        goes may declare to GPFS that it writes shared blocks: `gpfs_fcntl` with GPFS_DATA_SHIP_START sends the bytes
        to the node that keeps the block instead of the token, until GPFS_DATA_SHIP_STOP. All writers must ask.
    Stays silent when
        No large file is written by several processes without collective calls; pieces are small (see POS009); each
        process has its own whole blocks; neighbours in a block run on one node, or may do so, because the number of
        nodes is not known and one node has enough cores; the block size is not known; the data is not on GPFS.
    Source
        Schmuck and Haskin, GPFS: a shared-disk file system for large computing clusters (FAST 2002), section 3.2
        (tokens are rounded to blocks); IBM, GPFS Administration and Programming Reference, gpfsDataShipStart_t: nodes
        that write into one block, even different parts of it, get the token in turn.
    Example
        `ior -a POSIX -b 4m -t 1m -s 16` on blocks of 8 MiB: two processes write each block; with `-b 8m` one does.
    """

    id = "GPF004"
    sources = (
        "Schmuck and Haskin, FAST 2002, section 3.2",
        "IBM, GPFS Administration and Programming Reference, gpfsDataShipStart_t",
    )

    def check(self, profile: Profile, system: System) -> Verdict:
        files = self.written(profile, system)
        if isinstance(files, str):
            return files
        large = [
            written
            for written in files
            if written.usual >= self.min_transfer and written.block % written.usual == 0
        ]
        if not large:
            return (
                f"the shared files are not written in pieces of {format_bytes(self.min_transfer)} or more that fit the "
                "blocks"
            )
        known = [written for written in large if written.run is not None]
        if not known:
            return "how far apart processes write in the shared files is not known"
        shared = [written for written in known if _of_node(written, profile) < written.block]
        if not shared:
            return "each process, or all of a node together, has whole blocks of the shared files"
        return [_finding(written, profile, system) for written in shared]


def _of_node(written: Written, profile: Profile) -> int:
    """Contiguous bytes of a node's processes if ranks are placed in order; otherwise those of one process."""
    nodes = profile.job.nodes
    return (written.run or 0) * (max(1, profile.workflow.processes // nodes) if nodes else 1)


def _finding(written: Written, profile: Profile, system: System) -> Finding:
    file, block, run = written.file, written.block, written.run or 0
    sharing = min(file.writers, max(2, -(-block // max(1, run))))
    nodes = "" if profile.job.nodes else " If they run on one node, it does not matter: supply the number of nodes."
    return Finding(
        **only(file),
        reason=f"{file.writers} processes write {file.path} in pieces of {format_bytes(written.usual)}, and what a "
        f"process has in one place is {format_bytes(run)}: {format_count(sharing)} processes meet in each block of "
        f"{format_bytes(block)}, of which GPFS lets one node write at a time.{nodes} No trace shows the cost: "
        "run once with whole blocks for an expected gain.",
        confidence=round((0.6 if profile.job.nodes else 0.4) * certainty(system), 2),
        touched_s=of_files_s([file], profile, "write_synced"),
        recommended={"bytes_per_process": -(-run // block) * block},
        current={"bytes_per_process": run},
        evidence=[*written.figures, Evidence("job.nodes", profile.job.nodes), written.evidence],
        apply=f"in the program: give each process a multiple of {block} bytes in one place, from a multiple of it on\n"
        f"or collective MPI-IO with the hints romio_cb_write = enable and cb_buffer_size = {block}\n"
        "or, where neither is possible: gpfs_fcntl() with GPFS_DATA_SHIP_START by all processes that write the "
        "file, GPFS_DATA_SHIP_STOP before they close it",
    )
