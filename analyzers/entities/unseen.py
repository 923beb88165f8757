"""Activity that the trace proves but does not record."""

from __future__ import annotations

from vani.analyzers.entities.view import Notes, View
from vani.schema.profile import Unseen

__all__ = ["unseen"]


def unseen(view: View) -> tuple[list[Unseen], Notes]:
    """The entries of `profile.unseen`, the most important first."""
    del view
    return [], {}
