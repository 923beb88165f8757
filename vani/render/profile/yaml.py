"""A profile as Vani reads it again."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vani.schema.profile import Profile

__all__ = ["render"]


def render(profile: Profile, **_: object) -> str:
    """Write the whole document."""
    return profile.to_yaml()
