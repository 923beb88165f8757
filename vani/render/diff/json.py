"""Differences as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vani.schema.syntax.json_writer import json_text

if TYPE_CHECKING:
    from vani.schema.diff import Diff

def render(diff: Diff, *, everything: bool = False) -> str:
    """Write all differences, or those that exceed the tolerance."""
    tree = diff.model_dump(by_alias=True)
    if not everything:
        tree["differences"] = [
            difference for difference in tree["differences"] if difference["status"] != "within"
        ]
    return json_text(tree)
