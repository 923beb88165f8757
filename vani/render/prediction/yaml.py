"""A prediction as Vani reads it again."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vani.schema.prediction import Prediction

__all__ = ["render"]


def render(prediction: Prediction) -> str:
    """Write the whole document."""
    return prediction.to_yaml()
