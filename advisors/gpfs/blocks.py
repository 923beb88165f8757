"""Shared files of several writers on GPFS, and how their pieces lie in its blocks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from vani.advisors.data_files import Item, data_files, folder_of
from vani.advisors.movers import is_collective
from vani.advisors.placement import SUPPLY, gpfs_under
from vani.advisors.rule import Evidence
from vani.models.neighbours import neighbour_distance

if TYPE_CHECKING:
    from vani.schema.profile import FileEntity, Profile
    from vani.schema.system import System

__all__ = ["Written", "several_nodes", "written"]


@dataclass(frozen=True)
class Written:
    """A shared file that processes write by themselves.

    `usual`: bytes of most writes; `run`: bytes between the offsets that neighbours write at one moment, None where
    they are at no constant distance; `block`: bytes of a block of the file system, which `evidence` names.
    """

    item: Item
    usual: int
    run: int | None
    block: int
    evidence: Evidence

    @property
    def file(self) -> FileEntity:
        return self.item.file


def several_nodes(profile: Profile, system: System) -> str | None:
    """Need of a rule: several nodes, since one node takes one token for all its processes. The reason if unmet."""
    nodes, cores = profile.job.nodes, system.compute.cores_per_node
    if nodes == 1:
        return "all processes run on one node, which needs one token"
    if nodes is None and cores is not None and profile.workflow.processes <= cores:
        # Nothing in a trace shows that blocks pass between nodes, so this would be a guess.
        return "all processes may run on one node, which needs one token: supply the number of nodes (--job job.yaml)"
    return None


def written(
    profile: Profile, system: System, keep: Callable[[FileEntity], bool], *, min_share: float
) -> tuple[list[Written], list[str]]:
    """Files on GPFS that several processes write in pieces of which at least `min_share` have one size.

    Returns
    -------
    tuple
        The files, and why others are left out. Where calls are collective, aggregators write: MIO002's matter. What
        HDF5 and libraries above it write is theirs to align.
    """
    files_written: list[Written] = []
    reasons: list[str] = []
    where: dict[str, tuple[int, Evidence] | str] = {}
    runs = {app.name: app.instances for app in profile.apps}
    for item in data_files(profile, lambda file: file.access == "shared" and file.writers > 1 and keep(file)):
        file = item.file
        if file.interface not in (None, "posix", "stdio", "mpiio"):
            continue
        if file.processes <= sum(runs.get(name, 1) for name in file.apps):
            # As many users as runs of programs may be one process of each, one after the other.
            continue
        if is_collective(file, profile, file.writers):
            reasons.append("aggregators write the shared files")
            continue
        folder = folder_of(file.path)
        if folder not in where:
            where[folder] = _block(file.path, profile, system)
        place = where[folder]
        if isinstance(place, str):
            reasons.append(place)
            continue
        sizes = file.io.transfer_size.write
        if sizes is None or not sizes.common or sizes.common[0][1] < min_share * file.io.ops.write:
            reasons.append("the shared files are not written in pieces of one usual size that is known")
            continue
        run = neighbour_distance(file, file.writers, reads=False)
        files_written.append(Written(item, sizes.common[0][0], run, *place))
    return files_written, reasons


def _block(path: str, profile: Profile, system: System) -> tuple[int, Evidence] | str:
    place = gpfs_under(path, profile, system)
    if isinstance(place, str):
        return place
    where, disk = place
    if disk is None or not disk.block_size:
        return f"the block size of GPFS is not known; {SUPPLY}, or set block_size in it (`mmlsfs FS -B`)"
    return disk.block_size, Evidence(f"{where}.block_size", disk.block_size)
