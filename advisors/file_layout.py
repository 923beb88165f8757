"""Layouts of files: what a site recommends or sets on its Lustre, and pieces that hints and alignments must match."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from vani.advisors.data_files import Item, extent
from vani.advisors.placement import SUPPLY, gpfs_under, lustre_under
from vani.advisors.rule import Evidence, Layouts
from vani.errors import InputError
from vani.models.calibration import certainty
from vani.models.contention import VARIATION
from vani.models.pfl import parse_options
from vani.units import counted

if TYPE_CHECKING:
    from vani.advisors.placement import Lustre
    from vani.schema.profile import FileEntity, Profile
    from vani.schema.system import FileSystem, StripingRule, System


def site_rule(size: int, place: Lustre) -> StripingRule | None:
    """The site's rule for users' files of this size; None if there is none."""
    rules = place.figures.striping_rules if place.figures else []
    return max((rule for rule in rules if rule.above <= size), key=lambda rule: rule.above, default=None)


def default_stripes(disk: FileSystem | None, size: int) -> tuple[int | None, int | None]:
    """Default stripe count (-1: all targets) and stripe size in bytes of a file of `size` bytes.

    For a composite layout, those of the component in which the file ends, which is the last for a large file. None if
    the description lacks them, and for a file on the metadata target.
    """
    if disk is None:
        return None, None
    if disk.site_pfl:
        try:
            parts = parse_options(disk.site_pfl).components
        except InputError:
            # PFL002 reports the fault.
            return None, None
        fitting = next((part for part in parts if part.end is None or size <= part.end), parts[-1])
        return fitting.count, fitting.size
    return disk.stripe_count, disk.stripe_size


def present_stripes(file: FileEntity, disk: FileSystem | None) -> tuple[int | None, int | None]:
    """Stripe count (-1: all targets) and stripe size of a file: recorded ones, or else the defaults."""
    own = own_stripes(file)
    return default_stripes(disk, extent(file) or 0) if own is None else own


def own_stripes(file: FileEntity) -> tuple[int, int] | None:
    """Recorded stripe count and stripe size of a file; None unless the profile has both."""
    if file.stripe_count is None or file.stripe_size is None:
        return None
    return file.stripe_count, file.stripe_size


def keeps_own_layout(disk: FileSystem | None) -> str | None:
    """The reason not to set layouts, if the site's description requests that; otherwise None.

    A composite default layout alone is no reason: only the description's author knows the site's rules.
    """
    if disk is None or disk.layout_policy != "keep":
        return None
    has = "has its own composite layout" if disk.site_pfl else "has a default layout"
    return f"{disk.name} {has}, and the site asks to leave it unchanged; {exception()}"


def exception() -> str:
    """Words for the circumstances that justify a layout other than the site's."""
    return (
        "an exception needs five runs or more with either layout whose medians differ by more than "
        f"{VARIATION - 1:.0%}, and the site's consent"
    )


def targets_text(count: int) -> str:
    """A stripe count in words."""
    if count < 1:
        return "all targets"
    return counted(count, "target")


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
