"""How far the figures of a machine's description hold for the machine at hand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from vani.schema.system import System

__all__ = ["TYPICAL", "certainty"]

TYPICAL: Final = 0.6
"""Of figures that are typical of a kind of machine (ours)."""


def certainty(system: System) -> float:
    """What multiplies the confidence in all that rests on the description, 0..1."""
    return TYPICAL if system.generic else 1.0
