"""File layouts that a site recommends or sets on its Lustre, and words for layouts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vani.advisors.data_files import extent
from vani.errors import InputError
from vani.models.contention import VARIATION
from vani.models.pfl import parse_options
from vani.units import counted

if TYPE_CHECKING:
    from vani.advisors.placement import Lustre
    from vani.schema.profile import FileEntity
    from vani.schema.system import FileSystem, StripingRule

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
