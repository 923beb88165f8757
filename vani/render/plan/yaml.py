"""A plan as Vani reads it again."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vani.schema.plan import Plan

__all__ = ["render"]


def render(plan: Plan) -> str:
    """Write the whole document."""
    return plan.to_yaml()
