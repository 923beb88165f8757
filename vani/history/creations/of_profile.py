"""The creations of a profile, as far as it lists all files."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from vani.history.creations.series import LARGEST, NO_RANK, Creations

if TYPE_CHECKING:
    from vani.schema.profile import Profile

__all__ = ["creations_of_profile"]

_MADE = frozenset(("output", "intermediate", "temporary"))


def creations_of_profile(profile: Profile) -> Creations | None:
    """Files that were written and whose size is known, in order of the first call on them; ranks are not known.

    None where the profile lists the most important files only.
    """
    if profile.workflow.files.total is None or profile.workflow.files.total > len(profile.files):
        return None
    made = [one for one in profile.files if one.role in _MADE and one.size is not None and one.writers]
    made.sort(key=lambda one: (one.first_s is None, one.first_s or 0.0, one.path))
    return Creations(
        np.array([min(one.size or 0, LARGEST) for one in made], dtype=np.int64),
        np.full(len(made), NO_RANK),
        np.array([one.stripe_count or 0 for one in made], dtype=np.int64),
        tuple(one.path for one in made),
    )
