"""Advice as Vani reads it again."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vani.schema.advice import Advice

__all__ = ["render"]


def render(advice: Advice, **_: object) -> str:
    """Write the whole document."""
    return advice.to_yaml()
