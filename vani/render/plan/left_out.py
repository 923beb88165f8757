"""One line about the parts that a plan leaves out."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vani.schema.plan import Plan

__all__ = ["left_out"]


def left_out(plan: Plan) -> str | None:
    """The first line of a plan that leaves something out; None for a whole one."""
    parts = import_module(f"vani.render.plan.kinds.{plan.kind}").missing(plan)
    return f"Incomplete: {', '.join(parts)}." if parts else None
