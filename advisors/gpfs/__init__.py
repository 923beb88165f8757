"""Rules about files and folders on GPFS (Storage Scale), and the base of those about blocks.

The base finds shared files of several writers, and the position of their pieces in blocks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from vani.advisors.access_table import layers_of
from vani.advisors.data_files import Item, data_files, extent
from vani.advisors.movers import is_collective
from vani.advisors.placement import SUPPLY, gpfs_under
from vani.advisors.rule import Evidence, Rule
from vani.models.striping import neighbour_distance
from vani.units import KiB, MiB, format_bytes

if TYPE_CHECKING:
    from vani.schema.profile import FileEntity, Profile
    from vani.schema.system import System

_LIBRARIES = frozenset({"hdf5", "netcdf", "pnetcdf"})
"""Libraries that choose where in a file data goes."""


@dataclass(frozen=True)
class Written:
    """A shared file that processes write independently.

    `usual` is the size of most writes. `run` is the number of bytes between the offsets that neighbours write at the
    same moment, None if it is not constant. `block` is the file system's block size, with its source in `evidence`.
    """

    item: Item
    usual: int
    run: int | None
    block: int
    evidence: Evidence

    @property
    def file(self) -> FileEntity:
        return self.item.file

    @property
    def figures(self) -> list[Evidence]:
        """The file's path and writers, and the size of most writes, as evidence."""
        usual = Evidence(f"{self.item.where}.io.transfer_size.write.common", self.usual)
        return [*self.item.figures("path", "writers"), usual]


def several_nodes(profile: Profile, system: System) -> str | None:
    """Requirement: several nodes, because a node takes one token for all its processes. Return why it is unmet."""
    nodes, cores = profile.job.nodes, system.compute.cores_per_node
    if nodes == 1:
        return "all processes run on one node, which needs one token"
    if nodes is None and cores is not None and profile.workflow.processes <= cores:
        # A trace does not show that blocks pass between nodes, so advice would be a guess.
        return "all processes may run on one node, which needs one token: supply the number of nodes (--job job.yaml)"
    return None


class BlockRule(Rule):
    """A rule about shared files that several processes write in pieces of one usual size."""

    family = "gpfs"
    needs = (several_nodes,)
    settles = "transfer"

    # A few blocks of 8 MiB, a usual maximum: smaller files have few borders to cross (our choice).
    min_bytes = 64 * MiB
    # Half of a usual RPC. POS009 and MIO001 cover smaller ones.
    min_transfer = 512 * KiB
    # Our choice: with fewer of one size, there is no size to round.
    min_share = 0.5

    def written(self, profile: Profile, system: System) -> list[Written] | str:
        """Files on GPFS of at least `min_bytes`, if at least `min_share` of the pieces written to them have one size.

        Collective calls are left to MIO002, because aggregators write; places in files of HDF5 to HD5001.
        """
        runs, layers = {app.name: app.instances for app in profile.apps}, layers_of(profile)
        answers = [
            self._written(item, profile, system)
            for item in data_files(profile, lambda file: file.access == "shared" and file.writers > 1)
            if (extent(item.file) or 0) >= self.min_bytes and _LIBRARIES.isdisjoint(layers.get(item.path, ()))
            # As many users as runs may be one process of each run, one after another.
            if item.file.processes > sum(runs.get(name, 1) for name in item.file.apps)
        ]
        reasons = dict.fromkeys(answer for answer in answers if isinstance(answer, str))
        return [answer for answer in answers if isinstance(answer, Written)] or (
            "; ".join(reasons)
            or f"no shared file of {format_bytes(self.min_bytes)} or more is written by several processes without HDF5"
        )

    def _written(self, item: Item, profile: Profile, system: System) -> Written | str:
        file, sizes = item.file, item.io.transfer_size.write
        if is_collective(file, profile, file.writers):
            return "aggregators write the shared files"
        block = _block(file.path, profile, system)
        if isinstance(block, str):
            return block
        if sizes is None or not sizes.common or sizes.common[0][1] < self.min_share * file.io.ops.write:
            return "the shared files are not written in pieces of one usual size that is known"
        return Written(item, sizes.common[0][0], neighbour_distance(file, file.writers, reads=False), *block)


def _block(path: str, profile: Profile, system: System) -> tuple[int, Evidence] | str:
    place = gpfs_under(path, profile, system)
    if isinstance(place, str):
        return place
    where, disk = place
    if disk is None or not disk.block_size:
        return f"the block size of GPFS is not known; {SUPPLY}, or set block_size in it (`mmlsfs FS -B`)"
    return disk.block_size, Evidence(f"{where}.block_size", disk.block_size)
