"""In which pieces, and on how many targets, the file system keeps a file: what hints and alignments must match."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from vani.advisors.base import Evidence, Finding
from vani.advisors.data_files import Item
from vani.advisors.lustre.stripe_count import StripeCount
from vani.advisors.placement import SUPPLY, gpfs_under, lustre_under
from vani.models.certainty import certainty

if TYPE_CHECKING:
    from vani.schema.profile import Profile
    from vani.schema.system import System

__all__ = ["Pieces", "pieces_of"]


@dataclass(frozen=True)
class Pieces:
    """`size` bytes each (a stripe, a block of GPFS) on `targets` targets, None where all of them share."""

    kind: Literal["lustre", "gpfs"]
    size: int
    targets: int | None
    because: str
    evidence: tuple[Evidence, ...]
    certainty: float


def pieces_of(items: Sequence[Item], profile: Profile, system: System) -> Pieces | str:
    """How the first of these files is kept, which share a folder; a sentence where that is not known.

    On Lustre, the layout that rule LUS002 recommends goes before the default one: both are followed together.
    """
    path = items[0].file.path
    gpfs = gpfs_under(path, profile, system)
    if not isinstance(gpfs, str):
        where, disk = gpfs
        if disk is None or disk.block_size is None:
            return f"the block size of GPFS is not known; {SUPPLY}, or set block_size in it"
        found = Evidence(f"{where}.block_size", disk.block_size)
        return Pieces("gpfs", disk.block_size, None, "the block of GPFS", (found,), certainty(system))
    place = lustre_under(path, profile, system)
    if isinstance(place, str):
        return place if "not Lustre" not in place else place.replace("not Lustre", "neither Lustre nor GPFS")
    paths = {item.file.path for item in items}
    verdict = StripeCount().check(profile, system)
    for finding in verdict if isinstance(verdict, list) else []:
        size, count = finding.recommended.get("stripe_size"), finding.recommended.get("stripe_count")
        if paths & finding.files and isinstance(size, int) and isinstance(count, int):
            return Pieces("lustre", size, count, "the stripes that LUS002 recommends", _of(finding), 0.9)
    disk = place.figures
    if disk is None or not disk.stripe_size or disk.stripe_count is None:
        return "the default stripe count and size are not known (`lfs getstripe -d`); set them in --system"
    count = disk.stripe_count if disk.stripe_count > 0 else disk.targets
    evidence = tuple(
        Evidence(f"{place.prefix}.{name}", getattr(disk, name)) for name in ("stripe_count", "stripe_size")
    )
    return Pieces("lustre", disk.stripe_size, count, "the default stripes", evidence, place.certainty)


def _of(finding: Finding) -> tuple[Evidence, ...]:
    return tuple(item for item in finding.evidence if item.attribute.startswith("system."))
