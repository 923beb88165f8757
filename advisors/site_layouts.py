"""What a site says of the layout of files on its Lustre, and how rules speak of layouts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vani.models.contention import VARIATION
from vani.units import counted

if TYPE_CHECKING:
    from vani.advisors.placement import Lustre
    from vani.schema.system import FileSystem, StripingRule

__all__ = ["exception", "keeps_own_layout", "site_rule", "targets_text"]


def site_rule(size: int, place: Lustre) -> StripingRule | None:
    """What the site tells users to set for files of this size."""
    rules = place.figures.striping_rules if place.figures else []
    return max((rule for rule in rules if rule.above <= size), key=lambda rule: rule.above, default=None)


def keeps_own_layout(disk: FileSystem | None) -> str | None:
    """Why nothing is set by hand where the site has a composite layout of its own; None where it has none."""
    if disk is None or not disk.site_pfl:
        return None
    return f"{disk.name} has a composite layout of its own, and the site asks to leave it as it is; {exception()}"


def exception() -> str:
    """What would justify to go against a site's layout."""
    return (
        "an exception needs five runs or more with either layout whose medians differ by more than "
        f"{VARIATION - 1:.0%}, and the site's consent"
    )


def targets_text(count: int) -> str:
    """A stripe count in words."""
    if count < 1:
        return "all targets"
    return counted(count, "target")
