"""GPF001: large writes of a shared file that cross the borders of GPFS' blocks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vani.advisors.data_files import only
from vani.advisors.gpfs import BlockRule, Written
from vani.advisors.rule import Finding, Verdict
from vani.models.calibration import certainty
from vani.models.run_time import of_files_s
from vani.units import format_bytes, format_share

if TYPE_CHECKING:
    from vani.schema.profile import Profile
    from vani.schema.system import System


class BlockAlignment(BlockRule):
    """Processes write a shared file on GPFS in large pieces that do not divide a block evenly.

    Looks at
        Shared files on GPFS of at least `min_bytes` that several processes write without collective calls, if at least
        `min_share` of the writes have one size of at least `min_transfer`; and the size of a block.
    Why
        GPFS rounds the tokens that let a node write to whole blocks. A piece that ends inside a block leaves the rest
        of it to another process's node: each of the two takes the token from the other, and the block is written twice.
    Recommends
        Records (or each process's part of the file) rounded up to whole blocks, or to a size that divides a block
        evenly; in HDF5, aligned objects; in MPI-IO, collective calls with a buffer of one block.
    Stays silent when
        No large file is written by several processes without collective calls, or not in pieces of one usual size;
        pieces are small (POS009); they fit the blocks; all processes run on one node, or may do so, because the number
        of nodes is not known and one node has enough cores; the block size is not known; the data is not on GPFS.
    Source
        Schmuck and Haskin, GPFS: a shared-disk file system for large computing clusters (FAST 2002), section 3.2:
        tokens are rounded to block boundaries, and several nodes that write in one block conflict.
    Example
        32 processes write records of 5 MiB behind each other over blocks of 8 MiB: 8 MiB or 4 MiB fit.
    """

    id = "GPF001"
    sources = ("Schmuck and Haskin, FAST 2002, section 3.2",)

    def check(self, profile: Profile, system: System) -> Verdict:
        files = self.written(profile, system)
        if isinstance(files, str):
            return files
        large = [written for written in files if written.usual >= self.min_transfer]
        if not large:
            return f"the shared files are written in pieces below {format_bytes(self.min_transfer)}"
        crossing = [written for written in large if written.usual % written.block and written.block % written.usual]
        if not crossing:
            return "the usual writes of the large shared files fit the blocks"
        return [_finding(written, profile, system) for written in crossing]


def _finding(written: Written, profile: Profile, system: System) -> Finding:
    file, block = written.file, written.block
    rounded = -(-written.usual // block) * block
    return Finding(
        **only(file),
        reason=f"{file.writers} processes write {file.path} in pieces of {format_bytes(written.usual)} over blocks of "
        f"{format_bytes(block)}: about {format_share(min(1.0, written.usual / block))} of them cross a border, and the "
        "nodes on both sides of it take the block from each other. No trace shows the cost: run once with "
        f"pieces of {format_bytes(rounded)} for an expected gain.",
        confidence=round(0.5 * certainty(system), 2),
        touched_s=of_files_s([file], profile, "write_synced"),
        recommended={"transfer_size": rounded},
        current={"transfer_size": written.usual},
        evidence=[*written.figures, written.evidence],
        apply=f"in the program: round each process's part (or record) up to a multiple of {block} bytes, and begin it "
        f"at one\nHDF5: H5Pset_alignment(fapl, {block}, {block}); MPI-IO: collective calls with the hint "
        f"cb_buffer_size = {block}",
    )
