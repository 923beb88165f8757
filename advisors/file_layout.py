"""The pieces and targets of files on their file system, which hints and alignments must match."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from vani.advisors.data_files import Item
from vani.advisors.placement import SUPPLY, gpfs_under, lustre_under
from vani.advisors.rule import Evidence, Layouts
from vani.advisors.site_layouts import own_stripes
from vani.models.calibration import certainty

if TYPE_CHECKING:
    from vani.schema.profile import Profile
    from vani.schema.system import FileSystem, System

@dataclass(frozen=True)
class Pieces:
    """Pieces of `size` bytes (a stripe, a block of GPFS) on `targets` targets; None: on all of them."""

    kind: Literal["lustre", "gpfs"]
    size: int
    targets: int | None
    because: str
    evidence: tuple[Evidence, ...]
    certainty: float


def pieces_of(items: Sequence[Item], profile: Profile, system: System, layouts: Layouts) -> Pieces | str:
    """Pieces of the first of these files, which share a folder; a sentence if they are unknown.

    On Lustre, a layout recommended for one of them replaces the default, because users follow both recommendations.
    """
    path = items[0].file.path
    gpfs = gpfs_under(path, profile, system)
    if not isinstance(gpfs, str):
        where, disk = gpfs
        if disk is None or not disk.block_size:
            return f"the block size of GPFS is not known; {SUPPLY}, or set block_size in it"
        block = Evidence(f"{where}.block_size", disk.block_size)
        return Pieces("gpfs", disk.block_size, None, "the block of GPFS", (block,), certainty(system))
    place = lustre_under(path, profile, system, but="neither Lustre nor GPFS")
    if isinstance(place, str):
        return place
    paths = {item.file.path for item in items}
    disk = place.figures
    if recommended := next((stripes for path, stripes in layouts.items() if path in paths), None):
        because = f"the stripes that {recommended.rule} recommends"
        return Pieces(
            "lustre", recommended.size, _targets(recommended.count, disk), because, recommended.evidence, 0.9
        )
    if (own := own_stripes(items[0].file)) is not None:
        figures = tuple(
            Evidence(f"{items[0].where}.{name}", value)
            for name, value in zip(("stripe_count", "stripe_size"), own, strict=True)
        )
        return Pieces("lustre", own[1], own[0], "the stripes that the file has", figures, 0.9)
    if disk is None or not disk.stripe_size or disk.stripe_count is None:
        return "the default stripe count and size are not known (`lfs getstripe -d`); set them in --system"
    evidence = tuple(
        Evidence(f"{place.prefix}.{name}", getattr(disk, name)) for name in ("stripe_count", "stripe_size")
    )
    count = _targets(disk.stripe_count, disk)
    return Pieces("lustre", disk.stripe_size, count, "the default stripes", evidence, place.certainty)


def _targets(count: int, disk: FileSystem | None) -> int | None:
    """Number of targets for a stripe count, where -1 means all; None if unknown."""
    return count if count > 0 else disk.targets if disk else None
