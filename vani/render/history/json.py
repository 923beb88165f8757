"""A ranking of runs as JSON; seconds are of all processes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vani.schema.syntax.json_writer import json_text

if TYPE_CHECKING:
    from vani.schema.history import Ranking

__all__ = ["render"]


def render(ranking: Ranking) -> str:
    """Write the document."""
    return json_text(ranking.model_dump(by_alias=True))
