"""A plan as JSON, with the keys of the YAML."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vani.schema.syntax.json_writer import json_text

if TYPE_CHECKING:
    from vani.schema.plan import Plan

__all__ = ["render"]


def render(plan: Plan) -> str:
    """Write the whole document."""
    return json_text(plan.model_dump(by_alias=True))
