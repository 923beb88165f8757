"""Advice as JSON, with the keys of the YAML."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vani.schema.syntax.json_writer import json_text

if TYPE_CHECKING:
    from vani.schema.advice import Advice

__all__ = ["render"]


def render(advice: Advice, **_: object) -> str:
    """Write the whole document."""
    return json_text(advice.model_dump(by_alias=True))
