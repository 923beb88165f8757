"""What `vani check` found as JSON, with the keys of its schema."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vani.schema.syntax.json_writer import json_text

if TYPE_CHECKING:
    from vani.schema.check import Check

__all__ = ["render"]


def render(check: Check, **_: object) -> str:
    """Write the whole document."""
    return json_text(check.model_dump(by_alias=True))
