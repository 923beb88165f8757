"""Whether a plan is valid, as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vani.schema.syntax.json_writer import json_text

if TYPE_CHECKING:
    from vani.centre.plan.check import PlanStatus

def render(status: PlanStatus) -> str:
    """Write the whole document."""
    return json_text(status.model_dump(mode="json", by_alias=True))
